"""The metric of one round: the data's answers count, a fresh batch's are scored for the time that it takes alone."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

from proofmark.errors import StepError
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

    def __init__(self, bench: Bench, mixed: Mixed | None, items: int | None = None) -> None:
        """`items` are those of whole passes, which are scored; None where there are none of which values can be
        computed, and whatever comes is scored."""
        self.strange: set[str] = set()
        self.counted, self._apart = bench.scoring(), bench.scoring()
        self._bench, self._mixed, self._items = bench, mixed, items
        self._passes, self._scored = [self.counted], [0]
        self._starts, self._end = list[int](), 0
        self._values: dict[int, dict[str, float | None]] = {}

    def update(self, outputs: list[torch.Tensor], targets: torch.Tensor, /) -> None:
        """Score a batch as it comes."""
        self.strange.update(self._bench.strange(outputs))
        self._starts.append(self._end)
        self._end += len(targets)
        if self._mixed is not None and self._mixed.takes(outputs):
            self._apart.update(outputs, targets)
        else:
            self.add(len(self._starts) - 1, outputs, targets)

    def add(self, position: int, outputs: list[torch.Tensor], targets: torch.Tensor) -> None:
        """Score a batch of the data's, of those that gave way to a fresh one after the round. The first samples of the
        first are scored by themselves, if they are a rest."""
        rest = 0 if position or self._mixed is None else self._mixed.rest_size
        if rest:
            self._score(rest, [output[rest:] for output in outputs], targets[rest:])
        else:
            self._score(self._starts[position], outputs, targets)

    def add_rest(self, outputs: list[torch.Tensor], targets: torch.Tensor) -> None:
        """Score, after the round, the first samples of its first batch, which were asked for in a short one."""
        self._score(0, outputs, targets)

    def _score(self, start: int, outputs: list[torch.Tensor], targets: torch.Tensor) -> None:
        """A batch whose first sample is the round's `start`th, each in its own pass; no more than are to be scored."""
        end = start + len(targets)
        for number, first, last in self._parts(start, end if self._items is None else min(end, self._items)):
            rows = slice(first - start, last - start)
            whole = last - first == len(targets)
            some = (outputs, targets) if whole else ([output[rows] for output in outputs], targets[rows])
            while number >= len(self._passes):
                self._passes.append(self._bench.scoring())
                self._scored.append(0)
            self._passes[number].update(*some)
            self._scored[number] += last - first
            self._values.pop(number, None)

    def _parts(self, start: int, end: int) -> Iterator[tuple[int, int, int]]:
        """Of samples the pass that has a metric of its own, the first and the one after the last."""
        if self._items is None or self.counted.mean is not None:
            if start < end:
                yield 0, start, end
            return
        each = len(self._bench.loader.dataset)
        while start < end:
            number = start // each
            yield number, start, min(end, (number + 1) * each)
            start = (number + 1) * each

    def compute(self) -> float:
        """The end of the round: what was answered of its passes is computed, for the time that it takes."""
        if self._items is not None:
            for number, scored in enumerate(self._scored):
                with suppress(StepError):  # of a part of the data there may be no value: it is computed of all later
                    if scored:
                        self._value_of(number)
        return 0.0

    def values(self) -> dict[str, float | None]:
        """The metric's values by name, the headline first: means over the passes; None where a pass gave no finite
        number."""
        for number in range(len(self._passes)):
            self._value_of(number)
        return {name: self._mean([found[name] for found in self._values.values()]) for name in self.counted.aims}

    def weight(self, passes: int) -> float:
        """Over how much the metric is a mean, in one of so many passes; 0 where it is no mean."""
        mean = self.counted.mean
        return mean.weight / passes if mean is not None and math.isfinite(mean.weight) else 0.0

    def _value_of(self, number: int) -> None:
        if number not in self._values:
            self._bench.report(alive="setup")  # a metric of a whole data set may take long, in silence
            self._values[number] = self._passes[number].values()

    @staticmethod
    def _mean(values: list[float | None]) -> float | None:
        """The mean; of equal values that very value, to the last bit."""
        known = [value for value in values if value is not None]
        return statistics.mean(known) if len(known) == len(values) else None
