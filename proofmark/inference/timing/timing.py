"""The timed rounds of one target: as many passes over the data as last long enough, the loader alone between them."""

from __future__ import annotations

import gc
import itertools
import math
import random
import time
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING

from proofmark.errors import StepError
from proofmark.inference.outcome.record import Round
from proofmark.inference.outcome.rounds import round_of
from proofmark.inference.timing.bench import Bench, form_of
from proofmark.inference.timing.loop import TimedRound, loader_round, timed_round
from proofmark.inference.timing.scored import RoundMetric
from proofmark.measuring.agreement import Answers
from proofmark.measuring.mixed import Mixed
from proofmark.measuring.probes import full_batches
from proofmark.measuring.window import (
    FOO_TIME_EXPECTED,
    Apart,
    Compute,
    Rests,
    foo_time_declared,
    run_window,
    trees_of,
)
from proofmark.monitoring.contention import ContentionMeter
from proofmark.process.log_level import LOGGER
from proofmark.process.threads import one_thread
from proofmark.record.events.log import LONGEST
from proofmark.record.parts import Contention

if TYPE_CHECKING:
    import torch

LENGTHENINGS = 8
"""Times that a round which was too short is run again with more passes."""

MOST_LONGER = 1e4
"""By how much a round is lengthened at once: what a first call says of a pass may be far from the truth."""

LEAST_BATCHES = 24
"""Of a round whose fresh batches are held against the data's own: of fewer nobody could tell which took longer, and
their size is for the vendor to choose."""

MARGIN = 1.1
"""By how much a round's passes are meant to last longer than they must."""

TIME_BYTES, SEED_BYTES, ROOM = 9, 22, LONGEST * 3 // 4
"""Of a round's line in the log: what a batch's time takes, to 10 ms and nearly 4,000 s of such, a pass's seed, and what
all of them may take."""

HELD, HELD_BYTES = 64, 4 << 30
"""Batches held in memory to be computed with nothing loaded beside them, and their bytes where they are large."""


