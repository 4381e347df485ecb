"""A vendor's settings of FlagPerf's inference: configurations.yaml under the vendor's own, held against our case."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from proofmark.errors import ConfigurationError
from proofmark.flagperf.adaptation.fates import Fate
from proofmark.flagperf.adaptation.moved import Moved
from proofmark.flagperf.adaptation.our_cases import OurCase
from proofmark.flagperf.adaptation.settings.needs import take_inference_requirements
from proofmark.flagperf.adaptation.settings.shared_keys import fate_of_shared, same_as_the_task
from proofmark.rules.yaml.strict import load_mapping

SUITE, ENDING = "inference", "configurations.yaml"
SHARED = (ENDING, "parameters.yaml")
"""What all vendors share of a case."""
CASES_OWN = frozenset({"repeat", "compiler", "log_freq"})
"""Settings of it that say nothing of how a vendor's device is used best."""


class _Value(NamedTuple):
    file: Path
    value: Any
    theirs: str = ""


def move_inference(moved: Moved) -> None:
    """Read the settings of each case that the vendor has some of, and of each that is here."""
    for folder in moved.checkout.inference_cases:
        own = _vendors_files(moved, folder)
        if not own and not moved.checkout.engines:
            continue
        case = moved.cases.find(SUITE, folder.name)
        if case is None:
            if own:
                why = moved.cases.nearest(SUITE, folder.name)
                moved.tell(folder, 0, "", None, "unknown", why=why)
                _tell_all(moved, folder, own)
            continue
        if case.file.case != folder.name:
            moved.tell(folder, 0, "", None, "renamed", here=case.name)
        _move_case(moved, case, folder, own)


def _vendors_files(moved: Moved, folder: Path) -> list[Path]:
    """The vendor's files: for the case, or for one compiler of it. acme_pro's begin as acme's do."""
    vendor, mine = moved.checkout.vendor, list[Path]()
    engines = [path.stem for path in moved.checkout.engines]
    for path in sorted((folder / "vendor_config").glob(f"{vendor}_*{ENDING}")):
        whose = path.name.removesuffix(ENDING).removesuffix("_")
        if whose in (vendor, *(f"{vendor}_{engine}" for engine in engines)):
            mine.append(path)
        elif whose not in moved.checkout.vendors:
            why = f"is for no compiler of {vendor}'s, which has {', '.join(engines) or 'none'}"
            moved.tell(path, 0, "", None, "unknown", why=why)
    _tell_strays(moved, folder / "vendor_config", engines)
    return sorted(mine, key=lambda path: len(path.name))


def _tell_strays(moved: Moved, folder: Path, engines: list[str]) -> None:
    """Files that are called after the vendor, or a compiler of its own, and that neither FlagPerf reads nor we do."""
    vendor = moved.checkout.vendor
    others = tuple(name for name in moved.checkout.vendors if name != vendor and name.startswith(vendor))
    for path in sorted(folder.rglob("*")):
        inside = path.relative_to(folder).as_posix()
        ours = inside.startswith((vendor, *engines)) and not inside.startswith(others)
        if ours and path.is_file() and not (path.parent == folder and path.name.endswith(f"_{ENDING}")):
            why = f"is never read: expected {vendor}_{ENDING}, or {vendor}_<compiler>_{ENDING}"
            moved.tell(path, 0, "", None, "unknown", why=why)


def _tell_all(moved: Moved, folder: Path, own: list[Path]) -> None:
    """Add the rows of a case that is not here."""
    for path in (folder / name for name in SHARED):
        if path.exists():
            moved.tell(path, 0, "", None, "unknown", why="its case is not here, nor a use for any of its keys")
    for path in own:
        for key, value in _read(moved, path).items():
            moved.tell_key(path, key, value, "unknown", why="its case is not here")


def _move_case(moved: Moved, case: OurCase, folder: Path, own: list[Path]) -> None:
    shared, parameters = (_read(moved, folder / name) for name in SHARED)
    values = {
        key: _Value(path, value, _theirs(key, value, shared, parameters))
        for path in own[:1]
        for key, value in _read(moved, path).items()
    }
    values |= _carried(moved, case, folder, (shared, parameters), values)
    for path in own[1:]:
        for key, value in _read(moved, path).items():
            why = "a case has one file of a vendor's; give it on the command line: --compiler NAME --set KEY=VALUE"
            moved.tell_key(path, key, value, "illegal", why=why)
    target = f"{moved.package}/configs/{case.name}.yaml"
    before = len(moved.rows)
    settings = _fates(moved, case, values, {**parameters, **shared}, target)
    stand = {key: each for key, each in values.items() if key not in moved.stands_nowhere(before)}
    _tell_shared(moved, case, folder, (shared, parameters), stand)
    moved.write_yaml(
        target, settings, f"Of FlagPerf's {moved.checkout.shown(folder)}; what is not here, import.md tells"
    )
    if not settings:
        del moved.files[target]
    benchmarks = (moved.checkout.inference or folder) / "benchmarks" / folder.name
    take_inference_requirements(moved, case, benchmarks)


