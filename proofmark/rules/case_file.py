"""The typed form of a case's YAML: parameters, configurations, profiles."""

from __future__ import annotations

import hashlib
import inspect
import math
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SerializeAsAny,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)

from proofmark.errors import ConfigurationError, MissingProfile, Problem
from proofmark.literal import literal
from proofmark.names import hint, meant
from proofmark.rules.aims import JudgedBy
from proofmark.rules.config import OWN_NAMES
from proofmark.rules.guide import Guide
from proofmark.rules.legality import forbidden_name
from proofmark.rules.published import Published
from proofmark.rules.yaml.arithmetic import parse_product
from proofmark.rules.yaml.strict import load_mapping, number_of
from proofmark.rules.yaml.typed import problems_of

SettingType = Literal["bool", "int", "float", "str"]
LayerType = TypeVar("LayerType", bound="Layer")
NOISE = 0.05
"""How far the core throughput of the rounds may scatter, where the case's `max_noise` says nothing else: standard
deviation over all items over all seconds."""

_PYTHON_TYPES: dict[str, type] = {"bool": bool, "int": int, "float": float, "str": str}


def _number(kind: SettingType | None, value: Any) -> Any:
    """The number that a value is for a setting of numbers: "1e-4" in quotes for a float, 1e2 for a whole one."""
    if kind not in ("int", "float"):
        return value
    given = number_of(value) if isinstance(value, str) else value
    if kind == "int" and isinstance(given, float) and given.is_integer() and abs(given) < 1 << 63:
        return int(given)
    return given if type(given) is int or type(given) is _PYTHON_TYPES[kind] else value


class Setting(BaseModel):
    """The declaration of one configuration: its type, its base value and its constraint."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    type: SettingType
    value: Any = None
    nullable: bool = False
    min: float | None = None
    max: float | None = None
    choices: tuple[Any, ...] | None = None
    raise_only: bool = Field(False, description="an override may not go below the base value")
    users_own: bool = Field(False, description="no file of a vendor's may set it: the session opens what it names")

    @field_validator("value")
    @classmethod
    def _is_the_number(cls, value: Any, info: ValidationInfo) -> Any:
        return _number(info.data.get("type"), value)

    @model_validator(mode="after")
    def _base_value_is_legal(self) -> Setting:
        problem = self.problem_with(self.value)
        if problem:
            raise ValueError(problem)
        return self

    def normalise(self, value: Any) -> Any:
        """A whole number given for a float is that float, and numbers in other words are those; else as it is."""
        number = _number(self.type, value)
        return float(number) if self.type == "float" and type(number) is int else number

    def problem_with(self, value: Any) -> str | None:
        """What is wrong with `value` as a value of this setting, or None."""
        if value is None:
            return None if self.nullable else f"null is not allowed, expected {self.type}"
        value = self.normalise(value)
        if type(value) is not _PYTHON_TYPES[self.type]:
            return f"expected {self.type}, found {type(value).__name__} {literal(value)}"
        if isinstance(value, float) and not math.isfinite(value):
            return f"expected a finite number, found {literal(value)}"
        if self.choices is not None and value not in self.choices:
            return f"expected one of {', '.join(map(str, self.choices))}, found {literal(value)}"
        if self.min is not None and isinstance(value, int | float) and value < self.min:
            return f"expected at least {self.min:g}, found {literal(value)}"
        if self.max is not None and isinstance(value, int | float) and value > self.max:
            return f"expected at most {self.max:g}, found {literal(value)}"
        if self.raise_only and isinstance(value, int | float) and value < self.value:
            return f"may only be raised, from {self.value:g}, found {literal(value)}"
        return None


class Parameters(JudgedBy):
    """The task itself. Every case of any suite has these; others (image_size, ...) are the case's own."""

    model_config = ConfigDict(frozen=True, extra="allow", strict=True)

    seed: int = Field(ge=0)
    flops: float = Field(gt=0, description="floating-point operations per item, a multiply-add counted as two")
    item: str = Field(min_length=1, description="what one sample is called: image, sequence")
    max_noise: float = Field(
        NOISE, gt=0, allow_inf_nan=False, description="how far rates may scatter, as a share, before they say nothing"
    )
    published: Published | None = Field(None, description="whose published task this profile is")

    @field_validator("flops", mode="before")
    @classmethod
    def _flops_is_a_product(cls, value: object) -> float:
        return parse_product(value)


class Layer(BaseModel):
    """Values of one layer: a suite's common base, a case, or one of its profiles."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    parameters: dict[str, Any] = Field(default_factory=dict)
    configurations: dict[str, Any] = Field(default_factory=dict)


class Profile(Layer):
    """One of a case's profiles."""

    guide: Guide | None = Field(None, description="for its page")


class CaseLayer(Layer):
    """A case's YAML."""

    profiles: dict[str, Profile] = Field(min_length=1)
    known_as: tuple[str, ...] = Field((), description="what other suites call the same task")


class CaseFile(BaseModel):
    """A case with one of its profiles chosen: what overrides are held against."""

    model_config = ConfigDict(frozen=True)

    suite: str
    case: str
    profile: str
    path: str
    parameters: SerializeAsAny[Parameters]
    settings: dict[str, Setting]
    elsewhere: dict[str, tuple[Any, ...]] = Field(
        default_factory=dict, description="of each setting, its values in the case's other profiles"
    )
    sha256: str | None = Field(None, description="over the contents of the case's YAML and of its suite's common base")


def numbers_of(case: type) -> Path:
    """`test_<case>.py` has its numbers in `<case>.yaml` beside it."""
    module = Path(inspect.getfile(case))
    return module.with_name(module.stem.removeprefix("test_") + ".yaml")


