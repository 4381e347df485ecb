"""What an event must hold: the types of its fields, kind by kind, and the reader of a line.

A line comes from a disk that others write to, from a process with a vendor's code in it, or from another host.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import fields
from typing import Annotated, Any, Literal, NotRequired, get_args, get_origin

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, TypeAdapter, ValidationError
from pydantic_core import from_json
from typing_extensions import TypedDict

from proofmark.errors import Problem, harmless
from proofmark.plain_json import first_of
from proofmark.record.parts import Identity
from proofmark.record.policy import Policy
from proofmark.record.provenance import Chip, Host, Known, Provenance
from proofmark.rules.aims import Aim, Better
from proofmark.rules.config import EffectiveConfig
from proofmark.rules.legality import Override
from proofmark.wall.isolation import Isolation

Event = dict[str, Any]

Count = Annotated[int, Field(ge=0, lt=1 << 63)]
Items = Annotated[int, Field(ge=1, lt=1 << 63)]
Positive = Annotated[int, Field(ge=1, lt=1 << 20)]
"""What is no count of data: processes, devices, trials."""

Seconds = Annotated[float, Field(ge=0, lt=1e12)]
Moment = Annotated[float, Field(ge=-62_135_596_800, lt=253_402_300_800)]
"""Seconds since the epoch, of the years 1 to 9999."""


def _none_or_some(seconds: float) -> float:
    if 0 < seconds < 1e-9:
        raise ValueError("no clock tells so short a time")
    return seconds


Measured = Annotated[Seconds, AfterValidator(_none_or_some)]
"""What something is divided by."""

Rate = Annotated[float, Field(ge=0, lt=1e30)]
Text = Annotated[str, Field(max_length=1 << 20)]
Line = Annotated[Text, AfterValidator(harmless)]
"""What others' code says in a sentence, and is told as such: none of it may begin a line of ours."""


class Fields(TypedDict):
    """A mapping with typed fields. Those of no known type are let through: nobody reads them."""

    __pydantic_config__ = ConfigDict(extra="allow", strict=True, allow_inf_nan=False)  # type: ignore[misc]


class Typed(Fields):
    """What every event has."""

    event: Text
    time: Moment
    clock: Count


_LONG_NUMBER = re.compile(rb"[\[:,\s]-?(?:9\d{18}|\d{20})")
"""An integer that may be 2^63 or more, which a moment in nanoseconds is not until the year 2262; not the digits of a
text, such as a digest, or those behind a point."""

_DIGITS = bytes.maketrans(b"123456789", b"0" * 9)
_LONG_RUN = b"0" * 19
"""Without so many digits in a row no line has a long number: looked for first, since it takes a tenth of the time."""


def _may_be_long(line: bytes) -> bool:
    """Whether an integer in a line may have more than 64 bits."""
    return _LONG_RUN in line.translate(_DIGITS) and _LONG_NUMBER.search(line) is not None


def _fits_64_bits(value: Any) -> bool:
    """Whether no integer of a parsed line needs more than 64 bits. The parser has bounded its depth."""
    if isinstance(value, dict):
        return all(map(_fits_64_bits, value.values()))
    if isinstance(value, list):
        return all(map(_fits_64_bits, value))
    return not isinstance(value, int) or value.bit_length() < 64


class EventReader:
    """Reads lines of a log. An event of a kind that nobody knows needs to have no more than its moment.

    Args:
        kinds: the events, each with its type.
        closed: for what others' code has said: an event has only what its type names, with one of an unknown kind
            only its moment. A line of three bytes a value takes 72 where it is kept.
    """

    def __init__(self, kinds: Mapping[str, Any], closed: bool = False) -> None:
        self.kinds = {name: TypeAdapter(kind).validator for name, kind in kinds.items()}
        self.names = {name: _names(kind) for name, kind in kinds.items()} if closed else None
        self._any = TypeAdapter(Typed).validator

    def read(self, line: bytes) -> Event:
        """One line's event.

        Raises:
            ValueError: it is none, or lacks a field, or has one of a wrong type; the text is one line.
        """
        try:
            event = from_json(line, allow_inf_nan=False)
        except ValueError:
            raise ValueError("not JSON") from None
        kind = event.get("event") if isinstance(event, dict) else None
        if not isinstance(kind, str):
            raise ValueError("no event")
        if kind in self.kinds and _may_be_long(line) and not _fits_64_bits(event):
            raise ValueError(f"{kind}: an integer is larger than 64 bits can hold")
        try:
            read = dict(self.kinds.get(kind, self._any).validate_python(event))
        except ValidationError as error:
            raise ValueError(f"{kind:.40}: {first_of(error)}") from None
        if self.names is None:
            return read
        names = self.names.get(kind, _MOMENT)
        return {name: value for name, value in read.items() if name in names}


_MOMENT = frozenset(Typed.__annotations__)


