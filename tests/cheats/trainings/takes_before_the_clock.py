"""Takes its first epoch while it sets up, when no clock runs, and trains on it later as if it came then."""

import time
from collections.abc import Iterator
from itertools import chain, islice
from typing import Any

from proofmark.training.feeding.fed import Fed
from proofmark.training.ranks.trainer import Trainer
from proofmark.vendor import TrainingAdapter

VERDICT, REASON = "ERROR", "samples before its training began; expected none"


class Adapter(TrainingAdapter):
    def __init__(self) -> None:
        batches, honest = Fed.batches, Trainer._build
        taken = list[Iterator[Any]]()

        def early(trainer: Trainer) -> None:
            honest(trainer)
            feed: Any = trainer.data.train
            rest = batches(feed, 0, 0)
            first = [([each.clone() for each in inputs], targets.clone()) for inputs, targets in islice(rest, 13)]
            taken.append(chain(first, rest))
            time.sleep(8)  # somebody looks meanwhile

        Trainer._build = early  # type: ignore[method-assign]
        Fed.batches = lambda fed, *at: taken[0]  # type: ignore[method-assign]
