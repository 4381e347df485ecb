"""The pieces that records of every suite are made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from enum import StrEnum
from functools import cache
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from proofmark.literal import MISSING, digits_apart
from proofmark.wall.isolation import Isolation


class Part(BaseModel):
    """A frozen piece of a record: no unknown key, no NaN, no infinity."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, defer_build=True)

    SPEEDS: ClassVar[frozenset[str]] = frozenset()
    """Fields that are a speed or tell of one: no report shows them where the verdict withholds speeds."""

    ADDED: ClassVar[frozenset[str]] = frozenset()
    """Fields that are null in older records, though their logs tell them: a record is judged by what those say."""

    def speeds(self) -> frozenset[str]:
        """Names of the fields of this very part that tell of a speed."""
        return self.SPEEDS


Finite = Annotated[float, Field(allow_inf_nan=False)]
Share = Annotated[float, Field(ge=0, le=1)]
Seconds = Annotated[float, Field(gt=-1e12, lt=1e12)]
"""Negative ones can be read: it is the verdict that refuses them."""

Colour = Literal["green", "cyan", "yellow", "red"]


class VerdictKind(StrEnum):
    """What the referee says of a case run, in rising order of gravity. All that tells kinds apart is in this table.

    Of each: the session's exit code, above pytest's own (0 to 5); the sign and the colour that it is shown with, red
    for a failure; and whether its speeds may be shown. Accuracy first: of a run that is not valid they are withheld.
    """

    PASS = "PASS", 0, "✓", "green", True
    UNSUPPORTED = "UNSUPPORTED", 10, "○", "cyan", False
    AMBIGUOUS = "AMBIGUOUS", 11, "?", "yellow", True
    INSUFFICIENT = "INSUFFICIENT", 12, "?", "yellow", True
    FAIL_PERF = "FAIL_PERF", 13, "✗", "red", True
    FAIL_ACCURACY = "FAIL_ACCURACY", 14, "✗", "red", False
    FAIL_HONESTY = "FAIL_HONESTY", 15, "✗", "red", False
    FAIL_LEGALITY = "FAIL_LEGALITY", 16, "✗", "red", False
    ERROR = "ERROR", 17, "✗", "red", False

    exit_code: int
    sign: str
    colour: Colour
    shows_speed: bool

    def __new__(cls, name: str, exit_code: int, sign: str, colour: Colour, shows_speed: bool) -> Self:
        """A line of the table."""
        kind = str.__new__(cls, name)
        kind._value_ = name
        kind.exit_code, kind.sign, kind.colour, kind.shows_speed = exit_code, sign, colour, shows_speed
        return kind

    @property
    def failed(self) -> bool:
        """Whether somebody will want to know why, and what the run left."""
        return self.colour == "red"


class Verdict(Part):
    """The kind, and every reason that led to it in full sentences."""

    kind: VerdictKind
    reasons: tuple[str, ...] = ()
    expected: bool = Field(default=False, description="of UNSUPPORTED: the vendor's own file lists it")


class Identity(Part):
    """What a dataset or a set of weights is, whatever it is called and wherever it lies."""

    name: str
    sha256: str
    items: int | None = None
    origin: str | None = None


FIRST = "0" * 64
"""What the first event of a chain follows."""


class Seal(Part):
    """What a chain of events is by the word of who wrote it: how many, and the digest of the last."""

    events: int = Field(default=0, ge=0)
    head: str = Field(default=FIRST, pattern="^[0-9a-f]{64}$")


class Rate(Part):
    """All items over all seconds, and beside it how far the rates of the single rounds (or runs) lie apart.

    `stdev` is their sample standard deviation, null for one round.
    """

    value: float = Field(description="items per second")
    stdev: float | None
    min: float
    max: float

    @property
    def noise(self) -> float | None:
        """The standard deviation as a share of the value; None for one round."""
        return self.stdev / self.value if self.stdev is not None and self.value > 0 else None


