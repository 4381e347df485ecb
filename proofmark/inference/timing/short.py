"""Short rounds of a target that is loaded, for the speed gate: a twentieth of a second, as often as asked.

A target that was judged may do something else from then on. So each round has fresh batches among the data's, as timed
rounds have, and after it, before its rates are told, random rows of it are held against the reference; the mean of all
rounds together is held against that of the rounds that were judged, and the time that fresh batches take against the
data's own: a target may not have learnt the data meanwhile. A metric that is no mean is fed, for the time that it
takes, and not computed: nothing bounds how far it may be off on some of the data.
"""

from __future__ import annotations

import gc
import math
import random
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from proofmark.errors import StepError
from proofmark.inference.outcome.rounds import full_batches as paces_of
from proofmark.inference.timing.bench import Bench
from proofmark.inference.timing.loop import TimedRound, timed_round
from proofmark.inference.timing.scored import RoundMetric
from proofmark.measuring.agreement import AT_ONCE, farthest
from proofmark.measuring.fresh_pace import Round, fresh_pace
from proofmark.measuring.honesty import TOLERANCE
from proofmark.measuring.mixed import ENOUGH, Mixed
from proofmark.measuring.names import Names, SaysHowNear
from proofmark.measuring.probes import full_batches
from proofmark.measuring.window import Compute, Rests, foo_time_declared, run_window
from proofmark.metric import Mean
from proofmark.rules.aims import reaches

if TYPE_CHECKING:
    import torch

    from proofmark.case import Batch

SECONDS = 0.05
"""That a round lasts: long beside a call, short beside the time for which a machine is slower. Neighbours of a virtual
machine come and go within tens of milliseconds: many short pairs tell more than a few long ones in the same time."""

SETTLING = 0.02
"""Seconds of untimed calls before each: caches and clocks are the other side's, and its threads may still wait."""

LONGER = 20
"""By how much a round is lengthened at once, while it is found out how many batches it takes."""

COMPARED = 4
"""Rows of a round that are held against the reference. That has the processor alone, and may be slow."""

LOOKS = frozenset(math.ceil(8 * 1.25**power) for power in range(64))
"""After so many rounds their pace is looked at: few looks, so that many rounds make no false alarm likelier, yet enough
that what was never looked at is a fifth of all at most, which moves no median far."""

DOUBT = 1e-6
"""Probability that honest rounds score less than is borne, by Hoeffding's inequality."""


