"""Run records made up for unit tests, each part open to change."""

from __future__ import annotations

from typing import Any

from proofmark.inference.outcome.record import STEPS, Accuracy, Measurement, Round, RunRecord, Step
from proofmark.inference.outcome.verdict import REQUIRED_CHECKS, TIMED_CHECKS
from proofmark.measuring.statistics import rate
from proofmark.record.parts import Check, Contention, Flops, Identity, Utilisation
from proofmark.record.provenance import Chip, Host, Peak


def rounds(*changes: dict[str, Any], count: int = 3) -> tuple[Round, ...]:
    """Passes over 100 items in a second of compute; the first ones take the changes."""
    base: dict[str, Any] = {
        "items": 100,
        "batches": 10,
        "whole_seconds": 1.5,
        "core_seconds": 1.0,
        "evaluation_seconds": 0.1,
    }
    base["contention"] = Contention(others=0.0, stolen=0.0, idle=0.0)
    padded = [*changes, *[{}] * (count - len(changes))]
    return tuple(Round(**{**base, "accuracy": 0.98, "started": 1.79e9 + n, **c}) for n, c in enumerate(padded))


def measurement(*changes: dict[str, Any], count: int = 3) -> Measurement:
    """What was measured in `rounds`."""
    timed = rounds(*changes, count=count)
    return Measurement(
        rounds=timed,
        warmup_batches=3,
        warmup_seconds=0.1,
        whole=rate([100] * count, [1.5] * count),
        core=rate([100] * count, [1.0] * count),
        loader=rate([500] * count, [1.0] * count),
        bound_by="compute",
    )


def steps(**changes: dict[str, Any]) -> tuple[Step, ...]:
    """The seven steps, all done but for the changes."""
    return tuple(Step(**{"name": name, "status": "done", **changes.get(name, {})}) for name in STEPS)


def checks(**passed: bool) -> tuple[Check, ...]:
    """All honesty checks, passed but for those of the given first words."""
    return tuple(
        Check(name=name, passed=passed.get(name.split()[0], True), figure=1.0, bound=1.1, meaning="something")
        for name in sorted(REQUIRED_CHECKS | TIMED_CHECKS)
    )


def accuracy(**changes: Any) -> Accuracy:
    """Scores that pass the gate."""
    base = {"metric": "top1", "target": 0.97, "gate": 0.99}
    return Accuracy(**{**base, "framework_fp32": 0.98, "framework": 0.98, "engine": 0.98, **changes})


def record(**changes: Any) -> RunRecord:
    """A record that passes, but for what is asked to differ. It is not judged."""
    values: dict[str, Any] = {
        "suite": "inference",
        "case": "net",
        "profile": "embedded",
        "vendor": "acme",
        "compiler": "engine",
        "precision": "fp32",
        "item": "image",
        "started": 1.79e9,
        "seconds": 12.5,
        "config_hash": "c0ffee" * 10 + "c0ff",
        "config": {"metric": "top1", "target": 0.97, "repeat": 3},
        "versions": {"python": "3.11"},
        "host": Host(name="h", system="Linux", processor="p", cores=2, memory_bytes=1 << 30),
        "chip": Chip(name="chip", peak=Peak(flops_per_second=1e12, precision="fp32", source="sheet", achievable=8e11)),
        "seed": 0,
        "dataset": Identity(name="digits", sha256="d" * 64, items=100),
        "weights": Identity(name="weights", sha256="e" * 64),
        "checks": checks(),
        "steps": steps(),
        "framework": measurement(),
        "engine": measurement(),
        "accuracy": accuracy(),
        "flops": Flops(declared=1e9, counted=1e9),
        "utilisation": Utilisation(mfu=0.1),
    }
    return RunRecord(**{**values, **changes})