def _names(kind: Any) -> frozenset[str]:
    """The fields of an event's type, and of the part of the record that it fits."""
    typed, *checks = get_args(kind) if get_origin(kind) is Annotated else (kind,)
    parts = (check.func.names for check in checks if isinstance(check.func, _Fitting))
    return frozenset(typed.__annotations__).union(*parts)


class _Fitting:
    """Holds an event, in those of its fields that the model has, to the types of a part of the record."""

    def __init__(self, model: type[Any]) -> None:
        self._types, self.names = TypeAdapter(model), frozenset(_names_of(model))

    def __call__(self, event: dict[str, Any]) -> dict[str, Any]:
        held = {key: event[key] for key in self.names if key in event}
        made = self._types.dump_python(_valid(self._types, held), mode="json")
        return event | {key: made[key] for key in held}


def fits(model: type[Any]) -> AfterValidator:
    """Makes of an event's fields what a part of the record has, where it has them, in plain JSON."""
    return AfterValidator(_Fitting(model))


def part(model: type[Any]) -> AfterValidator:
    """Makes of a mapping what a part of the record can be made of: of its types, and no field that it has not."""
    types = TypeAdapter(model)

    def part_of(value: dict[str, Any]) -> dict[str, Any]:
        held = fields_of(value, model)
        _valid(types, held)
        return held

    return AfterValidator(part_of)


def _names_of(model: type[Any]) -> list[str]:
    return list(model.model_fields) if issubclass(model, BaseModel) else [field.name for field in fields(model)]


def fields_of(event: Mapping[str, Any], model: type[Any]) -> Event:
    """Those fields of an event that a part of the record has too."""
    return {name: event[name] for name in _names_of(model) if name in event}


def _valid(types: TypeAdapter[Any], held: dict[str, Any]) -> Any:
    try:
        return types.validate_python(held)
    except ValidationError as error:
        raise ValueError(first_of(error)) from None


def configured(*names: str) -> AfterValidator:
    """Holds a mapping to be a configuration that has these attributes."""

    def check(values: Any) -> Any:
        try:
            config = EffectiveConfig.from_dict(values)
            for name in ("hash", *names):
                getattr(config, name)
        except (TypeError, AttributeError, LookupError, ValueError) as error:
            raise ValueError(f"no configuration: {error}") from None
        return values

    return AfterValidator(check)


class _Parameters(Fields):
    metric: Text
    target: float
    seed: Count
    flops: Rate
    item: Text
    max_noise: NotRequired[Rate]
    better: NotRequired[Better]
    metrics: NotRequired[dict[Text, Annotated[dict[str, Any], part(Aim)]]]
    max_seq_length: NotRequired[Count | None]
    eval_interval_samples: NotRequired[Count]
    references: NotRequired[dict[str, list[Count]]]


class _Configurations(Fields):
    repeat: NotRequired[Count]
    scenario: NotRequired[Text | None]
    precision: NotRequired[Text | None]
    fp16: NotRequired[bool]
    compiler: NotRequired[Text | None]
    global_batch_size: NotRequired[Items]
    gradient_accumulation_steps: NotRequired[Items]
    min_seconds: NotRequired[Seconds]


class Configuration(Fields):
    """What `EffectiveConfig.from_dict` takes, with what is computed with."""

    suite: Text
    case: Text
    profile: Text
    vendor: Text
    parameters: _Parameters
    configurations: _Configurations
    overrides: list[Annotated[dict[str, Any], part(Override)]]
    host: dict[str, Any]
    source: NotRequired[Text | None]


class RunBegin(Typed):
    """What every suite's run begins with."""

    precision: Text
    versions: dict[str, str]
    host: Annotated[dict[str, Any], part(Host)]
    chip: Annotated[dict[str, Any], part(Chip)]
    problems: list[Annotated[dict[str, Any], part(Problem)]]
    expected_unsupported: NotRequired[Text | None]
    provenance: NotRequired[Annotated[dict[str, Any], part(Provenance)]]
    isolation: NotRequired[dict[str, Annotated[dict[str, Any], part(Isolation)]]]
    policy: NotRequired[Annotated[dict[str, Any], part(Policy)]]


class OnHost(Fields):
    """What is known of a host that a launcher found."""

    node: Count
    name: Text
    skew: Annotated[float, Field(gt=-1e12, lt=1e12)] | None
    chip: NotRequired[Annotated[dict[str, Any], part(Chip)]]
    host: NotRequired[Annotated[dict[str, Any], part(Host)]]
    versions: NotRequired[dict[str, str]]
    package: NotRequired[dict[Literal["vendor_version", "vendor_sha256"], Annotated[dict[str, Any], part(Known)]]]


class Counted(Typed):
    """FLOPs per item."""

    counted: Rate | None


class InStep(Typed):
    """A step by its name."""

    step: Text


IDENTITY = Annotated[Typed, fits(Identity)]
