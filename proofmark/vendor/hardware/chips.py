"""Peaks of chips, looked up by the detected name. An unknown chip has no peak, never a default."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from proofmark.errors import ConfigurationError, Problem
from proofmark.literal import literal
from proofmark.record.provenance import Chip, Peak
from proofmark.rules.yaml.arithmetic import parse_product
from proofmark.rules.yaml.strict import load_mapping
from proofmark.rules.yaml.typed import problems_of
from proofmark.vendor.contract import Vendor
from proofmark.vendor.hardware.devices import usable_indices
from proofmark.vendor.hardware.pattern import LONGEST, MOST_WAYS, ways

MOST = 1e19
"""FLOP/s that no chip of this decade reaches: a peak above it has a unit wrong."""

WIDEST, HOTTEST, UNITS = 1e16, 1e6, 1 << 20
"""Bytes per second, watts and units of a chip, that none has."""

Precision = Literal["fp64", "fp32", "tf32", "fp16", "bf16", "fp8", "int8", "fp4"]


class PeakEntry(BaseModel):
    """A dense peak of one unit of a chip, FLOP/s (or integer OP/s for int8)."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    flops: float = Field(ge=1, lt=MOST)
    source: str = Field(pattern=r"\S")
    achievable: float | None = Field(None, ge=1, lt=MOST, description="measured, FLOP/s")

    @field_validator("flops", "achievable", mode="before")
    @classmethod
    def _product(cls, value: Any) -> Any:
        return None if value is None else parse_product(value)

    @model_validator(mode="after")
    def _is_the_peak(self) -> Self:
        if self.achievable is not None and self.achievable > self.flops:
            raise ValueError(f"achievable {self.achievable:.4g} is above the peak, {self.flops:.4g}")
        return self


class ChipEntry(BaseModel):
    """One chip. `match` is a regular expression searched for in the detected name."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = Field(min_length=1)
    match: str = Field(min_length=1)
    peaks: dict[Precision, PeakEntry]
    memory_bandwidth: float | None = Field(None, gt=0, lt=WIDEST, description="bytes per second, of the whole chip")
    link_bandwidth: float | None = Field(None, gt=0, lt=WIDEST, description="bytes per second, both directions")
    tdp: float | None = Field(None, gt=0, lt=HOTTEST, description="watts")
    source: str | None = Field(None, description="of bandwidths and power")

    @field_validator("memory_bandwidth", "link_bandwidth", "tdp", mode="before")
    @classmethod
    def _product(cls, value: Any) -> Any:
        return None if value is None else parse_product(value)

    @field_validator("match")
    @classmethod
    def _is_a_pattern(cls, value: str) -> str:
        ways(value)
        return value


class _ChipsFile(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    chips: tuple[ChipEntry, ...]


def load_chips(path: Path) -> tuple[ChipEntry, ...]:
    """Read a vendor's `chips.yaml`; no file is no chips.

    Raises:
        ConfigurationError: with every problem in it.
    """
    if not path.exists() and not path.is_symlink():
        return ()
    try:
        chips = _ChipsFile.model_validate(load_mapping(path, path.parent)).chips
    except ValidationError as error:
        raise ConfigurationError(problems_of(error, str(path), model=_ChipsFile)) from None
    twice = _doubled([chip.name for chip in chips]) + _doubled([chip.match for chip in chips])
    if twice:
        raise ConfigurationError([Problem(str(path), name, "is defined more than once") for name in twice])
    if sum(ways(chip.match) for chip in chips) > MOST_WAYS:
        what = "could take minutes to be searched for; expected fewer of * + ? and | in all patterns together"
        raise ConfigurationError([Problem(str(path), "match", what)])
    return chips


def _doubled(names: Sequence[str]) -> list[str]:
    return sorted({name for name in names if names.count(name) > 1})


def find_chip(detected: str, chips: tuple[ChipEntry, ...]) -> ChipEntry | None:
    """The first entry whose pattern is found in the detected name, ignoring case."""
    return next((chip for chip in chips if re.search(chip.match, detected[:LONGEST], re.IGNORECASE)), None)


def count_alike(vendor: Vendor, path: Path) -> tuple[int, str]:
    """How many of the devices that a session may use, from the first on, are one chip; and, to be read after the
    number, which chip comes next, if one does, or that the vendor finds fewer than its user names.

    Raises:
        ConfigurationError: `path` is wrong.
    """
    chips, found = load_chips(path), {device.index: device.name for device in vendor.devices()}
    names = [None if index is None else found.get(index) for index in usable_indices(vendor)] if found else []
    if None in names and len(names) == len(found):  # it numbers those that it is shown, in their order
        names = [*found.values()]
    kinds = [_kind(name, chips) for name in names]
    for count, kind in enumerate(kinds):
        if kind != kinds[0] and None not in (kind, kinds[0]):
            chosen = f"; {variable} chooses" if (variable := vendor.visible_devices_variable) else ""
            return count, f", and then another chip ({names[count]}{chosen})"
    if len(found) < len(names):
        return len(found), f", of {len(names)} that {vendor.visible_devices_variable} names"
    return len(names), ""


def _kind(name: str | None, chips: tuple[ChipEntry, ...]) -> str | None:
    """What chip a device is, by its name, which may have a memory's size in it or the like."""
    entry = find_chip(name, chips) if name is not None else None
    return entry.name if entry else name


def describe_chip(detected: str, units: int, precision: str, path: Path) -> Chip:
    """The detected chip with its peak at `precision`, or with the reason why there is none.

    Raises:
        ConfigurationError: `path` is wrong.
    """
    if type(units) is not int or not 1 <= units <= UNITS:
        what = f"expected a whole number of at least 1 from chip_units(), found {literal(units)[:80]}"
        raise ConfigurationError([Problem(str(path.with_name("__init__.py")), "chip_units", what)])
    entry = find_chip(detected, load_chips(path))
    if entry is None:
        return Chip(name=detected, units=units, peak_missing=f"{path.name} of this vendor doesn't know '{detected}'")
    peak = next((value for key, value in entry.peaks.items() if key == precision), None)
    if peak is None:
        missing = f"{path.name} has no {precision} peak for {entry.name}"
        return Chip(name=detected, units=units, peak_missing=missing, memory_bandwidth=entry.memory_bandwidth)
    if peak.flops * units >= MOST:
        what = (
            f"{peak.flops:.4g} FLOP/s of each of {units} units (chip_units()) are more than any device has, {MOST:.0e}"
        )
        raise ConfigurationError([Problem(str(path), f"{entry.name}.peaks.{precision}.flops", what)])
    return Chip(
        name=detected,
        units=units,
        peak=Peak(
            flops_per_second=peak.flops * units,
            precision=precision,
            source=peak.source,
            achievable=peak.achievable * units if peak.achievable else None,
        ),
        memory_bandwidth=entry.memory_bandwidth,
    )
