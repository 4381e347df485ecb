"""The metric of one round: the data's answers count, a fresh batch's are scored for the time that it takes alone."""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING

from proofmark.inference.timing.bench import Bench
from proofmark.measuring.mixed import Mixed

if TYPE_CHECKING:
    import torch


class RoundMetric:
    """What a round is scored with: a metric for each pass, so that what a pass costs does not grow with their number.

    Attributes:
        strange: what is wrong with an answer, apart from its values.
        counted: the metric of the data's answers, those of the first pass; a mean is one of all passes.
    """

    def __init__(self, bench: Bench, mixed: Mixed | None, computes: bool = True) -> None:
        """`computes` says whether the end of the round is one of all the data, of which values can be computed."""
        self.strange: set[str] = set()
        self.counted, self._apart = bench.scoring(), bench.scoring()
        self._bench, self._mixed, self._computes = bench, mixed, computes
        self._passes = [self.counted]
        self._each, self._position = max(1, len(mixed or bench.loader)), 0
        self._values: dict[int, dict[str, float | None]] = {}

    def update(self, outputs: list[torch.Tensor], targets: torch.Tensor, /) -> None:
        """Score a batch as it comes."""
        self.strange.update(self._bench.strange(outputs))
        fresh = self._mixed is not None and self._mixed.takes(outputs)
        (self._apart if fresh else self._passes[self._pass_of(self._position)]).update(outputs, targets)
        self._position += 1

    def add(self, position: int, outputs: list[torch.Tensor], targets: torch.Tensor) -> None:
        """Score, after the round, what of the data gave way to a fresh batch there."""
        number = self._pass_of(position)
        self._passes[number].update(outputs, targets)
        self._values.pop(number, None)

    def compute(self) -> float:
        """The end of the round, as much as there is to be computed of it."""
        if self._computes:
            self.values()
        return 0.0

    def values(self) -> dict[str, float | None]:
        """By name, the headline first: the mean over the passes; None for what of one is no finite number."""
        for number in range(len(self._passes)):
            if number not in self._values:
                self._bench.report(alive="setup")  # a metric of a whole data set may take long, in silence
                self._values[number] = self._passes[number].values()
        return {name: self._mean([found[name] for found in self._values.values()]) for name in self.counted.aims}

    def _pass_of(self, position: int) -> int:
        """The number of a batch's pass among those that have a metric."""
        number = 0 if self.counted.mean is not None else position // self._each
        while number >= len(self._passes):
            self._passes.append(self._bench.scoring())
        return number

    @staticmethod
    def _mean(values: list[float | None]) -> float | None:
        """Of equal values that value, to the last bit."""
        known = [value for value in values if value is not None]
        return statistics.mean(known) if len(known) == len(values) else None
