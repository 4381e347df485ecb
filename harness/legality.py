"""What an override may do. One engine for files and the command line, for every suite.

| an override                                                  | result                  |
|--------------------------------------------------------------|-------------------------|
| equal in type and value to what is in force                  | error: it does nothing  |
| a different value of a configuration                         | applied, recorded       |
| a key that the case does not have                            | applied with a warning  |
|                                                              | (error where `closed`)  |
| a parameter, host setting, reserved name, target or seed     | error                   |
| of the wrong type, or outside its constraint                 | error                   |
| null                                                         | a value like any other  |
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from harness.case_file import Setting
from harness.errors import Problem

HOST_SETTINGS = frozenset(
    "FLAGPERF_PATH FLAGPERF_LOG_PATH FLAGPERF_LOG_LEVEL LOG_CALL_INFORMATION VENDOR HOSTS SSH_PORT HOSTS_PORTS "
    "MASTER_PORT SHM_SIZE ACCE_CONTAINER_OPT PIP_SOURCE CLEAR_CACHES ACCE_VISIBLE_DEVICE_ENV_NAME CASES".split()
)
"""The keys of the FlagPerf host.yaml."""

RESERVED = frozenset(
    "perf_dir data_dir log_dir vendor case framework suite profile host weights cache_dir results_dir "
    "parameters configurations overrides hash effective_precision as_dict from_dict keys items values get".split()
)
"""Names that the harness itself gives a meaning."""


@dataclass(frozen=True)
class OverrideLayer:
    """Overrides from one place, in the order in which places are laid over each other.

    `closed` makes an unknown key an error (training: only the mutable list may be set).
    """

    origin: str
    values: Mapping[str, Any]
    closed: bool = False


@dataclass(frozen=True)
class Override:
    """One legal override, for the record.

    `kind` is 'changed' or 'added'; `near` is what an added key may be a misspelling of.
    """

    key: str
    old: Any
    new: Any
    origin: str
    kind: str
    near: str | None = None

    def describe(self) -> str:
        """One line for a log: INFO for a change, WARNING for a key that the case does not have."""
        if self.kind == "added":
            told = f"WARNING {self.origin}: {self.key}: new key, the case does not have it; set to {self.new!r}"
            return f"{told}; did you mean '{self.near}'?" if self.near else told
        return f"INFO {self.origin}: {self.key}: {self.old!r} -> {self.new!r}"


@dataclass(frozen=True)
class Held:
    """What came of one layer."""

    applied: tuple[Override, ...]
    problems: tuple[Problem, ...]


def hold_against(
    layer: OverrideLayer,
    in_force: Mapping[str, Any],
    settings: Mapping[str, Setting],
    parameters: Mapping[str, Any],
) -> Held:
    """Hold each override of `layer` to the rules; nothing stops at the first problem."""
    applied: list[Override] = []
    problems: list[Problem] = []
    for key, value in layer.values.items():
        setting = settings.get(key)
        what = _forbidden(key, value, parameters) or _illegal_value(key, value, setting, in_force, layer.closed)
        if what:
            problems.append(Problem(layer.origin, key, what))
            continue
        new = setting.normalise(value) if setting else value
        if key in in_force:
            applied.append(Override(key, in_force[key], new, layer.origin, "changed"))
        else:
            near = difflib.get_close_matches(key, settings, 1)
            applied.append(Override(key, None, new, layer.origin, "added", *near))
    return Held(tuple(applied), tuple(problems))


def _forbidden(key: str, value: Any, parameters: Mapping[str, Any]) -> str | None:
    if key in parameters:
        shown = "null" if parameters[key] is None else repr(parameters[key])
        return f"is a parameter of the task ({shown}) and may not be overridden (asked for {value!r})"
    if key in HOST_SETTINGS:
        return f"is a host setting; give it in the host file (asked for {value!r})"
    if key in RESERVED:
        return f"is a reserved name (asked for {value!r})"
    words = key.lower().split("_")
    if "target" in words or "seed" in words:
        return f"names a target or a seed; nobody overrides those (asked for {value!r})"
    return None


def _illegal_value(
    key: str, value: Any, setting: Setting | None, in_force: Mapping[str, Any], closed: bool
) -> str | None:
    if setting is None:
        return _illegal_new_key(key, value, in_force, closed)
    wrong = setting.problem_with(value)
    if wrong:
        return f"{wrong} (the value in force is {in_force[key]!r})"
    if _same(setting.normalise(value), in_force[key]):
        return f"is already {in_force[key]!r}, so setting it to {value!r} does nothing; remove it"
    return None


def _illegal_new_key(key: str, value: Any, in_force: Mapping[str, Any], closed: bool) -> str | None:
    near = difflib.get_close_matches(key, in_force, 1)
    hint = f"; did you mean '{near[0]}'?" if near else ""
    if closed and key not in in_force:
        return f"is not one of the settings that may be overridden (asked for {value!r}){hint}"
    if not key.isidentifier() or key.startswith("_"):
        return f"is not a name (letters, digits, underscore){hint}"
    if not _is_plain(value):
        return f"expected a finite number, text, true, false, null, or a list or mapping of these, found {value!r}"
    if key in in_force and _same(value, in_force[key]):
        return f"is already {value!r}, so setting it again does nothing; remove it"
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


def _is_plain(value: Any) -> bool:
    if isinstance(value, dict):
        return all(isinstance(key, str) and _is_plain(item) for key, item in value.items())
    if isinstance(value, list):
        return all(map(_is_plain, value))
    if isinstance(value, float):
        return math.isfinite(value)
    return value is None or isinstance(value, bool | int | str)
