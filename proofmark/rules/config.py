"""From a case's file and its overrides to one frozen, hashed configuration."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

from proofmark.errors import Problem
from proofmark.literal import literal
from proofmark.process.log_level import LogLevel
from proofmark.rules.legality import Override, OverrideLayer, hold_against, origin_of

if TYPE_CHECKING:
    from proofmark.rules.case_file import CaseFile


@dataclass(frozen=True)
class HostSettings:
    """Where things are on this machine. Not part of the task: kept out of the hash.

    Attributes:
        data_dir: of the data set; None for data that is shipped, and in an engine's process.
        weights: file or folder of --weights; None without, and in an engine's process.
        cache_dir: what may be kept from one session to the next; in an engine's process a directory of its own.
        artifact_dir: where a compiler may leave its compiled engine; None where there is no engine.
        device: what --device asked of the vendor.
        isolation: whether vendors' code runs behind a wall where the kernel has one.
        scratch_limit: GiB that each of its processes may keep in a directory of its own.
        engine_user: whose processes engines are; None for the session's own user.
        environment: variables that the vendor declares for the case's processes.
        flops_convention: by whose FLOPs MFU is shown too.
        log_level: from which level on those processes print what is logged in them.
        validated_onnx: SHA-256 of the ONNX file whose model an earlier run vouches for.
        listings: where a search's trials tell one another what lies in a folder of data; None where they don't.
    """

    data_dir: str | None = None
    weights: str | None = None
    cache_dir: str = ".cache"
    artifact_dir: str | None = None
    device: str | None = None
    isolation: Literal["wall", "process"] = "wall"
    scratch_limit: float = 256.0
    engine_user: str | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    flops_convention: Literal["counted", "flagperf"] = "counted"
    log_level: LogLevel | None = None
    validated_onnx: str | None = None
    listings: str | None = None


def weights_of(given: str, case: str) -> str:
    """A case's own folder in one with a folder per case, named as the case; else what is given."""
    own = Path(given) / case
    return str(own) if own.is_dir() else given


