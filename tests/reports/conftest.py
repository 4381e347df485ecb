"""Run records of every kind, as fixtures."""

from __future__ import annotations

import pytest

from proofmark.inference.outcome.record import Accuracy, RunRecord
from proofmark.record.parts import Utilisation
from proofmark.record.provenance import Chip
from tests.reports.records import CHEATED, MakeRecord, make_record, measurement, steps, watched_record


@pytest.fixture(name="make_record")
def _make_record() -> MakeRecord:
    """Makes a judged record that passes, but for what is asked to differ."""
    return make_record


@pytest.fixture
def records() -> dict[str, RunRecord]:
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
        "watched": watched_record(),
        "cheated": watched_record(checks=CHEATED, dishonest=("it answers from a cache",)),
        "fail_accuracy": make_record(accuracy=accuracy, case="bert", item="sequence"),
        "error": make_record(
            steps=stopped, engine=None, accuracy=no_engine, interrupted="export", utilisation=Utilisation()
        ),
        "unsupported": make_record(
            steps=unsupported, engine=None, accuracy=no_engine, precision="int8", utilisation=no_mfu
        ),
        "framework_only": make_record(compiler=None, engine=None, checks=(), accuracy=no_engine, steps=framework_only),
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