def _carried(
    moved: Moved, case: OurCase, folder: Path, shared: tuple[Mapping[str, Any], ...], own: Mapping[str, _Value]
) -> dict[str, _Value]:
    """What the vendor ran with, since nothing of its own says otherwise: shared settings that it might set itself."""
    said = {_name(case, key) for key in own}
    found: dict[str, _Value] = {}
    for name, values in zip(SHARED, shared, strict=True):
        for key, value in values.items():
            ours = case.setting(key)
            if ours is None or ours in said or ours in CASES_OWN:
                continue
            said.add(ours)
            if not case.held(moved.checkout.vendor, {ours: value}).wrong:
                found[key] = _Value(folder / name, value)
    return found


def _tell_shared(
    moved: Moved, case: OurCase, folder: Path, shared: tuple[Mapping[str, Any], ...], own: Mapping[str, _Value]
) -> None:
    """What else all vendors share is the case's own: it is told, and no vendor's to set."""
    configurations, path = shared[0], folder / ENDING
    for name, values in zip(SHARED, shared, strict=True):
        for key, value in values.items():
            remarks: dict[str, str] = {}
            fate: Fate = "redundant"
            if name != ENDING and key in configurations:
                why = f"{moved.checkout.shown(path)} says it"
                remarks = {"theirs": "FlagPerf exits with an error: the key is in both"}
            elif key in own and own[key].file == folder / name:
                continue
            elif key in own:
                why = f"{moved.checkout.shown(own[key].file)} says it"
            else:
                fate, why = fate_of_shared(moved, case, key, value)
            moved.tell_key(folder / name, key, value, fate, why=why, **remarks)


def _theirs(key: str, value: Any, values: Mapping[str, Any], parameters: Mapping[str, Any]) -> str:
    """What FlagPerf's own merge says of a vendor's key."""
    if key in parameters:
        return "FlagPerf exits with an error: the key is in parameters.yaml"
    if key not in values:
        return "FlagPerf warns of a new key"
    return "FlagPerf exits with an error: equal to configurations.yaml" if values[key] == value else ""


def _fates(
    moved: Moved, case: OurCase, values: Mapping[str, _Value], shared: Mapping[str, Any], target: str
) -> dict[str, Any]:
    """Tell the fate of each key that the vendor runs with, and return the settings that stand."""
    names = {key: _name(case, key) for key in values}
    asked = {names[key]: each.value for key, each in values.items() if case.parameter(key) is None}
    compiler = asked.get("compiler", shared.get("compiler"))
    engines = [path.stem for path in moved.checkout.engines]
    foreign = asked.get("compiler") is not None and compiler not in engines
    if foreign:
        del asked["compiler"]
    elif compiler in engines:
        moved.facts.compiler = moved.facts.compiler or str(compiler)
    moved.facts.precisions.add("fp16" if asked.get("fp16", shared.get("fp16")) else "fp32")
    verdicts = case.held(moved.checkout.vendor, asked, compiler=moved.facts.compiler)
    for key, each in values.items():
        remarks = {"theirs": each.theirs}
        ours = names[key]
        if key == "compiler" and foreign:
            why = f"is not one of {moved.checkout.vendor}'s: it has {', '.join(engines) or 'none'}"
            moved.tell_key(each.file, key, each.value, "illegal", why=why, **remarks)
        elif (parameter := case.parameter(key)) is not None:
            same = same_as_the_task(case, key, each.value)
            why = same or f"is a parameter of the task ({parameter}), which may not be set"
            moved.tell_key(each.file, key, each.value, "redundant" if same else "illegal", why=why, **remarks)
        elif ours in verdicts.wrong:
            idle, what = verdicts.wrong[ours]
            moved.tell_key(each.file, key, each.value, "redundant" if idle else "illegal", why=what, **remarks)
        else:
            fate = "taken over" if ours == key else "renamed"
            moved.tell_key(each.file, key, each.value, fate, here=f"{target}: {ours}", **remarks)  # type: ignore[arg-type]
    return dict(verdicts.legal)


def _name(case: OurCase, key: str) -> str:
    """Our name for a key; a key of the vendor's own keeps its name."""
    return case.setting(key) or key


def _read(moved: Moved, path: Path) -> dict[str, Any]:
    """A YAML's keys; none where there is none, or where it can't be read, which is told."""
    if not path.exists():
        return {}
    try:
        return load_mapping(path, moved.checkout.root)
    except ConfigurationError as error:
        moved.tell(path, 0, "", None, "refused", why=error.problems[0].what)
        return {}
