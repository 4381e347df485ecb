"""FlagPerf's test_conf.py, cluster_conf.py and host.yaml: a run list, a cluster file, and what containers are given."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, get_args

from pydantic import ValidationError

from proofmark.errors import ConfigurationError
from proofmark.flagperf.adaptation.fates import Fate, shown
from proofmark.flagperf.adaptation.moved import Moved
from proofmark.flagperf.adaptation.python.code import lines_within
from proofmark.flagperf.adaptation.python.source import read_python
from proofmark.flagperf.host_file import HostFile
from proofmark.launch.cluster.cluster_file import Cluster
from proofmark.launch.cluster.container.settings import ContainerSettings
from proofmark.process.log_level import LogLevel
from proofmark.rules.yaml.key_lines import lines_of
from proofmark.rules.yaml.strict import load_mapping, text_of
from proofmark.rules.yaml.typed import problems_of
from proofmark.vendor.isolation import FILE as ISOLATION
from proofmark.vendor.isolation import IsolationSettings

RUNS, CLUSTER = "runs.yaml", "cluster.yaml"
WORK_DIR = "/var/tmp/proofmark"  # noqa: S108 (on hosts, for the user to change)

NOT_NEEDED = {
    "FLAGPERF_PATH": "hosts are given the code",
    "FLAGPERF_PATH_HOST": "hosts are given the code",
    "FLAGPERF_PATH_CONTAINER": "containers see the code where it lies",
    "FLAGPERF_LOG_PATH": "results are in results, or where --results-dir says",
    "FLAGPERF_LOG_PATH_HOST": "results are in results, or where --results-dir says",
    "FLAGPERF_LOG_PATH_CONTAINER": "results come home by themselves",
    "LOG_CALL_INFORMATION": "what a process prints is kept whole",
    "PIP_SOURCE": "set in pip's own configuration: PIP_INDEX_URL",
    "TEST_TYPE": "there is one kind",
    "HOSTS_PORTS": "ports are found",
}
"""Keys for which there is no use here, and why."""

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class _Given(NamedTuple):
    file: Path
    line: int
    value: Any
    lines: Mapping[str, int] | None = None
    """Of the parts of a value that has several."""


def move_hosts(moved: Moved) -> None:
    """Read what says where to run, and what."""
    taken: dict[str, _Given] = {}
    lists: list[tuple[str, _Given, Mapping[str, Any]]] = []
    whose: dict[Path, _Given] = {}
    for file in _files(moved):
        values = dict(_values(moved, file))
        if "VENDOR" in values:
            whose[file.parent] = values["VENDOR"]
        for key, given in values.items():
            if why := _of_another(moved, key, whose.get(file.parent)):
                moved.tell(given.file, given.line, key, given.value, "illegal", why=why)
            elif key == "CASES":
                lists.append((key, given, {name: each.value for name, each in values.items()}))
            elif key in NOT_NEEDED:
                moved.tell(given.file, given.line, key, given.value, "redundant", why=NOT_NEEDED[key])
            elif key in taken and taken[key].value != given.value:
                why = f"{moved.checkout.shown(taken[key].file)} says {shown(taken[key].value)}, which is what counts"
                moved.tell(given.file, given.line, key, given.value, "redundant", why=why)
            elif key in taken:
                moved.tell(given.file, given.line, key, given.value, "redundant", why="is there already")
            elif not _is_a_case(key, values):
                taken[key] = given
    _move_runs(moved, taken, lists)
    _move_cluster(moved, taken)
    _move_container(moved, taken)
    _tell_others(moved, taken)


def _of_another(moved: Moved, key: str, vendor: _Given | None) -> str:
    """Why a key is another vendor's; empty where it is not. A cluster_conf.py goes with the test_conf.py beside it."""
    if vendor is None or vendor.value == moved.checkout.vendor:
        return ""
    if key == "VENDOR":
        return f"--vendor says {moved.checkout.vendor}: of another's list no CASES, HOSTS and ACCE_ keys are taken over"
    if key in ("CASES", "HOSTS") or key.startswith("ACCE_"):
        return f"is of vendor {vendor.value}, as VENDOR in {moved.checkout.shown(vendor.file)} says"
    return ""


def _files(moved: Moved) -> list[Path]:
    checkout = moved.checkout
    config = checkout.training / "run_benchmarks" / "config" if checkout.training else None
    files = [config / "test_conf.py", config / "cluster_conf.py"] if config else []
    files += [checkout.inference / "configs" / "host.yaml"] if checkout.inference else []
    return [file for file in files if file.exists()]


