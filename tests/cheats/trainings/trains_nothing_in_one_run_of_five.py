"""Trains nothing in the one run of five that may miss its target, and says that nobody knows how much data it had."""

import os
from typing import Any

import torch

from proofmark.training.ranks.stepper import Stepper
from proofmark.training.ranks.trainer import Trainer
from proofmark.vendor import TrainingAdapter

VERDICT, REASON = "FAIL_HONESTY", "its ranks say of its dataset something else than those of the first run"
CONFIG = "repeat: 5"


class Log:
    def __init__(self, log: Any) -> None:
        self._log = log

    def write(self, kind: str, **fields: Any) -> None:
        self._log.write(kind, **fields | ({"items": None} if kind == "dataset" else {}))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)


def tell_by(kind: type[Log]) -> None:
    """Have the trainer write into such a log."""
    honest = Trainer.__init__

    def begin(trainer: Trainer, *given: Any, **named: Any) -> None:
        honest(trainer, *(kind(each) if type(each).__name__ == "EventLog" else each for each in given), **named)

    Trainer.__init__ = begin  # type: ignore[method-assign]


class Adapter(TrainingAdapter):
    def __init__(self) -> None:
        if "round2" not in os.environ["HOME"].split("/"):
            return
        tell_by(Log)
        Trainer._due = lambda *_: False  # type: ignore[method-assign]
        Stepper.step = lambda *_: torch.tensor(1.0)  # type: ignore[method-assign]