@dataclass(frozen=True)
class EffectiveConfig(Mapping[str, Any]):
    """What a case runs with. Immutable to the last list.

    A value is found by its key in the case's file, as an attribute (`config.batch_size`) or an entry
    (`config["batch_size"]`); what may be missing with `config.get("batch_size")`, as in any mapping. A
    parameter that may be missing is found in `config.parameters`: in the whole, an override may have added its name.

    Attributes:
        suite: of the case.
        case: its name.
        profile: embedded, standard or another that the case has.
        vendor: whose devices it runs on.
        parameters: the task itself, by key; nobody has overridden these.
        configurations: what may be set, by key, with all overrides.
        overrides: what was set, with the value before.
        host: where things are on this machine.
        source: SHA-256 of the case's files that it was resolved from; None where nobody says.
    """

    suite: str
    case: str
    profile: str
    vendor: str
    parameters: Mapping[str, Any]
    configurations: Mapping[str, Any]
    overrides: tuple[Override, ...] = ()
    host: HostSettings = field(default_factory=HostSettings)
    source: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "parameters", _freeze(self.parameters))
        object.__setattr__(self, "configurations", _freeze(self.configurations))

    def __getitem__(self, key: str) -> Any:
        return self.configurations[key] if key in self.configurations else self.parameters[key]

    def __iter__(self) -> Iterator[str]:
        yield from self.parameters
        yield from self.configurations

    def __len__(self) -> int:
        return len(self.parameters) + len(self.configurations)

    def __getattr__(self, key: str) -> Any:
        if key.startswith("__"):
            raise AttributeError(key)
        try:
            return self[key]
        except KeyError:
            raise AttributeError(f"case {self.case} has no parameter or configuration '{key}'") from None

    __hash__ = object.__hash__

    @property
    def effective_precision(self) -> str:
        """`precision` where it is given, otherwise what `fp16` says."""
        return self.precision or ("fp16" if self.fp16 else "fp32")

    @property
    def hash(self) -> str:
        """Identifies the task: SHA-256, in hex, of suite, case, profile, vendor, parameters and configurations as
        canonical JSON."""
        task = {key: value for key, value in self.as_dict().items() if key not in ("host", "overrides", "source")}
        canonical = json.dumps(task, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        return hashlib.sha256(canonical.encode()).hexdigest()

    def as_dict(self) -> dict[str, Any]:
        """Plain JSON values, the inverse of `from_dict`."""
        return {
            "suite": self.suite,
            "case": self.case,
            "profile": self.profile,
            "vendor": self.vendor,
            "parameters": _thaw(self.parameters),
            "configurations": _thaw(self.configurations),
            "overrides": [vars(override) for override in self.overrides],
            "host": vars(self.host),
            "source": self.source,
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> EffectiveConfig:
        """Rebuild what `as_dict` gave, on the other side of a process or a host."""
        return cls(
            **{
                **values,
                "overrides": tuple(Override(**override) for override in values["overrides"]),
                "host": HostSettings(**values["host"]),
            }
        )


OWN_NAMES = frozenset(dir(EffectiveConfig)) | {each.name for each in fields(EffectiveConfig)}
"""Attributes of a configuration, by which no parameter of their name can be found."""


@dataclass(frozen=True)
class Resolution:
    """A configuration and all that is illegal about how it was asked for.

    Where `problems` is not empty the configuration holds the base values of the refused
    keys; nothing may be run with it.
    """

    config: EffectiveConfig
    problems: tuple[Problem, ...]


def resolve(
    case: CaseFile,
    vendor: str,
    layers: Sequence[OverrideLayer],
    default_compiler: str | None = None,
    host: HostSettings | None = None,
) -> Resolution:
    """Lay the vendor's and the user's overrides over a case, in order, and hold each to the rules.

    `default_compiler` is what `compiler: default` comes to in the end, for a suite that has compilers.
    """
    parameters = case.parameters.model_dump()
    values = {key: setting.value for key, setting in case.settings.items()}
    overrides: list[Override] = []
    problems: list[Problem] = []
    chosen: set[str] = set()  # by the user, to any effect
    for layer in layers:
        held = hold_against(
            layer, values, case.settings, parameters, partial(comes_to, default_compiler), case.elsewhere
        )
        values.update({override.key: override.new for override in held.applied})
        overrides += held.applied
        problems += held.problems
        if not layer.vendors_own:
            chosen.update(override.key for override in held.applied)
    following = list(_following(values, chosen, vendor, default_compiler))
    values.update({override.key: override.new for override in following})
    overrides += following
    if values.get("fp16") and values.get("precision") not in (None, "fp16"):
        what = f"contradicts fp16: true (precision is {literal(values['precision'])}); set one of them"
        problems.append(Problem(origin_of(overrides, ("fp16", "precision"), case.path), "precision", what))
    config = EffectiveConfig(
        suite=case.suite,
        case=case.case,
        profile=case.profile,
        vendor=vendor,
        parameters=parameters,
        configurations=values,
        overrides=tuple(overrides),
        host=host or HostSettings(),
        source=case.sha256,
    )
    return Resolution(config, tuple(problems))


def _following(
    values: Mapping[str, Any], chosen: Collection[str], vendor: str, default_compiler: str | None
) -> Iterator[Override]:
    """What follows from what was asked for, each of another key.

    A precision decides over fp16 where the user has `chosen` the one alone, and the other is the profile's or the
    vendor's wish.
    """
    if values.get("compiler") == "default":
        yield Override("compiler", "default", default_compiler, f"vendor {vendor}", "changed")
    if values.get("scenario") == "latency" and values["batch_size"] != 1:
        yield Override("batch_size", values["batch_size"], 1, "scenario latency", "changed")
    decided = "precision" in chosen and "fp16" not in chosen
    if decided and values.get("fp16") and values.get("precision") not in (None, "fp16"):
        yield Override("fp16", True, False, f"precision {values['precision']}", "changed")


def comes_to(default_compiler: str | None, values: Mapping[str, Any]) -> Mapping[str, Any]:
    """`values` with what stands for another value replaced by it, so that two ways to say the same are equal."""
    settled = dict(values)
    if settled.get("compiler") == "default" and default_compiler is not None:
        settled["compiler"] = default_compiler
    if settled.get("scenario") == "latency":
        settled["batch_size"] = 1
    if "fp16" in settled and not (settled["fp16"] and settled.get("precision") not in (None, "fp16")):
        settled["precision"] = settled.get("precision") or ("fp16" if settled["fp16"] else "fp32")
        settled["fp16"] = settled["precision"] == "fp16"
    return settled


def _freeze(value: Any) -> Any:
    if isinstance(value, Mapping):
        return MappingProxyType({key: _freeze(item) for key, item in value.items()})
    if isinstance(value, list | tuple):
        return tuple(_freeze(item) for item in value)
    return value


def _thaw(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _thaw(item) for key, item in value.items()}
    if isinstance(value, tuple):
        return [_thaw(item) for item in value]
    return value
