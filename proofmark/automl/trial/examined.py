"""The data by which trials were chosen, as the process that judges the best one looks at it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from proofmark.training.ranks.model.evaluation import evaluate

if TYPE_CHECKING:
    from proofmark.case import Batch
    from proofmark.record.events.log import EventLog
    from proofmark.record.parts import Identity
    from proofmark.training.feeding.loading import OnDemand
    from proofmark.training.ranks.trainer import Trainer

MOST = 10_000
"""Images that are evaluated once more, at most: on a processor, where a network takes very long over all of ImageNet's.
The accuracy of all is known to 0.005 by so many."""


class Spread:
    """Some samples of data that has many: all as far apart."""

    def __init__(self, data: OnDemand, most: int = MOST) -> None:
        self._data, self._apart = data, max(1, -(-data.items // most))

    @property
    def identity(self) -> Identity:
        """The identity of all of it."""
        return self._data.identity

    @property
    def items(self) -> int:
        """How many samples are looked at."""
        return -(-self._data.items // self._apart)

    def load(self, lists: list[list[int]], epoch: int = 0) -> Iterator[Batch]:
        """Batches of those with these numbers, in order: one pass."""
        return self._data.load([[number * self._apart for number in chosen] for chosen in lists], epoch)


def look_at_search(trainer: Trainer, data: OnDemand, log: EventLog, alive: Callable[[str], None]) -> None:
    """Evaluate the weights of a trial on what it was chosen by, and say what they come to there.

    Args:
        trainer: has them.
        data: all of the search's split.
        log: where it is said.
        alive: called with the phase that begins, before each batch and before all is computed.

    Raises:
        StepError: a sample can't be read.
    """
    some, model = Spread(data), trainer.model.eval()
    found = evaluate(model, trainer.case, trainer.config, some, trainer.place, trainer.stepper.autocast, alive)
    log.write("items", train=trainer.data.train.order.items, search=data.items)
    log.write("chosen_on", **data.identity.model_dump())
    log.write("searched", accuracy=found.metric, images=some.items, of_all=data.items)
