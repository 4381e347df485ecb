"""What drawings of an inference case may show: nothing that tells of a speed where that is withheld."""

from __future__ import annotations

from typing import Literal

from proofmark.inference.outcome.figures import ranked
from proofmark.inference.outcome.reasons import Side
from proofmark.inference.outcome.record import Measurement, RunRecord, Step
from proofmark.literal import plural
from reports.content import text
from reports.content.view import View


class CaseView(View[RunRecord]):
    """A run record as it is drawn."""

    @property
    def items(self) -> str:
        """What the case's items are called, several of them."""
        return plural(self.record.item)

    @property
    def ranked(self) -> Side:
        """The side that the case is ranked by."""
        return ranked(self.record)

    def measurement(self, side: Side) -> Measurement | None:
        """The framework's or the engine's measurement."""
        return self.record.framework if side == "framework" else self.record.engine

    @property
    def scores(self) -> dict[str, float]:
        """Accuracies that there are, by who reached them. At fp32 the framework has only one."""
        precision = self.record.precision
        named = {"framework_fp32": "fp32 framework", "framework": f"framework at {precision}"}
        named["engine"] = f"engine at {precision}"
        known = {name: self.figures.get(f"accuracy_{key}") for key, name in named.items()}
        return {
            name: float(figure.value)
            for name, figure in known.items()
            if figure and figure.value is not None and figure.repeats is None
        }

    @property
    def floor(self) -> float | None:
        """The accuracy that the engine must keep; None without an engine or a framework."""
        value = self.shown("engine_floor").value
        return value if isinstance(value, float) else None

    def step_seconds(self, step: Step) -> str:
        """Of a step; those of a measurement are as telling as a speed."""
        if step.seconds is None:
            return text.MISSING
        return self.withheld if self.withheld and step.speeds() else text.number(step.seconds)

    def rounds(self, side: Side, name: Literal["whole", "core"]) -> list[float]:
        """Throughput of each round, items per second. Empty where it is withheld or was not measured."""
        measured = self.measurement(side)
        if measured is None or self.withheld:
            return []
        spans = [(r.items, r.whole_seconds if name == "whole" else r.core_seconds) for r in measured.rounds]
        return [items / seconds for items, seconds in spans if seconds > 0]

    def spans(self, side: Side) -> list[tuple[float, float, float]]:
        """Each round's begin and end, seconds since the record's `zero`, and its items per second over the whole of it.

        Empty where speed is withheld or was not measured.
        """
        measured = self.measurement(side)
        if measured is None or self.withheld:
            return []
        begins = [(r, r.started - self.record.zero) for r in measured.rounds if r.whole_seconds > 0]
        return [(begin, begin + r.whole_seconds, r.items / r.whole_seconds) for r, begin in begins]

    @property
    def window(self) -> tuple[float, float] | None:
        """Where the timed rounds lie, seconds since the record's `zero`. As telling as a speed, withheld with it."""
        seen = self.record.monitoring
        if seen is None or seen.window is None or self.withheld:
            return None
        return seen.window[0] - self.record.zero, seen.window[1] - self.record.zero
