"""Whole inputs of every kind, to be damaged."""

from __future__ import annotations

import hashlib
from typing import Any

from proofmark.record.beside import Beside
from tests.automl import automl_records
from tests.training_records import make_run, make_training
from tests.unit.inference import test_collect
from tests.unit.records import record

no_beginning = ValueError
"""A log that does not even say what was run."""


def stamped(events: list[tuple[str, dict[str, Any]]]) -> list[dict[str, Any]]:
    """As a log has them."""
    return [{"event": name, "time": 1.79e9 + n, "clock": n * 10**9, **each} for n, (name, each) in enumerate(events)]


CASE_EVENTS = stamped(test_collect.good_events())
DEVICE = {
    "device": 0,
    "temperature_c": 50.0,
    "power_w": 100.0,
    "energy_j": 5.0,
    "memory_used_bytes": 10,
    "memory_total_bytes": 100,
    "utilization": 0.5,
    "clock_mhz": 1000.0,
    "throttled": ["power"],
    "processes": [7],
    "foreign": [7],
    "error": None,
}
MONITOR: list[Any] = [
    {
        "time": 1.79e9 + n,
        "cpu": 0.5,
        "memory": 1 << 30,
        "package_energy_j": 10.0 * n,
        "failure": None,
        "devices": [{**DEVICE, "energy_j": 100.0 * n}, {**DEVICE, "device": 1}],
    }
    for n in range(6)
]

BEGIN = test_collect.begin()
CONFIG = {**BEGIN["config"]}
CONFIG["parameters"] = {**CONFIG["parameters"], "better": "higher", "eval_interval_samples": 50}
CONFIG["parameters"]["references"] = {"16": [100, 200]}
CONFIG["configurations"] = {
    **CONFIG["configurations"],
    "repeat": 1,
    "precision": "fp32",
    "global_batch_size": 16,
    "gradient_accumulation_steps": 1,
}
TOTALS = {"epoch": 0, "samples": 100, "communication": {"seconds": 0.1, "of": 1.0, "steps": 1, "reason": None}}
TOTALS |= {"train_seconds": 2.0, "compute_seconds": 1.0, "data_seconds": 0.1}
TOTALS |= {"evaluation_seconds": 0.2, "checkpoint_seconds": 0.1}
IDENTITY = {"name": "corners", "sha256": "d" * 64, "items": 100, "origin": None}


def rank(number: int) -> list[dict[str, Any]]:
    """A rank's whole log."""
    return stamped(
        [
            ("rank_begin", {"rank": number, "pid": 7}),
            ("init_begin", {}),
            ("dataset", {**IDENTITY, "validation_items": 50}),
            ("model", {"parameters": 196}),
            ("flops", {"counted": 1e3}),
            ("weights", IDENTITY),
            ("optimizer", {"name": "AdamW"}),
            ("evaluation", {**TOTALS, "step": 0, "samples": 0, "metric": 0.1, "took_seconds": 0.1}),
            ("init_end", {}),
            ("train_begin", {"steps": 0, "samples": 0}),
            ("resumed", {"checkpoint": "step-2", "step": 2, "samples": 32, "apart": {"data": -0.5, "compute": 0.25}}),
            ("epoch_begin", {"epoch": 0}),
            ("steps", {**TOTALS, "step": 4, "first": 3, "losses": [3.0, 2.0], "learning_rate": 0.1, "total_steps": 9}),
            ("checkpoint", {"step": 4}),
            ("steps", {**TOTALS, "step": 8, "first": 8, "losses": [1.0], "learning_rate": 0.1, "total_steps": 9}),
            ("evaluation", {**TOTALS, "step": 8, "metric": 0.95, "took_seconds": 0.1}),
            ("train_end", {**TOTALS, "step": 8, "converged": True}),
            ("memory", {"host_peak_bytes": 10, "device_peak_bytes": 5, "device_total_bytes": 50}),
            ("rank_end", {"rank": number}),
        ]
    )