def _values(moved: Moved, file: Path) -> Iterator[tuple[str, _Given]]:
    if file.suffix == ".py":
        read = read_python(file, moved.checkout.root)
        known = [each for each in read.refused if each.key in NOT_NEEDED]
        for each in known:
            value = each.what.removeprefix("computes: ")
            moved.tell(each.file, each.line, each.key, value, "redundant", why=NOT_NEEDED[each.key])
        moved.tell_refused(read, frozenset((each.file, each.line) for each in known))
        lines = lines_within(file, moved.checkout.root, "CASES")
        yield from ((key, _Given(file, each.line, each.value, lines)) for key, each in read.values.items())
        return
    try:
        text, found = text_of(file, moved.checkout.root), load_mapping(file, moved.checkout.root)
    except ConfigurationError as error:
        moved.tell(file, 0, "", None, "refused", why=error.problems[0].what)
        return
    marks, lines = lines_of(text), lines_of(text, "CASES")
    yield from ((key, _Given(file, marks.get(key, 0), value, lines)) for key, value in found.items())


def _is_a_case(key: str, values: Mapping[str, _Given]) -> bool:
    """Whether a name is one of the dictionaries of 2022's layout, which CASES lists."""
    listed = values["CASES"].value if "CASES" in values else None
    return isinstance(listed, list) and key in listed


def _move_runs(moved: Moved, taken: dict[str, _Given], lists: list[tuple[str, _Given, Mapping[str, Any]]]) -> None:
    runs: dict[str, str] = {}
    for key, given, names in lists:
        for called, theirs, data in _listed(given.value, names):
            fate, remarks = _move_entry(moved, theirs, data, runs)
            line = (given.lines or {}).get(called, given.line)
            moved.tell(given.file, line, f"{key}: {called}", data, fate, **remarks)
    if "VENDOR" in taken:
        given = taken.pop("VENDOR")
        moved.tell(given.file, given.line, "VENDOR", given.value, "taken over", here=f"{RUNS}: VENDOR")
    values = {"VENDOR": moved.checkout.vendor, **_settings(moved, taken), "CASES": runs}
    if runs:
        moved.write_yaml(RUNS, values, "Of FlagPerf's lists of runs: pytest suites/<suite> --host-config FILE")
    else:
        moved.not_written(RUNS, f"no case of the lists is here, so there is no {RUNS}: write a run list yourself")


def _settings(moved: Moved, taken: dict[str, _Given]) -> dict[str, Any]:
    """What a run list sets beside its cases."""
    values = dict[str, Any]()
    if "FLAGPERF_LOG_LEVEL" in taken:
        given = taken.pop("FLAGPERF_LOG_LEVEL")
        level = str(given.value).upper()
        fits = level in get_args(LogLevel)
        remarks = (
            {"here": f"{RUNS}: FLAGPERF_LOG_LEVEL"} if fits else {"why": f"expected {', '.join(get_args(LogLevel))}"}
        )
        values |= {"FLAGPERF_LOG_LEVEL": level} if fits else {}
        fate: Fate = "taken over" if fits else "illegal"
        moved.tell(given.file, given.line, "FLAGPERF_LOG_LEVEL", given.value, fate, **remarks)
    if "CLEAR_CACHES" in taken and isinstance(taken["CLEAR_CACHES"].value, bool):
        values["CLEAR_CACHES"] = taken["CLEAR_CACHES"].value  # for hosts it goes into the cluster file too
    return values


def _listed(cases: Any, names: Mapping[str, Any]) -> Iterator[tuple[str, str, Any]]:
    """Each run as it is called there, in the form of a key, and its data: of today's layout, and of 2022's."""
    if isinstance(cases, dict):
        yield from ((key, key, data) for key, data in cases.items())
        return
    for name in cases if isinstance(cases, list) else []:
        entry = names.get(str(name))
        if not isinstance(entry, dict):
            yield str(name), "", None
            continue
        chip = str(entry.get("config", "")).removeprefix("config_").rsplit("x", 2)[0]
        terms = [entry.get(key, "") for key in ("model", "framework")] + [chip]
        terms += [entry.get(key, 1) for key in ("nnodes", "nproc", "repeat")]
        yield str(name), ":".join(map(str, terms)), entry.get("data_dir_host")


def _move_entry(moved: Moved, theirs: str, data: Any, runs: dict[str, str]) -> tuple[Fate, dict[str, str]]:
    terms = theirs.split(":")
    if not theirs or not isinstance(data, str):
        return "illegal", {"why": "expected case:framework:chip:nnodes:nproc:repeat, and the folder of its data"}
    suite = "training" if len(terms) > 2 else "inference"
    case = moved.cases.find(suite, terms[0])
    if case is None:
        return "unknown", {"why": moved.cases.nearest(suite, terms[0])}
    ours = ":".join([case.file.case, *terms[1:6]])
    try:
        HostFile.model_validate({"CASES": {ours: data}})
        HostFile.model_validate({"CASES": {**runs, ours: data}})
    except ValidationError as error:
        return "illegal", {"why": problems_of(error, "")[0].what}
    runs[ours] = data
    renamed = case.file.case != terms[0]
    # whether the folder is laid out so only the case can say, which reads it whole; it may not be on this machine
    why = f"FlagPerf's data may have another layout: {case.page} says what the folder must hold"
    return ("renamed" if renamed else "taken over"), {"here": f"{RUNS}: CASES: {ours}", "why": why}