def _tests(path: Path) -> Path:
    """The module of a case, beside its YAML."""
    return path.with_name(f"test_{path.stem}.py")


def read_case(path: Path, common: Path | None = None) -> CaseLayer:
    """A case's YAML alone, without its suite's common base, which is no case's.

    Raises:
        ConfigurationError: with every problem in it.
    """
    if not os.path.lexists(path):
        others = [each for each in path.parent.glob("*.y*ml") if each != common]
        nobodys = {each.stem: each.name for each in others if not _tests(each).exists()}
        near = meant(path.stem, nobodys)
        what = f"is not there; expected the numbers of {_tests(path).name}"
        what += f"; did you mean '{nobodys[near]}'?" if near else ""
        raise ConfigurationError([Problem(str(path), "", what)])
    return _read(CaseLayer, path)


def other_names(path: Path) -> tuple[str, ...]:
    """What others call the case of a YAML.

    Raises:
        ConfigurationError: with every problem in it.
    """
    return read_case(path).known_as


def load_case_file(path: Path, suite: str, profile: str, common: Path, kind: type[Parameters]) -> CaseFile:
    """Read a case's YAML over its suite's common base and choose a profile.

    Args:
        path: the case's YAML; its stem is the case's name.
        suite: the suite's name, for the record.
        profile: the profile to choose.
        common: the suite's base: the declarations that all its cases share.
        kind: what parameters a case of the suite has.

    Raises:
        MissingProfile: the case has no such profile.
        ConfigurationError: with every problem found in the two files.
    """
    base = _read(Layer, common)
    case = read_case(path, common)
    if profile not in case.profiles:
        what = f"has no profile '{profile}'; it has {', '.join(sorted(case.profiles))}"
        raise MissingProfile([Problem(str(path), "profiles", what)])
    chosen = case.profiles[profile]
    problems: list[Problem] = []
    shared = [_Placed(common, "", base), _Placed(path, "", case)]
    layers = [*shared, _Placed(path, f"profiles.{profile}.", chosen)]
    settings = _settings(layers, problems)
    others = [_settings([*shared, _Placed(path, "", each)], []) for each in case.profiles.values() if each != chosen]
    parameters = _parameters(layers, kind, problems)
    for key in sorted(set(settings) & {*kind.model_fields, *(key for each in layers for key in each.layer.parameters)}):
        problems.append(Problem(str(path), key, "is both a parameter and a configuration; keep one"))
    problems += _misnamed(layers)
    if problems or parameters is None:
        raise ConfigurationError(problems)
    return CaseFile(
        suite=suite,
        case=path.stem,
        profile=profile,
        path=str(path),
        parameters=parameters,
        settings=settings,
        elsewhere={key: tuple(each[key].value for each in others if key in each) for key in settings},
        sha256=content_of(path, common),
    )


def content_of(path: Path, common: Path) -> str | None:
    """What a case's numbers are, whatever commit they are of: SHA-256 over its YAML's and the common base's."""
    try:
        return content_hash(path.read_bytes(), common.read_bytes())
    except OSError:  # it was there when it was read
        return None


def content_hash(*contents: bytes) -> str:
    """The same, of what its YAML and the common base hold."""
    digests = [hashlib.sha256(each).hexdigest() for each in contents]
    return hashlib.sha256(" ".join(digests).encode()).hexdigest()


def _read(model: type[LayerType], path: Path) -> LayerType:
    try:
        return model.model_validate(load_mapping(path, path.parent))
    except ValidationError as error:
        raise ConfigurationError(problems_of(error, str(path), model=model)) from None


class _Placed(NamedTuple):
    """A layer, and where it stands: its file, and what its keys begin with there."""

    path: Path
    within: str
    layer: Layer


def _settings(layers: list[_Placed], problems: list[Problem]) -> dict[str, Setting]:
    """Lay values over declarations: a mapping with `type` declares, anything else is a value."""
    settings: dict[str, Setting] = {}
    for path, within, layer in layers:
        for key, value in layer.configurations.items():
            place = f"{within}configurations.{key}"
            try:
                if _declares(value):
                    settings[key] = Setting.model_validate(value)
                elif key not in settings:
                    what = f"is not declared{hint(str(key), settings)}; a new one is given as {{type: ..., value: ...}}"
                    problems.append(Problem(str(path), place, what))
                else:
                    settings[key] = Setting.model_validate(settings[key].model_dump() | {"value": value})
            except ValidationError as error:
                problems += problems_of(error, str(path), place, Setting)
    return settings


def _misnamed(layers: list[_Placed]) -> Iterator[Problem]:
    """Parameters that an attribute of the configuration hides, and configurations that nobody could override."""
    for path, within, layer in layers:
        for key in layer.parameters:
            if key in OWN_NAMES:
                what = f"is a name that the configuration has itself (config.{key}); choose another"
                yield Problem(str(path), f"{within}parameters.{key}", what)
        for key, value in layer.configurations.items():
            if _declares(value) and (why := forbidden_name(key)):
                yield Problem(str(path), f"{within}configurations.{key}", f"may not be declared: it {why}")


def _declares(value: Any) -> bool:
    return isinstance(value, Mapping) and "type" in value


def _parameters(layers: list[_Placed], kind: type[Parameters], problems: list[Problem]) -> Parameters | None:
    """The last layer's values lie over the others'; a problem is told of the layer whose value it is."""
    values = {key: value for each in layers for key, value in each.layer.parameters.items()}
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        for found in problems_of(error, "", model=kind):
            first = found.key.partition(".")[0]
            # what is there nowhere is missing in the case's own file
            its = next((each for each in reversed(layers) if first in each.layer.parameters), layers[1])
            place = f"{its.within}parameters.{found.key}".removesuffix(".")
            problems.append(Problem(str(its.path), place, found.what))
        return None
