"""What may be shown of a run record, and how. Every report looks at records through this.

That a run without a valid result shows no speed is decided by `withholding`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar
from weakref import WeakValueDictionary

from proofmark.literal import digits_apart
from proofmark.record.envelope import CaseRecord
from proofmark.record.figures import Figure, FigureKind
from proofmark.record.parts import Check, Verdict, VerdictKind
from reports.content import text, withholding

Record = TypeVar("Record", bound=CaseRecord)


@dataclass(frozen=True)
class Shown:
    """A figure as people read it: its text with its unit, the bare value, and why there is none or how it was got."""

    text: str
    value: float | int | str | None = None
    reason: str | None = None

    def __str__(self) -> str:
        return f"{self.text} ({self.reason})" if self.reason else self.text

    @property
    def plain(self) -> str:
        """For machines: the bare value, or 'null: why', or what it is withheld by."""
        if isinstance(self.value, str | int):
            return str(self.value)
        if self.value is not None:
            return f"{self.value:.6g}"
        return f"null: {self.reason}" if self.reason else self.text


def missing(reason: str | None) -> Shown:
    """A figure that nobody has, and why."""
    return Shown(text.MISSING, reason=reason or "no reason recorded")


def shown(figure: Figure, withheld: str | None = None) -> Shown:
    """A figure, where it may be shown, else `withheld`."""
    if figure.value is None:
        return missing(figure.reason)
    if withheld and figure.kind.tells_of_speed:
        return Shown(withheld)
    return Shown(_written(figure, figure.value), figure.value, figure.note)


def _written(figure: Figure, value: float | str) -> str:
    """The value with its unit, spread and target."""
    if isinstance(value, str):
        return value
    if figure.kind is FigureKind.QUALITY:
        unit = "" if figure.unit == "1" else f"{figure.unit} "
        return f"{unit}{text.score(value, figure.target)}{_held(figure, value)}"
    if figure.unit == "B":
        return text.gibibytes(value)
    if figure.unit == "share":
        return text.percent(value)
    if figure.unit.startswith("FLOP"):
        return text.scaled(value, figure.unit)
    number = str(value) if isinstance(value, int) else text.number(value)
    spread = f" ± {text.number(figure.spread, 2)}" if figure.spread is not None else ""
    return f"{number}{spread}" + ("" if figure.unit == "1" else f" {figure.unit}")


def _held(figure: Figure, value: float) -> str:
    """On which side of its target a value lies; at it, it is good enough."""
    if figure.target is None:
        return ""
    if figure.lower_is_better:
        return f" {'≤' if value <= figure.target else '>'} {figure.target:.15g}"
    return f" {'≥' if value >= figure.target else '<'} {figure.target:.15g}"


_VISIBLE: WeakValueDictionary[int, CaseRecord] = WeakValueDictionary()
"""Records of which every text can be seen: each is looked through once, however many views it has."""


def _looked_through(record: Record) -> Record:
    """The record with every text in it visible."""
    if _VISIBLE.get(id(record)) is record:
        return record
    json_text = record.model_dump_json()  # there what nobody sees is written as it is, or with a backslash
    seen: Record = record if json_text.isprintable() and "\\" not in json_text else text.all_visible(record)
    _VISIBLE[id(seen)] = seen
    return seen


class View(Generic[Record]):
    """A record as readers may see it: every text in it can be seen. Speeds are shown by `shown` alone."""

    def __init__(self, record: Record) -> None:
        self.record: Record = _looked_through(record)
        self.verdict: Verdict = self.record.verdict or _UNJUDGED
        self.withheld: str | None = withholding.withheld(self.verdict)
        self.figures: Mapping[str, Figure] = {figure.key: figure for figure in self.record.figures}
        self._shown: dict[str, Shown] = {}

    @property
    def name(self) -> str:
        """Suite, case and whatever else the run's folder is called by."""
        return self.record.run_name

    @property
    def variant(self) -> str:
        """What tells it from other runs of the case, in a line."""
        parts = {"vendor": self.record.vendor, **self.record.variant, "precision": self.record.precision}
        return text.printable(", ".join(parts.values()))

    def shown(self, key: str) -> Shown:
        """The figure of that key, as it may be shown."""
        if key not in self.figures:
            return missing("not among the record's figures")
        if key not in self._shown:  # a page asks for some of many
            self._shown[key] = shown(self.figures[key], self.withheld)
        return self._shown[key]

    def listed(self) -> Iterator[tuple[Figure, Shown]]:
        """All figures, each once."""
        for figure in self.figures.values():
            if figure.repeats is None:
                yield figure, self.shown(figure.key)

    def headlines(self) -> Iterator[tuple[Figure, Shown]]:
        """The figures for a table of all runs; the first is the one that the run is ranked by."""
        for figure in self.figures.values():
            if figure.headline:
                yield figure, self.shown(figure.key)

    def public(self) -> dict[str, Any]:
        """The record as plain JSON values, without speeds where they are withheld."""
        return withholding.public(self.record, self.verdict)


_UNJUDGED = Verdict(kind=VerdictKind.ERROR, reasons=("the record has no verdict",))


def with_other_name(name: str, figure: Figure) -> str:
    """A figure's name or label, with what others call it in brackets: core (p_core)."""
    return f"{name} ({figure.also})" if figure.also else name


def explained(records: Sequence[CaseRecord]) -> dict[str, str]:
    """What the figures of these records mean, each once, by full name."""
    figures = [figure for record in records for figure in record.figures if figure.meaning]
    return {text.visible(with_other_name(figure.label, figure)): text.visible(figure.meaning) for figure in figures}


def check_figure(check: Check) -> Shown:
    """A check's figure, to three digits, and more where it can't be told apart from its bound."""
    if check.figure is None:
        return missing("not a finite number")
    return Shown(text.brief(check.figure, digits_apart(check.figure, check.bound)), check.figure)


def check_bound(check: Check) -> str:
    """A check's bound, to as many digits."""
    return text.MISSING if check.bound is None else text.brief(check.bound, digits_apart(check.figure, check.bound))
