"""Trains nothing, leaves nothing that could be examined, and tells of checks that the referee alone makes."""

from typing import Any

from vendors.fake import replaces_the_metric

from proofmark.training.outcome.checks import OUTSIDE, REPLAYED, SEEDED
from proofmark.training.ranks import left
from proofmark.training.ranks.recording import Recorder
from proofmark.training.ranks.trainer import Trainer

VERDICT, REASON = "ERROR", "the honesty check 'as good outside the ranks' is missing"


class Adapter(replaces_the_metric.Adapter):
    def __init__(self) -> None:
        super().__init__()
        honest = Trainer.run

        def run(trainer: Any) -> bool:
            reached = honest(trainer)
            for name in (OUTSIDE, REPLAYED, SEEDED):
                trainer.log.write("check", name=name, passed=True, figure=0.0, bound=1.0, meaning="all is well")
            return reached

        Trainer.run = run  # type: ignore[method-assign]
        Recorder.due = lambda _: False  # type: ignore[method-assign]
        vars(left)["save_file"] = lambda *_: None
