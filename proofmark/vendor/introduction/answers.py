"""What a vendor says of itself, as data: checked where it is read, and a vendor again for whoever asks."""

from __future__ import annotations

import re
from typing import Annotated, get_args

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from proofmark.errors import UsageError
from proofmark.names import hint
from proofmark.rules.scale import Scale
from proofmark.vendor.contract import GLOO, Device, Software, Vendor
from proofmark.vendor.engine import Compiler
from proofmark.vendor.environment import ASSIGNED, may_not_be_set
from proofmark.vendor.hardware.chips import Precision


def _is_a_line(text: str) -> str:
    if not text.isprintable():
        raise ValueError("expected one line of text")
    return text


MOST_SCALES = 64
"""Each has tests of its own of every case."""

Line = Annotated[str, Field(max_length=200), AfterValidator(_is_a_line)]


def _is_a_scale(text: str) -> str:
    if wrong := Scale.wrong_with(text):
        raise ValueError(f"{text[:80]!r} {wrong}")
    return text


def _chooses_devices(name: str) -> str:
    """The name of a variable that all of a case's processes may be given: not a token's, nor one that steers an
    interpreter."""
    why = may_not_be_set(name)
    if not re.fullmatch("[A-Z][A-Z0-9_]*", name) or not re.search("VISIBLE|DEVICE|AFFINITY|MODULE", name):
        why = "is not named after devices: expected a name such as ACME_VISIBLE_DEVICES"
    elif re.match("(GOMP|KMP|OMP|MKL|OPENBLAS)_", name):
        why = "chooses processors for all of a case's processes"
    if why and why != ASSIGNED:
        raise ValueError(f"{name[:80]!r} {why}")
    return name


class Answers(BaseModel):
    """What `proofmark.vendor.introduction.child` sends."""

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)

    module: str
    file: str
    distribution: str | None
    compilers: dict[str, Compiler]
    default_compiler: str
    framework_precisions: frozenset[str]
    training_precisions: frozenset[str]
    visible_devices_variable: Annotated[str, AfterValidator(_chooses_devices)] | None
    runs_on_processor: bool
    distributed_backend: str
    training_scales: Annotated[tuple[Annotated[str, AfterValidator(_is_a_scale)], ...], Field(max_length=MOST_SCALES)]
    container_options: tuple[str, ...]
    chip: Line = ""
    chip_units: int = 1
    torch_device: str = "cpu"
    training_adapter: tuple[str, ...] = ()
    case_adapters: dict[str, tuple[str, ...]] = {}
    devices: tuple[tuple[int, Line, Line | None], ...] = ()
    devices_sought: tuple[str, ...] = ()
    monitor: tuple[str, ...] = ()
    software: Software = Software()
    failures: dict[str, str]

    @model_validator(mode="after")
    def _knows_precisions(self) -> Answers:
        declared = {f"compilers.{name}.precisions": each.precisions for name, each in self.compilers.items()}
        declared |= {name: getattr(self, name) for name in ("framework_precisions", "training_precisions")}
        known = get_args(Precision)
        wrong = [
            f"{where}: {precision[:80]!r} is not a precision; expected {', '.join(known)}{hint(precision, known)}"
            for where, precisions in declared.items()
            for precision in sorted(precisions - {*known})
        ]
        if wrong:
            raise ValueError("; ".join(wrong))
        return self

    @model_validator(mode="after")
    def _speaks_by_gloo_where_there_are_no_devices(self) -> Answers:
        if self.runs_on_processor and self.distributed_backend != GLOO:
            raise ValueError(
                f"distributed_backend: expected '{GLOO}' on a processor, found {self.distributed_backend!r}"
            )
        return self


class IntroducedVendor(Vendor):
    """A vendor's answers in its place. It can't compute, and isn't asked to.

    Attributes:
        answers: as plain values, for another process.
    """

    def __init__(self, name: str, answers: Answers) -> None:
        self._name, self._answers = name, answers
        self.answers = answers.model_dump(mode="json")
        self.compilers = answers.compilers
        self.default_compiler = answers.default_compiler
        self.framework_precisions = answers.framework_precisions
        self.training_precisions = answers.training_precisions
        self.visible_devices_variable = answers.visible_devices_variable
        self.runs_on_processor = answers.runs_on_processor
        self.distributed_backend = answers.distributed_backend
        self.training_scales = answers.training_scales
        self.container_options = answers.container_options

    def devices(self) -> list[Device]:
        """As answered.

        Raises:
            UsageError: it could not tell.
        """
        if failure := self._answers.failures.get("devices"):
            raise UsageError(f"vendor '{self._name}': devices(){failure} ({self._answers.file})")
        return [Device(*each) for each in self._answers.devices]

    @property
    def busy(self) -> list[str]:
        """Devices that are used or can't be read, each in a line; none where that was not asked."""
        return list(self._answers.monitor)

    def devices_sought(self) -> list[str]:
        """As answered; nothing where there are devices."""
        return list(self._answers.devices_sought)

    def software(self) -> Software:
        """As answered."""
        return self._answers.software

    def synchronize(self) -> None:
        """Nothing is given to its devices here."""

    def torch_device(self) -> str:
        """As answered."""
        return self._answers.torch_device

    def chip(self) -> str:
        """As answered."""
        return self._answers.chip

    def chip_units(self) -> int:
        """As answered."""
        return self._answers.chip_units
