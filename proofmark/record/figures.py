"""Figures: what a record says of its run in numbers, each made in one place. Every report walks over them."""

from __future__ import annotations

from enum import StrEnum
from typing import Self

from pydantic import Field, model_validator

from proofmark.record.parts import Part


class FigureKind(StrEnum):
    """What a figure tells of. A speed, and a cost that tells of one, is withheld where the verdict withholds it."""

    SPEED = "speed"
    COST = "cost"
    QUALITY = "quality"
    FACT = "fact"


class Figure(Part):
    """A value with its unit, or the reason why there is none: exactly one of the two."""

    key: str = Field(pattern=r"^[a-z0-9_]+$", description="unique among the record's")
    label: str = Field(min_length=1, description="as a reader calls it")
    unit: str = Field(min_length=1, description="'1' for a bare number, 'share' for a part of 1, 'text' for a word")
    kind: FigureKind
    value: float | int | str | None = None
    spread: float | None = Field(default=None, description="standard deviation over rounds or runs, in the same unit")
    reason: str | None = Field(default=None, description="why there is no value")
    meaning: str = Field(default="", description="in a sentence, for --explain and the page")
    also: str | None = Field(default=None, description="what other suites call it: p_core")

    @model_validator(mode="after")
    def _one_of_two(self) -> Self:
        if (self.value is None) == (self.reason is None):
            raise ValueError(f"figure {self.key}: expected a value, or the reason why there is none")
        return self
