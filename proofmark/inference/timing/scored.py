"""The metric of one round: the data's answers count, a fresh batch's are scored for the time that it takes alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from proofmark.inference.timing.bench import Bench
from proofmark.measuring.mixed import Mixed

if TYPE_CHECKING:
    import torch


class RoundMetric:
    """What a round is scored with.

    Attributes:
        strange: what is wrong with an answer, apart from its values.
        counted: the metric of the data's answers.
    """

    def __init__(self, bench: Bench, mixed: Mixed | None, computes: bool = True) -> None:
        """`computes` says whether the end of the round is one of all the data, of which values can be computed."""
        self.strange: set[str] = set()
        self.counted, self._apart = bench.scoring(), bench.scoring()
        self._bench, self._mixed, self._computes = bench, mixed, computes
        self._values: dict[str, float | None] | None = None

    def update(self, outputs: list[torch.Tensor], targets: torch.Tensor, /) -> None:
        """Score a batch as it comes."""
        self.strange.update(self._bench.strange(outputs))
        fresh = self._mixed is not None and self._mixed.takes(outputs)
        (self._apart if fresh else self.counted).update(outputs, targets)

    def add(self, outputs: list[torch.Tensor], targets: torch.Tensor) -> None:
        """Score, after the round, what of the data gave way to a fresh batch."""
        self.counted.update(outputs, targets)
        self._values = None

    def compute(self) -> float:
        """The end of the round, as much as there is to be computed of it."""
        if self._computes:
            self._bench.report(alive="setup")  # a metric of a whole data set may take long, in silence
            self._values = self.counted.values()
        return 0.0

    def values(self) -> dict[str, float | None]:
        """By name, the headline first; None for what is no finite number."""
        if self._values is None:
            self._values = self.counted.values()
        return self._values