HOST_FACTS = BEGIN["host"]
LAUNCHED = {"node": 0, "name": "one", "skew": 0.5, "round_trip": 0.01, "host": HOST_FACTS, "chip": BEGIN["chip"]}
SESSION = [
    ("run_begin", {**BEGIN, "config": CONFIG, "scale": "1x2", "nnodes": 1, "nproc": 2, "devices": 1, "adapted": []}),
    ("round_begin", {"round": 1, "seed": 7, "resume_from": None}),
    ("round_end", {"round": 1, "status": "succeeded", "hosts": [LAUNCHED], "lost": [], "started": 1.79e9}),
    ("run_end", {}),
]
FAILED = {**SESSION[2][1], "status": "failed"}
HANG = {"rank": 0, "step": 3, "phase": "compute", "seconds": 30.0, "position": [3, 3, False]}
AGENT = [
    ("agent_begin", HOST_FACTS),
    ("rank_died", {"rank": 1, "code": -9, "died": 1790000000}),
    ("hang", HANG),
    ("hang", {**HANG, "rank": 1, "position": [4, 3, True], "loaders": "num_workers is 16"}),
    ("monitor_failed", {"reason": "it ended"}),
    ("stopped", {}),
]
TRAINING_LOGS = {
    "events.jsonl": stamped([*SESSION[:2], ("round_end", FAILED), *SESSION[2:]]),
    "round1/noderank0/rank0.jsonl": [*rank(0)],
    "round1/noderank0/rank1.jsonl": [*rank(1), {"event": "diverged", "time": 1.79e9, "clock": 1, "step": 3}],
    "round1/noderank0/agent.jsonl": stamped(AGENT),
    "round1/noderank0/monitor.jsonl": MONITOR,
}

RECORD = record().model_dump(mode="json")
TRAINING_RECORD = make_training(make_run(), make_run(passes=3)).model_dump(mode="json")
SEARCH_RECORD = automl_records.record().model_dump(mode="json")
PERFLOG: list[Any] = [
    {"event": name, "value": value, "metadata": {"file": "a/benchmarks/cpm/x.py", "lineno": 1, "time_ms": n, "rank": 0}}
    for n, (name, value) in enumerate(
        [
            ("SUBMIT_INFO", {"nnodes": 1, "nproc": 8, "target": 0.9, "config": {"a": 1}, "seed": 1}),
            ("INIT_START", None),
            ("INIT_EVALUATION", {"num_trained_samples": 0, "accuracy": 0.1}),
            ("INIT_END", None),
            ("TRAIN_START", None),
            ("EPOCH_BEGIN", {"epoch": 0}),
            ("STEP_END", {"loss": 2.0, "epoch": 0, "global_steps": 1, "num_trained_samples": 8, "learning_rate": 0.1}),
            ("EVALUATE", {"accuracy": 0.9, "num_trained_samples": 8}),
            ("EPOCH_END", {"epoch": 0}),
            ("TRAIN_END", None),
            ("FINISHED", {"e2e_time": 9.0, "raw_train_time": 5.0, "converged": True, "final_accuracy": 0.9}),
        ],
        1_669_034_171_032,
    )
]


def marked(content: bytes) -> bytes:
    """Each line as FlagPerf prints it."""
    return b"".join(b"[PerfLog] " + line + b"\n" for line in content.splitlines())


