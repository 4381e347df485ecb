"""Run records made up for the reports' tests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from harness.record import (
    STEPS,
    Accuracy,
    Chip,
    Flops,
    Host,
    Identity,
    Measurement,
    Memory,
    OverrideEntry,
    Peak,
    Round,
    RunRecord,
    Step,
    Utilisation,
)
from harness.statistics import spread
from harness.verdict import judge

ITEMS = 1797
MakeRecord = Callable[..., RunRecord]


def measurement(core_seconds: tuple[float, ...], accuracy: float = 0.9822) -> Measurement:
    """One pass over 1,797 items per entry; the whole takes 1.6 times the core."""
    rounds = tuple(
        Round(
            items=ITEMS,
            batches=57,
            whole_seconds=1.6 * seconds,
            core_seconds=seconds,
            evaluation_seconds=0.1 * seconds,
            accuracy=accuracy,
            started=1_790_000_000 + 10.0 * number,
        )
        for number, seconds in enumerate(core_seconds)
    )
    return Measurement(
        rounds=rounds,
        warmup_batches=3,
        warmup_seconds=0.21,
        whole=spread([r.items / r.whole_seconds for r in rounds]),
        core=spread([r.items / r.core_seconds for r in rounds]),
        loader=9753.1,
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
    OverrideEntry(key="batch_size", old=32, new=64, origin="vendors/cpu/configs/resnet50.yaml", kind="changed"),
    OverrideEntry(key="threads", old=None, new=2, origin="--set", kind="added"),
)


@pytest.fixture
def make_record() -> MakeRecord:
    """A judged record that passes, but for what is asked to differ."""

    def make(**changes: Any) -> RunRecord:
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
            "memory": Memory(host_peak_bytes=1_402_000_000),
            **changes,
        }
        record = RunRecord(**values)
        return record.model_copy(update={"verdict": judge(record)}) if record.verdict is None else record

    return make


@pytest.fixture
def records(make_record: MakeRecord) -> dict[str, RunRecord]:
    """One record of every kind that the reports must cope with."""
    accuracy = Accuracy(metric="top1", target=0.97, gate=0.999, framework_fp32=0.9825, framework=0.9822, engine=0.9612)
    stopped = steps(
        export={"status": "failed", "seconds": None, "reason": "killed", "kind": "error", "detail": "Traceback:\n  x"},
        compile={"status": "not_reached", "seconds": None},
        engine_inference={"status": "not_reached", "seconds": None},
    )
    unsupported = steps(
        compile={"status": "failed", "reason": "the compiler has no int8", "kind": "unsupported"},
        engine_inference={"status": "not_reached", "seconds": None},
    )
    framework_only = steps(
        **{
            name: {"status": "skipped", "seconds": None, "reason": "compiler is null"}
            for name in ("export", "compile", "engine_inference")
        }
    )
    no_engine = Accuracy(metric="top1", target=0.97, gate=0.999, framework_fp32=0.9825, framework=0.9822)
    no_mfu = Utilisation(reason="no peak for this chip at fp16")
    return {
        "pass": make_record(),
        "fail_accuracy": make_record(accuracy=accuracy, case="bert", item="sequence"),
        "error": make_record(
            steps=stopped, engine=None, accuracy=no_engine, interrupted="export", utilisation=Utilisation()
        ),
        "unsupported": make_record(
            steps=unsupported, engine=None, accuracy=no_engine, precision="int8", utilisation=no_mfu
        ),
        "framework_only": make_record(compiler=None, engine=None, accuracy=no_engine, steps=framework_only),
        "one_round": make_record(
            engine=measurement((4.321,), 0.9816),
            framework=measurement((5.41,)),
            utilisation=no_mfu,
            chip=Chip(name="unheard of", peak_missing="not in chips.yaml"),
        ),
        "long_names": make_record(
            case="a_case_with_a_name_that_goes_on_and_on_" * 3,
            vendor="extraordinarily-verbose-vendor-gmbh-and-sons",
            compiler="compiler_" * 9,
            chip=Chip(name="Accelerator Ultra Max Pro 9000 SXM5 80GB HBM3e Rev. B2", peak_missing="x" * 120),
        ),
    }
