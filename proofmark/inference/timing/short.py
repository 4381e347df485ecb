"""Short rounds of a target that is loaded, for the speed gate: a tenth of a second, as often as it is asked for."""

from __future__ import annotations

import gc
import math
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from proofmark.errors import StepError
from proofmark.inference.timing.bench import Bench
from proofmark.inference.timing.loop import TimedRound, timed_round
from proofmark.measuring.window import Compute, run_window

if TYPE_CHECKING:
    import torch

    from proofmark.case import Batch, Loader

SECONDS = 0.1
"""That a round lasts: long beside a call, short beside the seconds for which a machine is slower."""

SETTLING = 0.05
"""Seconds of untimed calls before each: caches and clocks are the other side's, and its threads may still wait."""

LONGER = 20
"""By how much a round is lengthened at once, while it is found out how many batches it takes."""


class ShortRounds:
    """Times a target again and again, each time over as many full batches."""

    def __init__(self, bench: Bench, compute: Compute) -> None:
        self._bench, self._compute = bench, compute
        self._batches = 1
        gc.collect()
        gc.freeze()  # what is loaded stays: each round begins with a collection, which shall not walk over it
        while (took := self._round().whole_ns / 1e9) < SECONDS / 2:
            self._batches = math.ceil(self._batches * min(LONGER, SECONDS / max(took, 1e-9)))

    def time(self) -> None:
        """One round, written to the log.

        Raises:
            StepError: an answer that is none, or not of the form of those before.
        """
        self._settle()
        result = self._round()
        self._bench.log.write("short_round", items=result.items, whole_ns=result.whole_ns, core_ns=result.core_ns)

    def _round(self) -> TimedRound:
        bench, strange = self._bench, set[str]()

        def evaluate(outputs: list[torch.Tensor], targets: torch.Tensor) -> tuple[float, float]:
            strange.update(bench.strange(outputs))
            return bench.evaluator(outputs, targets)

        def sign_of_life(batches: int, items: int) -> None:
            bench.report(alive="calls")

        gc.collect()
        part, beside = FullBatches(bench.loader, self._batches, len(bench.first[0])), not bench.vendor.runs_on_processor
        synchronize = bench.vendor.synchronize
        result = timed_round(part, self._compute, synchronize, evaluate, sign_of_life, beside=beside)
        if result.foo_seconds:
            strange.add(f"reports {result.foo_seconds:.6g} s of foo_time")
        if strange:
            raise StepError(f"a round of the speed gate: the target {'; '.join(sorted(strange))}")
        return result

    def _settle(self) -> None:
        bench, until = self._bench, time.perf_counter() + SETTLING
        bench.report(alive="calls")
        while time.perf_counter() < until:
            run_window(self._compute, bench.first, bench.vendor.synchronize)


class FullBatches:
    """So many full batches of a loader, from its beginning, and from there again where it has fewer."""

    def __init__(self, loader: Loader, batches: int, size: int) -> None:
        self.dataset = loader.dataset
        self._loader, self._batches, self._size = loader, batches, size

    def __iter__(self) -> Iterator[Batch]:
        left = self._batches
        while left:
            for batch in self._loader:
                if len(batch[0][0]) == self._size:
                    yield batch
                    left -= 1
                    if not left:
                        return

    def __len__(self) -> int:
        return self._batches
