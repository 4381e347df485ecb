"""What an override may do. One engine for files and the command line, for every suite.

| an override                                                  | result                  |
|--------------------------------------------------------------|-------------------------|
| equal in type and value to what is in force, or to what that | error: it does nothing  |
| stands for (compiler default, precision null)                |                         |
| the same in a vendor's own file, which serves all profiles,  | nothing                 |
| where it differs from the value of another                   |                         |
| a different value of a configuration                         | applied, recorded       |
| a key that the case does not have                            | applied with a warning  |
|                                                              | (error where `closed`)  |
| a parameter, host setting, reserved name, target or seed     | error                   |
| compiler null or no_validation, in a vendor's own file       | error: the user's alone |
| a file for the engine that is no driver's, likewise          | error: the user's alone |
| of the wrong type, or outside its constraint                 | error                   |
| null                                                         | a value like any other  |
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

from proofmark.errors import Problem, shortened
from proofmark.literal import literal
from proofmark.names import hint, meant
from proofmark.rules.device_files import DRIVERS, is_drivers

if TYPE_CHECKING:
    from proofmark.rules.case_file import Setting

HOST_SETTINGS = frozenset(
    "FLAGPERF_PATH FLAGPERF_LOG_PATH FLAGPERF_LOG_LEVEL LOG_CALL_INFORMATION VENDOR HOSTS SSH_PORT HOSTS_PORTS "
    "MASTER_PORT SHM_SIZE ACCE_CONTAINER_OPT PIP_SOURCE CLEAR_CACHES ACCE_VISIBLE_DEVICE_ENV_NAME CASES".split()
)
"""The keys of the FlagPerf host.yaml."""

RESERVED = {
    "data_dir": "use --data-dir",
    "log_dir": "use --results-dir",
    "results_dir": "use --results-dir",
    "cache_dir": "use --cache-dir",
    "weights": "use --weights",
    "vendor": "use --vendor",
    "profile": "use --profile",
    "host": "use --host-config",
    "effective_precision": "use --precision",
    "case": "choose cases with -k",
    "suite": "choose a suite by its path: pytest suites/<suite>",
    "framework": "the framework is pytorch",
    "perf_dir": "nothing uses it here",
    **dict.fromkeys(("metrics", "better"), "what a case is judged by is its own"),
} | dict.fromkeys(
    "parameters configurations overrides hash as_dict from_dict keys items values get source".split(),
    "choose another name",
)
"""Names that the referee itself gives a meaning, each with what to do instead."""

FILES = ("exist_onnx_path", "exist_compiler_path")
"""Configurations that name files, which an engine sees."""

_NAME = re.compile("[A-Za-z][A-Za-z0-9_]*")
"""Of a setting: letters that look like these are not these."""

ComesTo = Callable[[Mapping[str, Any]], Mapping[str, Any]]
"""From values in force to what they stand for in the end."""


@dataclass(frozen=True)
class OverrideLayer:
    """Overrides from one place, in the order in which places are laid over each other.

    `closed` makes an unknown key an error (training: only the mutable list may be set). `vendors_own` is a file of the
    vendor's: what would end a run before its engine is measured, or leave its model unknown, is the user's to ask for.
    """

    origin: str
    values: Mapping[str, Any]
    closed: bool = False
    vendors_own: bool = False


@dataclass(frozen=True)
class Override:
    """A legal override: what was in force, what took its place, and who asked.

    `near` is what an added key may be a misspelling of.
    """

    __pydantic_config__ = {"extra": "forbid"}

    key: str
    old: Any
    new: Any
    origin: str
    kind: Literal["changed", "added"]
    near: str | None = None


def origin_of(overrides: Sequence[Override], keys: Collection[str], case: str) -> str:
    """Who set one of `keys` last: whose file, or which option; the file of the `case` where nobody has."""
    return next((override.origin for override in reversed(overrides) if override.key in keys), case)


@dataclass(frozen=True)
class Held:
    """The overrides of a layer that are legal, and what is wrong with the others."""

    applied: tuple[Override, ...]
    problems: tuple[Problem, ...]


def hold_against(
    layer: OverrideLayer,
    in_force: Mapping[str, Any],
    settings: Mapping[str, Setting],
    parameters: Mapping[str, Any],
    comes_to: ComesTo = dict,
    elsewhere: Mapping[str, Sequence[Any]] = MappingProxyType({}),
) -> Held:
    """Hold each override of `layer` to the rules; nothing stops at the first problem.

    `elsewhere` has the values of settings in the case's other profiles.
    """
    applied: list[Override] = []
    problems: list[Problem] = []
    for key, value in layer.values.items():
        setting = settings.get(key)
        new = setting.normalise(value) if setting else value
        what = (
            _forbidden(key, value, parameters)
            or (_forbidden_to_vendors(key, value, setting) if layer.vendors_own else None)
            or _illegal_value(key, value, setting, in_force, layer.closed)
        )
        does_nothing = None if what else idle(key, new, in_force, comes_to)
        others = ({**in_force, key: other} for other in elsewhere.get(key, ()))
        if does_nothing and layer.vendors_own and not all(idle(key, new, other, comes_to) for other in others):
            continue  # the file serves that profile too
        if what or does_nothing:
            problems.append(Problem(layer.origin, key, what or does_nothing or ""))
            continue
        if key in in_force:
            applied.append(Override(key, in_force[key], new, layer.origin, "changed"))
        else:
            applied.append(Override(key, None, new, layer.origin, "added", meant(key, settings)))
    return Held(tuple(applied), tuple(shortened(problems, layer.origin)))


def _forbidden(key: str, value: Any, parameters: Mapping[str, Any]) -> str | None:
    asked = f"(asked for {literal(value)})"
    if key in parameters:
        return f"is a parameter of the task ({literal(parameters[key])}) and may not be overridden {asked}"
    why = forbidden_name(key)
    return f"{why} {asked}" if why else None


def forbidden_name(key: str) -> str | None:
    """Why nothing of this name is ever overridden, whatever a case declares; None where it may be."""
    if key in HOST_SETTINGS:
        return "is a host setting; give it in the host file"
    if key in RESERVED:
        return f"is a reserved name; {RESERVED[key]}"
    words = key.lower().split("_")
    if "target" in words or "seed" in words:
        return "names a target or a seed, which may not be overridden"
    return None


def _forbidden_to_vendors(key: str, value: Any, setting: Setting | None) -> str | None:
    if setting is not None and setting.users_own:
        return "is the user's alone to set, with --set: a vendor's file may not"
    if key == "compiler" and value is None:
        return "null leaves the engine out, which a vendor's file may not; the user may, with --compiler null"
    if key in FILES and isinstance(value, str) and not is_drivers(value):
        places = ", ".join(place.rstrip("/") for place in DRIVERS)
        permission = "the user may name any, with --set"
        return f"names a file that its engine would see: a vendor's file may name those below {places}; {permission}"
    if key == "no_validation" and value is True:
        return "leaves out whose model the engine is, which a vendor's file may not; the user may, with --set"
    return None


def _illegal_value(
    key: str, value: Any, setting: Setting | None, in_force: Mapping[str, Any], closed: bool
) -> str | None:
    if setting is None:
        return _illegal_new_key(key, value, in_force, closed)
    wrong = setting.problem_with(value)
    return f"{wrong} (the value in force is {literal(in_force[key])})" if wrong else None


def idle(key: str, new: Any, in_force: Mapping[str, Any], comes_to: ComesTo) -> str | None:
    """What is wrong with an override that leaves everything as it is."""
    if key not in in_force:
        return None
    does_nothing = f"so setting it to {literal(new)} does nothing; remove it"
    if _same(new, in_force[key]):
        return f"is already {literal(in_force[key])}, {does_nothing}"
    before, after = dict(comes_to(in_force)), dict(comes_to({**in_force, key: new}))
    if _same(before, after):
        return f"is {literal(in_force[key])}, which comes to {literal(before[key])} already, {does_nothing}"
    return None


def _illegal_new_key(key: str, value: Any, in_force: Mapping[str, Any], closed: bool) -> str | None:
    if closed and key not in in_force:
        return f"is not one of the settings that may be overridden (asked for {literal(value)}){hint(key, in_force)}"
    if not _NAME.fullmatch(key):
        return f"is not a name (letters, digits, underscore){hint(key, in_force)}"
    if not _is_json(value):
        return (
            f"expected a finite number, text, true, false, null, or a list or mapping of these, found {literal(value)}"
        )
    return None


def _same(one: Any, other: Any) -> bool:
    """Equal in type and value: 1, 1.0 and true are three different things."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(_same, one, other))
    return bool(one == other)


def _is_json(value: Any) -> bool:
    if isinstance(value, dict):
        return all(isinstance(key, str) and _is_json(item) for key, item in value.items())
    if isinstance(value, list):
        return all(map(_is_json, value))
    if isinstance(value, float):
        return math.isfinite(value)
    return value is None or isinstance(value, bool | int | str)
