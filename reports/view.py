"""What may be shown of a run record, and how. Every report looks at records through this.

That a run without a valid result shows no speed is decided by `withholding`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from proofmark.inference.record import Measurement, RunRecord, Step
from proofmark.inference.verdict import judge
from proofmark.monitoring.contention import merged
from proofmark.record.parts import Rate, Verdict
from reports import reasons, text, withholding
from reports.reasons import Side

SIDES: tuple[Side, Side] = ("framework", "engine")


@dataclass(frozen=True)
class Figure:
    """One figure: its text with its unit, the bare value, and why there is none or how it was got."""

    text: str
    value: float | None = None
    reason: str | None = None

    def __str__(self) -> str:
        return f"{self.text} ({self.reason})" if self.reason else self.text


def missing(reason: str | None) -> Figure:
    """A figure that nobody has, and why."""
    return Figure(text.MISSING, reason=reason or "no reason recorded")


class CaseView:
    """A run record as readers may see it: every text in it can be seen."""

    def __init__(self, record: RunRecord) -> None:
        self.record: RunRecord = text.all_visible(record)
        self.verdict: Verdict = self.record.verdict or judge(self.record)

    @property
    def name(self) -> str:
        """Suite and case."""
        return f"{self.record.suite}/{self.record.case}"

    @property
    def compiler(self) -> str:
        """The compiler's name, or that there was none."""
        return self.record.compiler or "none (framework only)"

    @property
    def ranked(self) -> Side:
        """The side that the case is ranked by."""
        return "framework" if self.record.compiler is None else "engine"

    @property
    def items(self) -> str:
        """What the case's items are called, several of them."""
        return text.plural(self.record.item)

    @property
    def withheld(self) -> str | None:
        """What stands in place of a speed, or None where speeds may be shown."""
        return withholding.withheld(self.verdict)

    @property
    def seconds(self) -> Figure:
        """Of the run in all."""
        return _seconds(self.record.seconds, self.withheld)

    def step_seconds(self, step: Step) -> Figure:
        """Of a step; those of a measurement are as telling as a speed."""
        measured = step.name in withholding.MEASURED
        return _seconds(step.seconds, self.withheld if measured else None)

    @property
    def batch_size(self) -> Figure:
        """Items per batch."""
        value = self.record.config.get("batch_size")
        return missing("the case has no batch_size") if value is None else Figure(text.literal(value))

    def measurement(self, side: Side) -> Measurement | None:
        """The framework's or the engine's measurement."""
        return self.record.framework if side == "framework" else self.record.engine

    def speed(self, side: Side, name: Literal["whole", "core"]) -> Figure:
        """Throughput in items per second: all items over all seconds, and the standard deviation over the rounds."""

        def form(measured: Measurement) -> Figure:
            return self._rate(measured.whole if name == "whole" else measured.core)

        return self._speed(side, form)

    def loader(self, side: Side) -> Figure:
        """Items per second of the data loader alone."""
        return self._speed(side, lambda m: missing("not measured") if m.loader is None else self._rate(m.loader))

    def bound_by(self, side: Side) -> Figure:
        """What the whole throughput is limited by."""
        undecided = missing("the slowest two stages lie within the noise")
        return self._speed(side, lambda m: undecided if m.bound_by is None else Figure(m.bound_by))

    def _rate(self, rate: Rate) -> Figure:
        if rate.stdev is None:
            return Figure(f"{text.number(rate.value)} {self.items}/s (one round)", rate.value)
        return Figure(f"{text.number(rate.value)} ± {text.number(rate.stdev, 2)} {self.items}/s", rate.value)

    def core_lost(self, side: Side) -> Figure:
        """The share of the core throughput that went to loading beside it."""
        nothing = missing("nothing was loaded beside it")
        return self._speed(side, lambda m: nothing if m.core_lost is None else Figure(text.percent(m.core_lost)))

    def contention(self, side: Side) -> Figure:
        """The share of the machine's cores that others took in the timed rounds."""

        def form(measured: Measurement) -> Figure:
            seen = merged([(each.whole_seconds, each.contention) for each in measured.rounds if each.contention])
            if seen is None:
                return missing("not recorded")
            return Figure(f"{text.percent(seen.others)} of the cores, {text.percent(seen.idle)} idle", seen.others)

        return self._speed(side, form)

    @property
    def latencies(self) -> list[str]:
        """Names of the latency figures that either side has: mean, and percentiles."""
        sides = [measured.latency_ms for side in SIDES if (measured := self.measurement(side))]
        return list(dict.fromkeys(name for latency_ms in sides for name in latency_ms))

    def latency(self, side: Side, name: str) -> Figure:
        """Milliseconds per batch: the mean or a percentile."""

        def form(measured: Measurement) -> Figure:
            value = measured.latency_ms.get(name)
            if value is None:
                return missing(f"{measured.latency_batches} batches are too few")
            return Figure(f"{text.number(value)} ms", value)

        return self._speed(side, form)

    @property
    def mfu(self) -> Figure:
        """Model FLOPs utilisation, a share of the chip's dense peak."""
        utilisation = self.record.utilisation
        if utilisation.mfu is None:
            return missing(utilisation.reason or self.record.chip.peak_missing)
        return Figure(self.withheld) if self.withheld else Figure(text.percent(utilisation.mfu), utilisation.mfu)

    @property
    def energy(self) -> Figure:
        """Joules within the timed window, all devices together, and how they were read."""
        return self._energy("energy_joules", "J")

    @property
    def energy_per_item(self) -> Figure:
        """Joules per item, and how they were read."""
        return self._energy("energy_per_item", f"J/{self.record.item}")

    @property
    def energy_method(self) -> Figure:
        """How energy was read."""
        energy = self.energy
        return energy if energy.value is None else Figure(energy.reason or "not recorded")

    def _energy(self, name: Literal["energy_joules", "energy_per_item"], unit: str) -> Figure:
        seen = self.record.monitoring
        if seen is None:
            return missing(reasons.unless_ended(self.record, self.ranked, "there was no monitor"))
        value: float | None = getattr(seen, name)
        if value is None:
            read = any(series.name == "power" for series in seen.series)
            reason = "readings do not span the timed window" if read else "nothing read power or energy"
            return missing(reasons.unless_ended(self.record, self.ranked, reason))
        if self.withheld:
            return Figure(self.withheld)
        return Figure(f"{text.number(value)} {unit}", value, seen.energy_method)

    @property
    def flops_rate(self) -> Figure:
        """FLOP/s reached, as MFU has it: FLOPs per item, counted or else declared, times the core throughput."""
        flops = self.record.flops.counted or self.record.flops.declared
        if not flops:
            return missing("the case declares no FLOPs")

        def form(measured: Measurement) -> Figure:
            rate = flops * measured.core.value
            return Figure(text.scaled(rate, "FLOP/s"), rate)

        return self._speed(self.ranked, form)

    @property
    def flops_per_item(self) -> str:
        """FLOPs per item: declared by the case, and counted."""
        flops = self.record.flops
        counted = "not counted" if flops.counted is None else f"{text.scaled(flops.counted, 'FLOP')} counted"
        return f"{text.scaled(flops.declared, 'FLOP')} per {self.record.item} declared, {counted}"

    @property
    def memory(self) -> dict[str, Figure]:
        """GiB at the peak, of the host and of the device."""
        memory = self.record.memory
        host, peak, total = memory.host_peak_bytes, memory.device_peak_bytes, memory.device_total_bytes
        of = f" of {text.gibibytes(total)}" if total is not None else ""
        return {
            "host": _bytes(host, "", reasons.unless_ended(self.record, self.ranked, "nothing read the host's memory")),
            "device": _bytes(
                peak, of, reasons.unless_ended(self.record, self.ranked, "nothing read the device's memory")
            ),
        }

    @property
    def scores(self) -> dict[str, Figure]:
        """Accuracies by who reached them. At fp32 the framework has only one."""
        accuracy, precision = self.record.accuracy, self.record.precision
        scores = {"fp32 framework": self.score("framework", accuracy.framework_fp32)}
        if precision != "fp32" or accuracy.framework != accuracy.framework_fp32:
            scores[f"framework at {precision}"] = self.score("framework", accuracy.framework)
        scores[f"engine at {precision}"] = self.score("engine", accuracy.engine)
        return scores

    @property
    def ranked_score(self) -> Figure:
        """The accuracy that the verdict goes by."""
        accuracy = self.record.accuracy
        return self.score(self.ranked, accuracy.engine if self.ranked == "engine" else accuracy.framework)

    @property
    def floor(self) -> Figure | None:
        """The accuracy that the engine must reach and what demands it; None without an engine or a framework.

        It is held to the target and to a share of the framework's: the larger one binds.
        """
        accuracy = self.record.accuracy
        fp32 = accuracy.framework_fp32
        if self.ranked == "framework" or fp32 is None or not math.isfinite(fp32):
            return None
        share = accuracy.gate * fp32
        if accuracy.target >= share:
            return Figure(text.score(accuracy.target), accuracy.target, "the target")
        return Figure(text.score(share), share, f"{100 * accuracy.gate:g} % of the fp32 framework's")

    def rounds(self, side: Side, name: Literal["whole", "core"]) -> list[float]:
        """Throughput of each round, items per second. Empty where it is withheld or was not measured."""
        measured = self.measurement(side)
        if measured is None or self.withheld:
            return []
        spans = [(r.items, r.whole_seconds if name == "whole" else r.core_seconds) for r in measured.rounds]
        return [items / seconds for items, seconds in spans if seconds > 0]

    def spans(self, side: Side) -> list[tuple[float, float, float]]:
        """Each round's begin and end, seconds since the run's start, and its items per second over the whole of it.

        Empty where speed is withheld or was not measured.
        """
        measured = self.measurement(side)
        if measured is None or self.withheld:
            return []
        begins = [(r, r.started - self.record.started) for r in measured.rounds if r.whole_seconds > 0]
        return [(begin, begin + r.whole_seconds, r.items / r.whole_seconds) for r, begin in begins]

    @property
    def window(self) -> tuple[float, float] | None:
        """Where the timed rounds lie, seconds since the run's start. As telling as a speed, and withheld with it."""
        seen = self.record.monitoring
        if seen is None or seen.window is None or self.withheld:
            return None
        return seen.window[0] - self.record.started, seen.window[1] - self.record.started

    def why_not(self, side: Side) -> str:
        """Why a side was not measured."""
        return reasons.why_not(self.record, side)

    def public(self) -> dict[str, Any]:
        """The record as plain JSON values, without speeds where they are withheld."""
        return withholding.public(self.record, self.verdict)

    def _speed(self, side: Side, form: Callable[[Measurement], Figure]) -> Figure:
        """The one place where a speed is shown, withheld, or missing."""
        measured = self.measurement(side)
        if measured is None:
            return missing(self.why_not(side))
        return Figure(self.withheld) if self.withheld else form(measured)

    def score(self, side: Side, value: float | None) -> Figure:
        """An accuracy that a side reached."""
        if value is None:
            return missing(reasons.why_no_score(self.record, side))
        if not math.isfinite(value):
            return missing("not a number")
        return Figure(text.score(value), value)


def _seconds(seconds: float | None, withheld: str | None) -> Figure:
    if seconds is None:
        return missing("it took no time of its own")
    return Figure(withheld) if withheld else Figure(f"{text.number(seconds)} s", seconds)


def _bytes(size: int | None, suffix: str, reason: str) -> Figure:
    return missing(reason) if size is None else Figure(f"{text.gibibytes(size)}{suffix}", size)