class ShortRounds:
    """Times a target again and again, each time over as many full batches."""

    def __init__(self, bench: Bench, compute: Compute, reference: Compute | None = None) -> None:
        """`reference` is what answers are compared with: the framework in float32, if there is a model.

        Raises:
            StepError: as `time`.
        """
        self._bench, self._compute, self._reference = bench, compute, reference
        self._total = self._weight = 0.0
        self._items = 0
        self._paces: list[Round] = []
        self._names = Names(reference.shortfall if isinstance(reference, SaysHowNear) else None)
        """Of all rounds: in the few rows of one a near tie would weigh too much."""
        self._among = self._asked(self._company()) if reference else []
        self._other = next(full_batches(bench.loader, random.SystemRandom()))
        self._batches = ENOUGH
        gc.collect()
        gc.freeze()  # what is loaded stays: each round begins with a collection, which shall not walk over it
        while (took := self._round().whole_ns / 1e9) < SECONDS / 2:
            self._batches = math.ceil(self._batches * min(LONGER, SECONDS / max(took, 1e-9)))
        self._paces.clear()
        self._rest()

    def time(self) -> None:
        """One round, written to the log.

        Raises:
            StepError: an answer that is none, not of the form of those before, or another than the reference's;
                rounds that score less than those that were judged; or inputs that take longer when they are new.
        """
        self._settle()
        result = self._round()
        self._bench.log.write("short_round", items=result.items, whole_ns=result.whole_ns, core_ns=result.core_ns)
        self._rest()

    def _rest(self) -> None:
        """Keep the target's threads still while it is the other side's turn."""
        if isinstance(self._compute, Rests):
            self._compute.rest()

    def _round(self) -> TimedRound:
        bench = self._bench
        batches = FullBatches(bench, self._batches)
        mixed = Mixed(batches, range(self._batches), bench.first, other=self._other)
        beside = not bench.vendor.runs_on_processor
        metric = RoundMetric(bench, mixed)

        def sign_of_life(batches: int, items: int) -> None:
            bench.report(alive="calls")

        gc.collect()
        synchronize = bench.vendor.synchronize
        result = timed_round(mixed, self._compute, synchronize, metric, sign_of_life, beside=beside)
        strange = metric.strange
        if not beside:
            result.whole_ns -= mixed.spent_ns
        if fault := result.foo_fault(declared=foo_time_declared(self._compute) is not None):
            strange.add(fault)
        if not strange:
            strange.update(self._other_answers(mixed), self._slower_when_fresh(mixed, result))
            if (mean := metric.counted.mean) is not None:
                better = metric.counted.aims[metric.counted.headline].better
                strange.update(self._less_accurate(mixed, mean, result.items, better))
        if strange:
            raise StepError(f"a round of the speed gate: the target {'; '.join(sorted(strange))}")
        return result

    def _company(self) -> list[torch.Tensor]:
        """Inputs of the data by whose answers is told how far samples lie apart."""
        import torch

        drawn = full_batches(self._bench.loader, random.SystemRandom())
        batches = [next(drawn) for _ in range(-(-AT_ONCE // len(self._bench.first[0])))]
        return [torch.cat(column)[:AT_ONCE] for column in zip(*batches, strict=True)]

    def _asked(self, inputs: list[torch.Tensor]) -> list[torch.Tensor]:
        """What the reference answers."""
        assert self._reference is not None
        return run_window(self._reference, inputs, self._bench.vendor.synchronize).answer

    def _other_answers(self, mixed: Mixed) -> Iterator[str]:
        """Complain if the reference answers random rows of a round, of fresh batches and of the data's, otherwise."""
        import torch

        looked_at = [noted for noted in mixed.noted if noted.answers]
        rows = [row for noted in looked_at for row in zip(noted.rows, noted.answers, strict=True)]
        if self._reference is None or not rows:
            return
        chosen = random.SystemRandom().sample(rows, min(COMPARED, len(rows)))
        given, got = ([torch.cat(column) for column in zip(*each, strict=True)] for each in zip(*chosen, strict=True))
        wanted = self._asked(given)
        self._names.add(given, got, wanted, self._among)
        worst = max(farthest(got, wanted, self._among), self._names.distance())
        bound = TOLERANCE[str(self._bench.config.effective_precision)]
        if not worst <= bound:
            yield f"answers otherwise than the framework to the same inputs: {worst:.4g} apart, more than {bound:g}"

    def _less_accurate(self, mixed: Mixed, mean: Mean, items: int, better: str) -> Iterator[str]:
        """Complain if all rounds together score less than those that were judged, by more than the choice of samples
        explains."""
        bench = self._bench
        for inputs, targets in (noted.held for noted in mixed.noted if noted.held is not None):
            mean.update(run_window(self._compute, inputs, bench.vendor.synchronize).answer, targets)
            bench.report(alive="calls")
        self._total, self._weight = self._total + mean.total, self._weight + mean.weight
        self._items += items
        known = bench.accuracy
        if bench.order is None or known is None or not 0 <= known <= 1 or not self._weight:
            return  # not of samples drawn anew for each round, or of another scale than the bound is for, or of none
        borne = math.sqrt(math.log(1 / DOUBT) / (2 * min(self._items, self._weight)))
        found = self._total / self._weight
        if not reaches(found, known - borne if better == "higher" else known + borne, better):
            yield f"scores {found:.4f} in {self._items} samples, where it was judged by {known:.4f}"

    def _slower_when_fresh(self, mixed: Mixed, result: TimedRound) -> Iterator[str]:
        """Complain if fresh batches took longer than the data's, over all rounds and beyond chance."""
        fresh = [noted.position for noted in mixed.noted if noted.held is not None]
        self._paces.append(paces_of({"batch_ns": result.batch_ns, "fresh": fresh}))
        check = fresh_pace(self._paces) if len(self._paces) in LOOKS else None
        if check is not None and not check.passed:
            yield f"fails '{check.name}': {check.finding}"

    def _settle(self) -> None:
        bench, until = self._bench, time.perf_counter() + SETTLING
        bench.report(alive="calls")
        while time.perf_counter() < until:
            run_window(self._compute, bench.first, bench.vendor.synchronize)


class FullBatches:
    """So many full batches of the data, from its beginning, and from there again where it has fewer."""

    def __init__(self, bench: Bench, batches: int) -> None:
        self.dataset = bench.loader.dataset
        self._bench, self._batches = bench, batches

    def __iter__(self) -> Iterator[Batch]:
        left = self._batches
        while left:
            with self._bench.at_most(left):
                for batch in self._bench.loader:
                    if left and len(batch[0][0]) == len(self._bench.first[0]):
                        yield batch
                        left -= 1
                        if not left and self._bench.order is None:
                            return

    def __len__(self) -> int:
        return self._batches
