"""The honesty of one target: an honesty round among its timed ones, a second look at what it says, and the audit."""

from __future__ import annotations

import math
import time
from dataclasses import asdict, replace

from proofmark.inference.timing.bench import Bench
from proofmark.inference.timing.timing import Timing
from proofmark.measuring.agreement import Answers
from proofmark.measuring.honesty import probe, recognition, timed_answers, timed_pace
from proofmark.measuring.window import Compute, Rests, trees_of
from proofmark.monitoring.contention import CONTENDED, ContentionMeter
from proofmark.record.parts import Check

SECOND_CHANCES = 10
"""Honesty rounds more, over some 10 s, before the timed rounds are doubted."""

APPEALS = 3
"""Times that two timed rounds and a honesty round are run again before an engine is accused of being faster then."""


class HonestyRound:
    """Probes the target called `name`, and writes the checks that it is held to to the log."""

    def __init__(
        self, bench: Bench, name: str, compute: Compute, reference: Compute | None, precision: str | None = None
    ) -> None:
        """`reference` is what answers are compared with: the framework in float32, if there is a model. `precision` is
        the target's, where that is not the tested one."""
        self._bench, self._name, self._compute, self._reference = bench, name, compute, reference
        self._precision = precision or str(bench.config.effective_precision)
        self._fastest_new = float("inf")

    def probe(self) -> None:
        """The honesty round."""
        begun = time.perf_counter()
        self._hold(self._probed())
        self._bench.log.write("probed", of=self._name, seconds=time.perf_counter() - begun)

    def hold_pace(self, timing: Timing) -> None:
        """The timed rounds, of the target itself or of one that is to be as fast, against the honesty round.

        That one may have met a busy machine: before it accuses, it is run again, its answers checked too.
        """
        apart = {*trees_of(self._compute), *trees_of(timing.compute)}
        meter, check = ContentionMeter(apart=tuple(apart)), self._pace(timing)
        for attempt in range(SECOND_CHANCES):
            if check.passed or self._bench.accused:
                break
            time.sleep(0.2 * attempt)
            check = self._probed_again(timing)
        if not check.passed and not self._bench.accused:
            check = self._appeal(timing, check)
        if not check.passed and not self._bench.accused:
            check = self._excused(check, meter.seen().others)
        self._hold([check])

    def hold_answers_timed(self, answers: Answers) -> None:
        """Rows of the timed rounds' answers, against the reference."""
        bench = self._bench
        if answers.taken:
            asked = self._reference, self._compute, bench.vendor.synchronize, self._precision
            self._hold([timed_answers(answers, *asked, bench.loader)])

    def audit(self, other: Compute, reference: Compute, timing: Timing) -> None:
        """Compare the target with the same compiler's engine for a model with other weights: as it is now, and as fast
        as its timed rounds were, since it can tell that it is audited."""
        bench = self._bench
        for _ in range(bench.config.warmup):
            other(bench.first)
        self._hold(recognition(bench.loader, self._compute, other, bench.vendor.synchronize))
        others = HonestyRound(bench, f"{self._name} of other weights", other, reference)
        if isinstance(self._compute, Rests):
            self._compute.rest()  # it was timed alone: threads that wait for its next call would slow the other down
        others.probe()
        others.hold_pace(timing)

    def _probed(self) -> list[Check]:
        bench = self._bench
        asked = bench.vendor.synchronize, self._reference, self._precision
        checks, full, last = probe(bench.loader, self._compute, *asked, bench.remainder)
        batches = len(bench.loader) - bool(bench.short)
        a_pass = batches * full + (last if bench.short else 0.0)
        self._fastest_new = min(self._fastest_new, a_pass)
        return checks

    def _pace(self, timing: Timing) -> Check:
        return timed_pace(self._fastest_new, timing.fastest, len(self._bench.loader))

    def _probed_again(self, timing: Timing) -> Check:
        self._hold([failed for failed in self._probed() if not failed.passed])
        return self._pace(timing)

    def _appeal(self, timing: Timing, check: Check) -> Check:
        """The machine may have become busier since: then timed rounds take longer now, as long as new inputs do.

        Two of them, so that there is one without new inputs right before it. They do not count, but where they clear
        an engine there is no result: its speed could not be had a second time.
        """
        then, batches = timing.fastest, len(self._bench.loader)
        again = Timing(self._bench, f"{timing.name} once more", timing.compute)
        again.warm_up()
        self._fastest_new = float("inf")
        for _ in range(APPEALS):
            for number in (1, 2):
                again.time(number, 2)
            check = self._probed_again(again)
            if check.passed or self._bench.accused:
                break
        if check.passed:
            now, before = (f"{seconds / batches * 1e3:.3g} ms" for seconds in (again.fastest, then))
            what = f"timed again, the {timing.name} took {now} a batch instead of {before}"
            self._bench.log.write("disturbed", what=what)
        return check

    def _excused(self, check: Check, others: float) -> Check:
        """On a machine that others use nobody can tell why an engine is slow: no accusation, and no result."""
        if others < CONTENDED:
            return check
        contention = f"other processes took {others:.0%} of the cores"
        what = f"{contention} while the {self._name} took {check.figure:.3g} times as long untimed"
        self._bench.log.write("disturbed", what=what)
        return replace(check, passed=True, bound=None, meaning=f"no bound holds: {contention}")

    def _hold(self, checks: list[Check]) -> None:
        """Log checks, and accuse the target of those that failed."""
        for check in checks:
            name = check.name if self._name == "engine" else f"{check.name} ({self._name})"
            finite = check.figure is not None and math.isfinite(check.figure)
            fields = asdict(check) | {"name": name, "figure": check.figure if finite else None}
            self._bench.log.write("check", attempt=self._bench.attempt, **fields)
            if not check.passed:
                self._bench.accuse(self._name, f"fails '{check.name}': {check.finding}")