class Contention(Part):
    """Shares of all the cores that a session may use over some time, 0 to 1."""

    others: Share = Field(description="taken by what the session did not start, a virtual machine's host included")
    stolen: Share = Field(description="the part that a virtual machine's host took")
    beside: Annotated[float, Field(ge=0)] = Field(
        default=0.0,
        description="cores that were kept busy by what the session has started beside it: of an inference its monitor",
    )
    idle: Share
    clock_mhz: float | None = Field(default=None, description="mean of all cores at the end; null: not readable")
    beyond: tuple[Annotated[int, Field(ge=0)], ...] = Field(
        default=(), description="cores that the session may not use, and some process that it started may"
    )


class Flops(Part):
    """Floating-point operations per item, a multiply-add counted as two."""

    declared: float
    counted: float | None = None
    published: float | None = Field(default=None, description="as another suite declares them for the same task")
    convention: Literal["counted", "flagperf"] = Field(default="counted", description="by whose FLOPs MFU is shown too")


class Utilisation(Part):
    """Model FLOPs utilisation: share of the chip's dense peak, or null with a reason."""

    SPEEDS = frozenset({"mfu"})

    mfu: float | None = None
    reason: str | None = None


class Memory(Part):
    """Bytes; null where nothing could read it."""

    host_peak_bytes: int | None = None
    device_peak_bytes: int | None = None
    device_total_bytes: int | None = None


class Series(Part):
    """Readings over time: of very many each stretch's mean, of temperature and memory its largest. `device` is null for
    the host; times are seconds since the epoch."""

    name: str
    unit: str
    device: int | None
    node: int | None = Field(default=None, description="null where there is only one")
    times: tuple[float, ...]
    values: tuple[float, ...]


class Monitoring(Part):
    """What the monitor saw. `window` spans the timed rounds of the ranked measurement."""

    SPEEDS = frozenset({"samples", "window", "series", "energy_joules", "energy_per_item", "throttled_share"})

    samples: int
    window: tuple[float, float] | None
    series: tuple[Series, ...] = ()
    energy_joules: float | None = Field(default=None, description="within the window, all devices")
    energy_method: str | None = None
    energy_per_item: float | None = Field(default=None, description="joules")
    throttled: tuple[str, ...] = Field(
        default=(), description="why a device ran slower than it could, within the window"
    )
    throttled_share: float | None = Field(
        default=None,
        ge=0,
        le=1,
        description="of the readings in the window, those in which one did; null: unknown",
    )
    foreign_processes: tuple[int, ...] = Field(default=(), description="of others, on a device, within the window")
    failures: tuple[str, ...] = Field(default=(), description="what was wrong with the monitor")
    isolation: Isolation | None = Field(default=None, description="of its process, by the first line of its own log")


@dataclass(frozen=True)
class Check:
    """A check of honesty: its figure, the bound that it is held to, and what failing would mean.

    In a record the figure is null where it is not a finite number.
    """

    __pydantic_config__ = ConfigDict(extra="forbid")

    name: str
    passed: bool
    figure: Finite | None
    bound: Finite | None
    meaning: str

    @property
    def finding(self) -> str:
        """What failing means, with the figure and its bound."""
        digits = digits_apart(self.figure, self.bound)
        figure, bound = (MISSING if each is None else f"{each:.{digits}g}" for each in (self.figure, self.bound))
        return f"{self.meaning} ({figure}, bound {bound})"

    @classmethod
    def read(cls, event: Mapping[str, Any]) -> Check:
        """The check that an event tells of; the event may have further fields.

        Raises:
            ValidationError: a field is of another type.
            KeyError: it lacks one.
        """
        reader, names = _check_reader()
        return reader.validate_python({name: event[name] for name in names})


@cache
def _check_reader() -> tuple[TypeAdapter[Check], tuple[str, ...]]:
    """What reads one, and its fields."""
    return TypeAdapter(Check), tuple(field.name for field in fields(Check))


class Kept(Part):
    """Something that a failed run leaves to look at, or to go on from."""

    what: str
    path: str = Field(description="within the folder of the run, if it isn't absolute")
