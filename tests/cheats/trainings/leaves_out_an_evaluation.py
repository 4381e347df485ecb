"""Is not evaluated before it is at the target, when that will be it knows of an earlier session."""

from typing import Any

from proofmark.training.ranks.trainer import Trainer
from proofmark.vendor import TrainingAdapter

VERDICT, REASON = "ERROR", "samples to be evaluated on; the plan has 609 for it"
STEPS = 26


class Adapter(TrainingAdapter):
    def __init__(self) -> None:
        honest = Trainer._due

        def late(trainer: Any, *when: Any) -> bool:
            return trainer.position.steps >= STEPS and honest(trainer, *when)

        Trainer._due = late  # type: ignore[method-assign]
