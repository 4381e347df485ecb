"""Run records made up for the tests of reports."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from proofmark.inference.outcome.figures import figures
from proofmark.inference.outcome.record import STEPS, Accuracy, Measurement, Round, RunRecord, Step
from proofmark.inference.outcome.verdict import judge
from proofmark.measuring.statistics import rate
from proofmark.record.parts import Check, Contention, Flops, Identity, Memory, Monitoring, Rate, Series, Utilisation
from proofmark.record.provenance import Chip, Host, Peak
from proofmark.rules.legality import Override

ITEMS = 1797
BEGUN = 1_790_000_000.0
MakeRecord = Callable[..., RunRecord]


def measurement(core_seconds: tuple[float, ...], accuracy: float = 0.9822, begun: float = 0.0) -> Measurement:
    """One pass over 1,797 items per entry; the whole takes 1.6 times the core."""
    rounds = tuple(
        Round(
            items=ITEMS,
            batches=57,
            whole_seconds=1.6 * seconds,
            core_seconds=seconds,
            evaluation_seconds=0.1 * seconds,
            accuracy=accuracy,
            started=BEGUN + begun + 10.0 * number,
            contention=Contention(others=0.0, stolen=0.0, idle=0.0),
        )
        for number, seconds in enumerate(core_seconds)
    )
    return Measurement(
        rounds=rounds,
        warmup_batches=3,
        warmup_seconds=0.21,
        whole=rate([r.items for r in rounds], [r.whole_seconds for r in rounds]),
        core=rate([r.items for r in rounds], [r.core_seconds for r in rounds]),
        loader=Rate(value=9753.1, stdev=120.0, min=9600.0, max=9900.0),
        bound_by="compute",
        latency_ms={"mean": 8.642, "p50": 8.531, "p90": 9.753},
        latency_batches=57 * len(rounds),
    )


def steps(**changes: dict[str, Any]) -> tuple[Step, ...]:
    """The seven steps, all done but for the changes."""
    return tuple(
        Step(**{"name": name, "status": "done", "seconds": 0.5 + index, **changes.get(name, {})})
        for index, name in enumerate(STEPS)
    )


CONFIG = {
    "metric": "top1",
    "target": 0.97,
    "training": {"epochs": 4, "learning_rate": 2.0e-3},
    "batch_size": 64,
    "fp16": True,
    "compiler": "onnxruntime",
    "threads": 2,
    "precision": None,
}
OVERRIDES = (
    Override(key="batch_size", old=32, new=64, origin="vendors/cpu/configs/resnet50.yaml", kind="changed"),
    Override(key="threads", old=None, new=2, origin="--set", kind="added"),
)


CHECKS = (
    Check(name="no memorised data", passed=True, figure=1.036, bound=1.1, meaning="new inputs take it longer"),
    Check(name="no cached answers", passed=True, figure=1.0035, bound=1.1, meaning="a repeat takes it less time"),
    Check(name="answers new inputs", passed=True, figure=5.587e-07, bound=0.02, meaning="its answers are others"),
    Check(name="waits for its device", passed=True, figure=0.0, bound=0.0, meaning="it was not waited for"),
    Check(name="leaves its inputs alone", passed=True, figure=0.0, bound=0.0, meaning="it wrote into its inputs"),
    Check(name="no faster when timed", passed=True, figure=0.981, bound=1.25, meaning="slower outside the rounds"),
    Check(name="answers alike when timed", passed=True, figure=6.1e-07, bound=0.02, meaning="its answers are others"),
    Check(name="no slower when fresh", passed=True, figure=0.992, bound=1.1, meaning="fresh inputs take it longer"),
)
CHEATED = (
    *CHECKS[:1],
    replace(CHECKS[1], passed=False, figure=7.31),
    replace(CHECKS[2], passed=False, figure=None),
    *CHECKS[3:],
)


def make_record(**changes: Any) -> RunRecord:
    """A judged record that passes, but for what is asked to differ."""
    values: dict[str, Any] = {
        "suite": "inference",
        "case": "resnet50",
        "profile": "embedded",
        "vendor": "cpu",
        "compiler": "onnxruntime",
        "precision": "fp16",
        "item": "image",
        "started": 1_790_000_000.0,
        "seconds": 41.27,
        "config_hash": "c0ffee" * 10 + "c0ff",
        "config": CONFIG,
        "overrides": OVERRIDES,
        "versions": {"python": "3.11.9", "torch": "2.9.1", "onnxruntime": "1.23.2"},
        "host": Host(name="bench-7", system="Linux 6.8", processor="Xeon 8481C", cores=2, memory_bytes=8 << 30),
        "chip": Chip(
            name="Xeon 8481C",
            units=2,
            peak=Peak(flops_per_second=2.3e11, precision="fp16", source="datasheet", achievable=1.9e11),
        ),
        "seed": 0,
        "dataset": Identity(name="digits", sha256="da7a" * 16, items=ITEMS, origin="scikit-learn"),
        "weights": Identity(name="resnet50-digits", sha256="3e16" * 16),
        "steps": steps(),
        "framework": measurement((5.41, 5.32, 5.37)),
        "engine": measurement((4.321, 4.358, 4.299), 0.9816),
        "accuracy": Accuracy(
            metric="top1", target=0.97, gate=0.999, framework_fp32=0.9825, framework=0.9822, engine=0.9816
        ),
        "flops": Flops(declared=1.67e8, counted=1.672e8),
        "utilisation": Utilisation(mfu=0.3019),
        "checks": CHECKS,
        "memory": Memory(host_peak_bytes=1_402_000_000),
        **changes,
    }
    record = RunRecord(**values)
    if record.verdict is None:
        record = record.model_copy(update={"verdict": judge(record)})
    return record.with_figures(figures(record))


def readings(devices: int = 2, samples: int = 200, seconds: float = 60.0) -> tuple[Series, ...]:
    """Series of a host and its devices as a busy run has them: idle, framework, compile, engine."""
    noise = random.Random(7)
    times = tuple(BEGUN + seconds * (index + 0.5) / samples for index in range(samples))
    busy = [0.9 if 12 < t - BEGUN < 24 else 0.97 if 33 < t - BEGUN < 55 else 0.04 for t in times]

    def series(name: str, unit: str, device: int | None, values: list[float]) -> Series:
        return Series(name=name, unit=unit, device=device, times=times, values=tuple(values))

    found = [
        series("host CPU", "share", None, [min(1.0, abs(0.4 + noise.gauss(0, 0.1))) for _ in times]),
        series("host memory", "B", None, [(21 + 4 * index / samples) * 2**30 for index in range(samples)]),
    ]
    for device in range(devices):
        heat, less = 34.0 + device, 0.8**device
        warm = [heat := heat + 0.05 * (35 + 42 * load * less - heat) for load in busy]
        load = [min(1.0, max(0.0, share * less + noise.gauss(0, 0.02))) for share in busy]
        found += [
            series("utilisation", "share", device, load),
            series("power", "W", device, [82 + 480 * share + 9 * noise.gauss(0, 1) for share in load]),
            series("temperature", "°C", device, [round(value) for value in warm]),
            series("memory", "B", device, [(1 + 30 * less * (1 - math.exp(-i / 30))) * 2**30 for i in range(samples)]),
            series("clock", "MHz", device, [1980.0 for _ in times]),
        ]
    return tuple(found)


def watched(**changes: Any) -> Monitoring:
    """What a monitor of two devices saw."""
    values: dict[str, Any] = {
        "samples": 200,
        "window": (BEGUN + 34.0, BEGUN + 60.9),
        "series": readings(),
        "energy_joules": 13_457.1,
        "energy_method": "device energy counter",
        "energy_per_item": 2.4962,
        "throttled_share": 0.0,
        **changes,
    }
    return Monitoring(**values)


def watched_record(**changes: Any) -> RunRecord:
    """A record with everything in it: checks, two devices' readings, and both roofs."""
    peak = Peak(flops_per_second=2.3e11, precision="fp16", source="datasheet", achievable=1.9e11)
    values: dict[str, Any] = {
        "seconds": 62.0,
        "framework": measurement((1.81, 1.79), begun=12.0),
        "engine": measurement((4.321, 4.358, 4.299), 0.9816, begun=34.0),
        "chip": Chip(name="Xeon 8481C", units=2, peak=peak, memory_bandwidth=3.07e11),
        "checks": CHECKS,
        "monitoring": watched(),
        **changes,
    }
    return make_record(**values)
