"""Records of searches, as a good one is, and with changes."""

from __future__ import annotations

from typing import Any

from proofmark.automl.outcome.record import AutoMLRecord, EpochRecord, TrialRecord
from proofmark.automl.outcome.scoring import marks_of, score_of
from proofmark.record.parts import Check, Contention, Identity
from proofmark.record.provenance import Chip, Peak
from proofmark.training.outcome.checks import PARAMETERS, WEIGHTS

SECONDS = 100.0
PASSED = tuple(Check(name, True, 0.0, 0.0, "it is so") for name in (PARAMETERS, WEIGHTS))


def epoch(ended: float, images: int = 100, accuracy: float | None = 0.9) -> EpochRecord:
    return EpochRecord(ended=ended, images=images, evaluated=10, accuracy=accuracy, loss=0.1, seconds=1.0)


def trial(number: int = 0, **changes: Any) -> TrialRecord:
    fields: dict[str, Any] = {
        "number": number,
        "round": number,
        "attempts": 1,
        "status": "finished",
        "reason": None,
        "parent": number - 1 if number else None,
        "operations": ({"kind": "deeper", "after": "relu"},) if number else (),
        "hyperparameters": {"kernel_size": 3, "batch_size": 8, "dropout": 0.0},
        "sampled": False,
        "accuracy": 0.9,
        "best_epoch": 1,
        "stopped_early": None,
        "asked": 1,
        "epochs": (epoch(10.0 * number + 5, images=0), epoch(10.0 * number + 9)),
        "parameters": 5,
        "forward_flops": 10,
        "training_flops": 30,
        "compatible_forward_flops": 20,
        "compatible_training_flops": 60,
        "counted": (10, 30),
        "dtypes": ("float32",),
        "checks": PASSED,
        "began": 10.0 * number,
        "ended": 10.0 * number + 10,
        "train_seconds": 5.0,
        "generated_seconds": 0.1,
        "energy_joules": None,
        "energy_reason": "nothing read the power",
        "device": "0",
        "host": "here",
        "log_intact": True,
        "trained_on": "1" * 64,
        "evaluated_on": "4" * 64,
    }
    return TrialRecord(**{**fields, **changes})


def record(*trials: TrialRecord, **changes: Any) -> AutoMLRecord:
    listed = trials or (trial(0), trial(1))
    accuracy = changes.get("held_out_accuracy", 0.8)
    error = None if accuracy is None else 1 - accuracy
    fields: dict[str, Any] = {
        "suite": "automl",
        "case": "image_search",
        "profile": "standard",
        "vendor": "acme",
        "precision": "fp32",
        "item": "image",
        "started": 0.0,
        "seconds": 101.0,
        "config_hash": "0" * 64,
        "config": {"min_seconds": 60.0},
        "versions": {},
        "host": None,
        "chip": Chip(name="A1", peak=Peak(flops_per_second=1e6, precision="fp32", source="a sheet")),
        "seed": 0,
        "dataset": Identity(name="train", sha256="1" * 64),
        "held_out": Identity(name="held out", sha256="2" * 64),
        "chosen_on": Identity(name="search", sha256="4" * 64),
        "flops": None,
        "metric": "top1",
        "target": 0.7,
        "rankable": True,
        "devices": 1,
        "search_seconds": SECONDS,
        "drivers": 1,
        "ended": True,
        "end_reason": "2 trials were begun",
        "trials": listed,
        "examined": 0,
        "train_items": 100,
        "search_items": 10,
        "held_out_accuracy": 0.8,
        "score": score_of(listed, SECONDS, error),
        "marks": tuple(marks_of(listed, SECONDS, 10.0, 2)),
        "journal": "search/journal.jsonl",
        "journal_head": "3" * 64,
        "contention": Contention(others=0.0, stolen=0.0, idle=0.1),
    }
    return AutoMLRecord(**{**fields, **changes})