CONTRACT: dict[str, Any] = {
    "parameters": {"seed": 0, "warmup": 2},
    "configurations": {
        "batch_size": {"type": "int", "value": 1, "min": 1},
        "precision": {"type": "str", "value": None, "nullable": True, "choices": ["fp16", "fp32"]},
        "fp16": {"type": "bool", "value": False},
        "compiler": {"type": "str", "value": "default", "nullable": True},
        "scale": {"type": "float", "value": 1.0, "max": 2.0},
    },
}
CASE: dict[str, Any] = {
    "parameters": {"metric": "top1", "item": "image", "flops": "2*1e6"},
    "configurations": {"batch_size": 4},
    "profiles": {"embedded": {"parameters": {"target": 0.9}}},
}
OVERRIDES: dict[str, Any] = {"batch_size": 8, "scale": 1.5, "own": {"a": [1, 2.5, None]}, "fp16": True}
HOST: dict[str, Any] = {
    "VENDOR": "acme",
    "HOSTS": ["localhost"],
    "SSH_PORT": 22,
    "CASES": {"resnet50:pytorch_2.0": "/data", "bert:pytorch:A100:1:8:2": "/data/bert"},
}
ROOMS = {"version": 1, "affect_no_case": ["docs/", "*.md"], "vendor_may_touch": ["vendors/{vendor}/"]}
CLUSTER: dict[str, Any] = {
    "hosts": ["one", {"address": "10.0.0.2", "port": 2222, "user": "you"}],
    "work_dir": "/scratch",
    "time_limit": "1-02:03:04",
    "slurm_options": ["--gres=gpu:8"],
    "key": "id",
    "port": 22,
    "environment": {"NCCL_DEBUG": "WARN", "N": 1},
    "requirements": ["requirements.txt"],
    "interface": "eth0",
}
CONTAINER: dict[str, Any] = {
    "devices": ["/dev/acme0"],
    "mounts": ["/opt/acme:/opt/acme:ro"],
    "shm_size": "16g",
    "options": ["--gpus=all"],
    "privileged": False,
}
PEAK = {"flops": "312e12", "source": "sheet", "achievable": 2.8e14}
CHIPS: dict[str, Any] = {
    "chips": [
        {"name": "One", "match": "acme one", "peaks": {"fp16": PEAK}, "memory_bandwidth": "2e12"},
        {"name": "Two", "match": "acme (two|2)", "peaks": {"fp32": PEAK}, "tdp": 400},
    ]
}
SESSION_MANIFEST: dict[str, Any] = {
    "schema_version": 1,
    "proofmark": "0.1.0",
    "session": "20260301-120000",
    "made": 1.79e9,
    "altered": [],
    "files": {
        "report.html": {"sha256": "0" * 64, "bytes": 3},
        "inference/net/link": {"link": "report.html"},
        "pipe": {},
    },
}
ANSWERS: list[Any] = [
    {"outcome": {"status": "done", "reason": None, "kind": None, "detail": None}},
    {"phase": "engine round 1/3", "step": 1, "steps": 3, "items": 10, "samples_per_second": 2.5, "loss": 0.5},
    {"note": "weights are being made"},
]

HOSTS_ANSWERS: list[Any] = [
    {"ready": {"device": 0}},
    {"lost": {"reason": "the case's process died of signal 9 (SIGKILL)", "detail": None}},
    {"closed": {"monitor_failure": None, "lost": None}},
    {"agent": "alive"},
]

CLOUD = {
    "region": "cn-north-4",
    "code_dir": "/bench/code/",
    "boot_file": "/bench/code/first.py",
    "out_url": "/bench/runs/",
    "image": "team/proofmark:1",
    "flavor": "modelarts.kat1.8xlarge",
    "nodes": 2,
    "environment": {"NCCL_DEBUG": "WARN"},
    "poll": [1, 10],
}

SERVICE_JOB = {
    "metadata": {"id": "0a-1b", "name": "proofmark", "create_time": 1790000000000},
    "status": {
        "phase": "Failed",
        "duration": 1000,
        "start_time": 1790000000500,
        "tasks": ["worker-0", "worker-1"],
        "task_statuses": [{"task": "worker-1", "exit_code": 3, "message": "no device"}],
        "running_records": [{"start_at": 1, "recover_records": [{}]}],
    },
}

MANIFEST = {
    "job": "proofmark",
    "code": 0,
    "began": 1.0,
    "ended": 2.0,
    "files": {"rank0.log": {"size": 7, "sha256": "0" * 64}},
    "host": {"hostname": "h"},
}
CONFIG_YML = {
    "trialConcurrency": 1,
    "maxExecDuration": "12h",
    "maxTrialNum": 6000,
    "tuner": {"builtinTunerName": "NetworkMorphism", "classArgs": {"task": "cv", "input_width": 224}},
    "trial": {
        "command": "CUDA_VISIBLE_DEVICES=0,1 srun -N 1 --cpus-per-task=30 python3 t.py --batch_size 448",
        "gpuNum": 0,
    },
}


def beside_of(content: bytes) -> Beside:
    """What a record would say of such a file."""
    return Beside(items=len(content.splitlines()), sha256=hashlib.sha256(content).hexdigest())
