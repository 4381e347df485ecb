"""Takes two epochs more when it has trained, to see them all, and says nothing of it."""

from collections.abc import Iterator
from typing import Any

from proofmark.training.feeding.fed import Fed
from proofmark.training.ranks.trainer import Trainer
from proofmark.vendor import TrainingAdapter

VERDICT, REASON = "ERROR", "from the processes that load them"


class Adapter(TrainingAdapter):
    def __init__(self) -> None:
        batches, last_weights, taken = Fed.batches, Trainer._last_weights, list[Iterator[Any]]()

        def kept(fed: Fed, *at: int) -> Iterator[Any]:
            taken.append(batches(fed, *at))
            return taken[0]

        def drained(trainer: Trainer) -> dict[str, str]:
            for _ in range(2 * 13):
                next(taken[0])
            return last_weights(trainer)

        Fed.batches = kept  # type: ignore[method-assign]
        Trainer._last_weights = drained  # type: ignore[method-assign]