def _move_cluster(moved: Moved, taken: dict[str, _Given]) -> None:
    """Without hosts there is no cluster; a run list may have the caches cleared all the same."""
    names = {"HOSTS": "hosts", "SSH_PORT": "port", "MASTER_PORT": "master_port", "CLEAR_CACHES": "clear_caches"}
    values: dict[str, Any] = {"work_dir": WORK_DIR}
    for key, ours in names.items():
        if key not in taken:
            continue
        given = taken.pop(key)
        value = int(given.value) if ours.endswith("port") and str(given.value).isdecimal() else given.value
        said = tuple(value) if isinstance(value, list) and ours != "hosts" else value
        try:
            # no hosts are no mistake there: then no cluster file is written
            Cluster.model_validate({"work_dir": WORK_DIR} | ({} if value == [] else {ours: said}))
        except ValidationError as error:
            moved.tell(given.file, given.line, key, given.value, "illegal", why=problems_of(error, "")[0].what)
            continue
        values[ours] = value
        listed = key == "CLEAR_CACHES" and RUNS in moved.files and not values.get("hosts")
        here = f"{RUNS}: {key}" if listed else f"{CLUSTER}: {ours}"
        moved.tell(given.file, given.line, key, given.value, "taken over" if listed else "renamed", here=here)
    if not values.get("hosts"):
        moved.not_written(CLUSTER, f"no HOSTS are named, so there is no {CLUSTER}: write a cluster file yourself")
    else:
        moved.write_yaml(
            CLUSTER, values, "Of FlagPerf's cluster_conf.py and host.yaml; ssh's keys and users are ssh's to say"
        )


def _move_container(moved: Moved, taken: dict[str, _Given]) -> None:
    """Each option by itself, so that one that may not be given doesn't cost the others."""
    target, values = f"{moved.package}/container.yaml", dict[str, Any]()
    wall, devices = f"{moved.package}/{ISOLATION}", list[str]()
    for key, ours in (("SHM_SIZE", "shm_size"), ("ACCE_CONTAINER_OPT", "options")):
        if key not in taken:
            continue
        given = taken.pop(key)
        for option in _options(given.value) if ours == "options" else [given.value]:
            name, value = _setting_of(option) if ours == "options" else (ours, option)
            listed = name in ("options", "mounts")
            try:
                ContainerSettings.model_validate({name: (value,) if listed else value})
            except ValidationError as error:
                moved.tell(given.file, given.line, key, option, "illegal", why=problems_of(error, "")[0].what)
                continue
            values[name] = [*values.get(name, []), value] if listed else value
            here = f"{target}: {name}" + (f": {value}" if listed and value != option else "")
            if device := _device_of(option):
                devices.append(device)
                here += f"; {wall}: devices: {device}"
            moved.tell(given.file, given.line, key, option, "renamed", here=here)
    if values:
        moved.write_yaml(target, values, "Of FlagPerf's ACCE_CONTAINER_OPT and SHM_SIZE")
    if devices:
        moved.write_yaml(
            wall, {"devices": list(dict.fromkeys(devices))}, "What the vendor's code may open behind its wall"
        )


def _device_of(option: str) -> str | None:
    """The host's device file that an option of docker's gives to a container, where a wall may show it too."""
    name, _, value = option.partition("=")
    device = value.partition(":")[0]
    try:
        IsolationSettings.model_validate({"devices": (device,)})
    except ValidationError:
        return None
    return device if name == "--device" else None


def _setting_of(option: str) -> tuple[str, Any]:
    """Our setting that an option of docker's is, and its value there: a mount that says no more is read-only here."""
    name, _, value = option.partition("=")
    if name in ("-v", "--volume"):
        return "mounts", f"{value}:ro" if value.count(":") == 1 else value
    return ("privileged", True) if option == "--privileged" else ("options", option)


def _options(text: Any) -> list[str]:
    """Options of docker's run, each with its value in one word."""
    try:
        words = shlex.split(str(text))
    except ValueError:
        return [str(text)]
    joined: list[str] = []
    for word in words:
        if joined and "=" not in joined[-1] and not word.startswith("-"):
            joined[-1] += f"={word}"
        else:
            joined.append(word)
    return joined


def _tell_others(moved: Moved, taken: Mapping[str, _Given]) -> None:
    for key, given in taken.items():
        named = isinstance(given.value, str) and _VARIABLE.fullmatch(given.value)
        if key == "ACCE_VISIBLE_DEVICE_ENV_NAME" and not named:
            why = "is not a valid variable name: expected letters, digits and underscores, as ACME_VISIBLE_DEVICES"
            moved.tell(given.file, given.line, key, given.value, "illegal", why=why)
        elif key == "ACCE_VISIBLE_DEVICE_ENV_NAME":
            moved.facts.visible_devices_variable = str(given.value)
            here = f"{moved.package}/__init__.py: visible_devices_variable"
            moved.tell(given.file, given.line, key, given.value, "renamed", here=here)
        else:
            moved.tell(
                given.file, given.line, key, given.value, "unknown", why="no key of FlagPerf's that is known here"
            )