class Timing:
    """Times a target, and writes its rounds to the log.

    Attributes:
        name: what it is called in the log.
        compute: the target.
        fastest: seconds of compute that a pass of the fastest round took.
        answers: rows of the rounds' answers; None where all batches are the data's, and nobody looks at them.
    """

    def __init__(self, bench: Bench, name: str, compute: Compute) -> None:
        self._bench, self.name, self.compute = bench, name, compute
        self._least_seconds = float(bench.config.get("min_seconds", 0.0))
        self._beside = not bench.vendor.runs_on_processor
        self._place = compute.place if self._beside and isinstance(compute, Apart) else None
        self._passes = 1
        self._other: list[torch.Tensor] | None = None
        self.fastest = float("inf")
        self.answers: Answers | None = None

    def warm_up(self) -> None:
        """Untimed calls at both batch sizes that the data has, so that nothing compiles under the clock.

        Raises:
            StepError: an answer that is none, or of another form than the framework's.
        """
        bench = self._bench
        bench.report(alive="setup")
        begun, fastest = time.perf_counter(), float("inf")
        batches = [bench.first] * bench.config.warmup
        if bench.remainder:
            batches += [[tensor[: bench.remainder] for tensor in bench.first]] * 2
        if self._beside and isinstance(self.compute, Apart):
            self.compute.reserve(bench.first)
        for number, inputs in enumerate(batches, 1):
            window = run_window(self.compute, inputs, bench.vendor.synchronize)
            if inputs is bench.first:  # a short last batch would make a pass look short
                fastest = min(fastest, window.seconds)
            bench.report(phase=f"{self.name} warm-up", step=number, steps=len(batches), items=0)
            if bench.form is None:
                bench.form = form_of(window.answer)
            if other := bench.other_form(window.answer):  # a mistake: whoever cheats answers otherwise later
                raise StepError(f"the {self.name} {other}")
        self._passes = self._enough(fastest * len(bench.loader))
        seconds = time.perf_counter() - begun
        bench.log.write("warmup", of=self.name, batches=len(batches), seconds=seconds)

    def load(self) -> None:
        """The loader alone, right before a timed round, so that a machine that slows down slows both."""
        if isinstance(self.compute, Rests):
            self.compute.rest()  # whatever it did meanwhile would slow the loader down
        with self._loading_threads(), self._bench.running_on():
            items, seconds = loader_round(self._bench.loader, self._least_seconds, order=self._bench.order)
        attempt = self._bench.attempt
        self._bench.log.write("loader", of=self.name, attempt=attempt, items=items, seconds=seconds)

    def _loading_threads(self) -> AbstractContextManager[None]:
        """As many as load in a round: this one loads, and computes too, where the target is in turn with it here."""
        return one_thread() if self._beside or isinstance(self.compute, Apart) else nullcontext()

    def time(self, number: int, rounds: int) -> Round:
        """One timed round. One that turns out too short is run again, and longer; it does not count.

        Raises:
            StepError: an answer that is none, or a round that lost samples.
        """
        self._passes = max(self._passes, self._fewest())
        for _ in range(LENGTHENINGS):
            meter = ContentionMeter(apart=trees_of(self.compute))
            result, mixed, metric = self._run(number, rounds)
            contention = meter.seen()
            enough = self._enough(result.core_ns / 1e9)
            if enough == self._passes:
                break
            self._passes = enough
        if mixed is not None:
            self._settle(mixed, result, metric)
        a_pass = len(self._bench.loader) / len(result.batch_ns)
        self.fastest = min(self.fastest, result.core_ns / 1e9 * a_pass)
        return self._log(number, result, contention, metric)

    def time_alone(self) -> None:
        """The core with nothing loaded beside it: what the timed rounds have lost to the loader, if anything was."""
        bench = self._bench
        if not (self._beside or bench.config.get("num_workers")):
            return
        held = max(1, min(HELD, HELD_BYTES // max(1, sum(tensor.nbytes for tensor in bench.first))))
        with bench.running_on(), bench.at_most(held):
            batches = [inputs for inputs, _ in itertools.islice(bench.loader, held)]
        items = spent = 0
        gc.collect()
        while spent < self._least_seconds * 1e9 or not items:
            for inputs in batches:
                bench.report(alive="calls")
                spent += run_window(self.compute, inputs, bench.vendor.synchronize).nanoseconds
                items += len(inputs[0])
        bench.log.write("alone", of=self.name, items_per_second=items / (spent / 1e9) if spent else None)

    def _fewest(self) -> int:
        """Passes without which a round has too few batches; one where rounds may be as short as can be."""
        if self.answers is None or not self._least_seconds:
            return 1
        return next(passes for passes in itertools.count(1) if self._bench.batches(passes) >= LEAST_BATCHES)

    def _enough(self, took: float) -> int:
        """How many passes last `min_seconds`, if those of now took so long; no more than the log has room for.

        Raises:
            StepError: those are too few.
        """
        batches = self._bench.batches(1)
        most = ROOM // (batches * TIME_BYTES + SEED_BYTES)
        if not most or (took < self._least_seconds and self._passes >= most):
            room = f"{ROOM // TIME_BYTES:,} (fewer, in many passes)"
            raise StepError(
                f"a round of {self._least_seconds:g} s has more batches than the {room} whose times the event log has "
                "room for: set a larger batch_size, or a smaller min_seconds"
            )
        if took >= self._least_seconds:
            return self._passes
        wanted = self._passes * min(MOST_LONGER, MARGIN * self._least_seconds / max(took, 1e-9))
        return min(math.ceil(wanted), most)

    def _run(self, number: int, rounds: int) -> tuple[TimedRound, Mixed | None, RoundMetric]:
        gc.collect()
        bench = self._bench
        passes = self._passes
        mixed = self._mixed(passes) if self.answers is not None else None
        metric = RoundMetric(bench, mixed, len(bench.loader.dataset) * passes)
        phase, steps = f"{self.name} round {number}/{rounds}", bench.batches(passes)

        def progress(batches: int, items: int) -> None:
            bench.report(phase=phase, step=batches, steps=steps, items=items)
            if batches % bench.config.log_freq == 0:
                LOGGER.info("%s: %d/%d batches, %d items", phase, batches, steps, items)

        progress(0, 0)
        bench.log.write("round_begin", of=self.name, number=number, attempt=bench.attempt)
        if bench.order is not None:
            bench.order.take_seeds()
        asked = self.compute, bench.vendor.synchronize, metric, progress
        with bench.running_on(passes):
            result = timed_round(mixed or bench.loader, *asked, passes=passes, beside=self._beside)
        bench.log.write("round_end", of=self.name, number=number, attempt=bench.attempt)
        self._look_at(number, result)
        for what in sorted(metric.strange):
            bench.accuse(self.name, what)
        return result, mixed, metric

    def _mixed(self, passes: int) -> Mixed:
        """The data with fresh batches among them."""
        bench = self._bench
        self._other = self._other or next(full_batches(bench.loader, random.SystemRandom()))
        rest = bench.remainder - bench.short
        return Mixed(bench.loader, bench.full(passes), bench.first, self._place, rest, self._other)

    def _settle(self, mixed: Mixed, result: TimedRound, metric: RoundMetric) -> None:
        """Answer and score what gave way to fresh batches, and a short one, and keep the rows that are looked at."""
        bench = self._bench
        if not self._beside:
            result.spent_ns = mixed.spent_ns
            result.whole_ns -= mixed.spent_ns
        for noted in mixed.noted:
            if self.answers is not None and noted.answers:
                for inputs, answer in zip(noted.rows, noted.answers, strict=True):
                    self.answers.take_row(inputs, answer)
            if noted.held is not None:
                result.fresh.append(noted.position)
                inputs, targets = noted.held
                answer = run_window(self.compute, inputs, bench.vendor.synchronize).answer
                bench.report(alive="calls")
                metric.add(noted.position, answer, targets)
        if mixed.rest is not None:
            inputs, targets = mixed.rest
            answer = run_window(self.compute, inputs, bench.vendor.synchronize).answer
            for what in bench.strange(answer):
                bench.accuse(self.name, what)
            metric.add_rest(answer, targets)

    def _look_at(self, number: int, result: TimedRound) -> None:
        """What a round shows beside its times, also one that does not count."""
        bench = self._bench
        items = len(bench.loader.dataset) * result.passes + bench.filled(result.passes)
        if result.items != items:
            raise StepError(f"round {number} ran {result.items} of {items} samples")
        if fault := result.foo_fault(declared=foo_time_declared(self.compute) is not None):
            bench.accuse(self.name, f"{fault} in timed round {number}; {FOO_TIME_EXPECTED}")

    def _log(self, number: int, result: TimedRound, contention: Contention, metric: RoundMetric) -> Round:
        bench = self._bench
        (_, bench.accuracy), *others = metric.values().items()
        fields = {
            "started": result.started,
            "items": result.items,
            "filled": bench.filled(result.passes),
            "passes": result.passes,
            "whole_ns": result.whole_ns,
            "spent_ns": result.spent_ns,
            "batch_ns": result.batch_ns,
            "evaluation_ns": result.score.evaluation_ns,
            "accuracy": bench.accuracy,
            "weight": metric.weight(result.passes),
            **({"others": dict(others)} if others else {}),
            "contention": contention.model_dump(),
            "foo_ns": 0 if result.foo_outside else round(result.foo_seconds * 1e9),
            "fresh": result.fresh,
            "full": len(bench.loader) - bool(bench.short),
            "seeds": bench.order.take_seeds() if bench.order else [],
        }
        bench.log.write("round", of=self.name, number=number, attempt=bench.attempt, **fields)
        return round_of(fields)
