"""Figures: what a record says of its run in numbers, each made in one place. Every report walks over them."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Any, Self

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer, model_validator

from proofmark.record.parts import Part

MOST = 1e300
"""What is larger, in whatever unit, was not measured; an integer may be too large to be shown."""


class FigureKind(StrEnum):
    """What a figure tells of. A speed and a cost (time, energy) are withheld where the verdict withholds a speed."""

    SPEED = "speed"
    COST = "cost"
    QUALITY = "quality"
    FACT = "fact"

    @property
    def tells_of_speed(self) -> bool:
        """Whether the verdict may withhold it."""
        return self in (FigureKind.SPEED, FigureKind.COST)


class Figure(Part):
    """A value with its unit, or the reason why there is none: exactly one of the two.

    Parts of one thing are called by it and their own name, as in 'latency: p50', and may share a line.
    """

    key: str = Field(pattern=r"^[a-z0-9_]+$", description="unique among the record's")
    label: str = Field(min_length=1, description="as a reader calls it")
    unit: str = Field(min_length=1, description="'1' for a bare number, 'share' for a part of 1, 'text' for a word")
    kind: FigureKind
    of: str | None = Field(default=None, description="whose it is, where several have the like: engine, framework")
    value: float | int | str | None = None
    spread: float | None = Field(default=None, description="standard deviation over rounds or runs, in the same unit")
    target: float | None = Field(default=None, description="what it is held against, in the same unit")
    lower_is_better: bool = Field(default=False, description="of what has a target")
    note: str | None = Field(default=None, description="what belongs beside the value: how it was read")
    reason: str | None = Field(default=None, description="why there is no value")
    meaning: str = Field(default="", description="in a sentence, for --explain and the page")
    also: str | None = Field(default=None, description="what other suites call it: p_core")
    headline: bool = Field(default=False, description="whether it stands in the table of all runs")
    repeats: str | None = Field(
        default=None, description="key of the figure that it is by another name: what lists all figures leaves it out"
    )

    @model_validator(mode="after")
    def _one_of_two(self) -> Self:
        if (self.value is None) == (self.reason is None):
            raise ValueError(f"figure {self.key}: expected a value, or the reason why there is none")
        if isinstance(self.value, str) != (self.unit == "text") and self.value is not None:
            raise ValueError(f"figure {self.key}: expected a text in unit 'text', a number in any other")
        if isinstance(self.value, int | float) and not abs(self.value) < MOST:
            raise ValueError(f"figure {self.key}: expected a number below {MOST:g}, nothing larger is measured")
        return self

    @model_serializer(mode="wrap")
    def _short(self, whole: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Without what it does not have."""
        return {
            name: value
            for name, value in whole(self).items()
            if name == "value" or (value is not None and value is not False and value != "")
        }

    def speeds(self) -> frozenset[str]:
        """Its value, where that tells of a speed."""
        return frozenset({"value", "spread", "note"}) if self.kind.tells_of_speed else frozenset()

    @property
    def name(self) -> str:
        """What it is called beside those of others: engine core."""
        return f"{self.of} {self.label}" if self.of else self.label

    def known_as(self, key: str, **changes: Any) -> Figure:
        """The same figure by another key, for a table of all runs."""
        return self.model_copy(update={"key": key, "repeats": self.key, **changes})


def refuse_doubled(figures: Sequence[Figure]) -> None:
    """Hold figures to have keys of their own.

    Raises:
        ValueError: two have one.
    """
    keys = [figure.key for figure in figures]
    if len(set(keys)) < len(keys):
        doubled = sorted({key for key in keys if keys.count(key) > 1})
        raise ValueError(f"two figures have one key: {', '.join(doubled)}")


def valued(value: float | None, reason: str | None) -> dict[str, Any]:
    """A figure's value, or why there is none: what is not a finite number says nothing."""
    if value is not None and not abs(value) < MOST:
        return {"reason": "not a finite number"}
    return {"value": value} if value is not None else {"reason": reason or "no reason recorded"}
