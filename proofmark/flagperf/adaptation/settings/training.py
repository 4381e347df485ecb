"""A vendor's settings of FlagPerf's trainings: a file for each case and scale, held against our case."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from proofmark.errors import UsageError
from proofmark.flagperf.adaptation.fates import Fate, MutableCheck
from proofmark.flagperf.adaptation.layout import CaseFolder
from proofmark.flagperf.adaptation.moved import Moved
from proofmark.flagperf.adaptation.our_cases import OurCase
from proofmark.flagperf.adaptation.python.code import functions_of, unreadable
from proofmark.flagperf.adaptation.python.literals import Assigned
from proofmark.flagperf.adaptation.python.source import PythonFile, read_python
from proofmark.flagperf.adaptation.settings.needs import move_environment
from proofmark.flagperf.adaptation.settings.shared_keys import BY_ITSELF, PRECISIONS, is_off, ours_of, same_as_the_task
from proofmark.flagperf.adaptation.settings.standard import Standard, read_standard, tell_standard
from proofmark.rules.scale import Scale
from proofmark.vendor.adapter import ADAPTABLE

SUITE = "training"
STEPS = dict.fromkeys(ADAPTABLE, "") | {"model_to_fp16": "autocast", "create_grad_scaler": "autocast"}
"""Functions of FlagPerf's trainer_adapter, and which step of ours takes their place where its name is another."""


def move_trainings(moved: Moved) -> None:
    """Read all of the vendor's training cases."""
    files = breaking = assignments = off = 0
    for folder in moved.checkout.case_folders:
        standard = read_standard(moved, folder)
        case = _case_of(moved, folder)
        written: dict[str, Path] = {}
        said: list[set[str]] = []
        read: list[PythonFile] = []
        for name, path in folder.scale_files:
            file = read_python(path, moved.checkout.root, [moved.checkout.base_of(folder)])
            mine = {key: each for key, each in file.values.items() if not key.startswith("_")}
            if standard.mutable is not None and not file.is_unread:
                wrong = [key for key in mine if key not in standard.mutable]
                files, breaking = files + 1, breaking + bool(wrong)
                assignments, off = assignments + len(mine), off + len(wrong)
            before = len(moved.rows)
            _move_scale(moved, folder, case, standard, name, path, file, mine, written)
            moved.read |= {path, *file.sources}
            said.append({*mine, *(each.key for each in file.refused)} - moved.stands_nowhere(before))
            read.append(file)
        _tell_replaced(moved, read)
        _tell_nameless(moved, folder, read)
        tell_standard(moved, case, folder, standard, set.intersection(*said) if said else set())
        move_environment(moved, case, folder)
        _tell_code(moved, case, folder)
    moved.check = MutableCheck(files, breaking, assignments, off)


def _tell_replaced(moved: Moved, read: list[PythonFile]) -> None:
    """What no settings are left with, since each that has it sets it again, or may: the last place of the first that
    does."""
    kept = {(key, each) for file in read for key, each in _places(file)}
    for name, before, setter, line, known in (each for file in read for each in file.replaced):
        if name[:1] != "_" and (name, _place(before)) not in kept:
            kept.add((name, _place(before)))
            again = f"{moved.checkout.shown(setter)}:{line}"
            why = f"set again in {again}" if known else f"{again} may set it again, and computes: nobody knows to what"
            moved.tell(before.file, before.line, name, before.value, "redundant" if known else "refused", why=why)


def _place(assigned: Assigned) -> tuple[str, int]:
    return assigned.file, assigned.line


def _places(file: PythonFile) -> list[tuple[str, tuple[str, int]]]:
    return [(key, _place(each)) for key, each in file.values.items()]


def _tell_nameless(moved: Moved, folder: CaseFolder, read: list[PythonFile]) -> None:
    """Files by whose names nobody finds settings; what others import needs no such name."""
    imported = {path for file in read for path in file.sources}
    for path in folder.nameless_files:
        if path not in imported:
            moved.tell(
                path,
                0,
                "",
                None,
                "illegal",
                why="is not a config_<chip>x<nodes>x<processes>.py, and no settings import it",
            )


def _tell_refused(moved: Moved, case: OurCase | None, file: PythonFile) -> None:
    """Each line that was not read. A scaler of gradients is code, and has its place."""
    scalers = [each for each in file.refused if case and "GradScaler" in f"{each.key} {each.what}"]
    for each in scalers:
        here = f"{_adapter(moved, case)}: TrainingAdapter.autocast"
        moved.tell(each.file, each.line, each.key, None, "by hand", here=here, why="scales gradients")
    moved.tell_refused(file, frozenset((each.file, each.line) for each in scalers))


def _adapter(moved: Moved, case: OurCase | None) -> str:
    return f"{moved.package}/training/{case.file.case if case else '<case>'}.py"


def _case_of(moved: Moved, folder: CaseFolder) -> OurCase | None:
    where = moved.checkout.shown(folder.path)
    case = moved.cases.find(SUITE, folder.model)
    if not folder.framework.startswith("pytorch"):
        near = f"the case in pytorch is {case.name}" if case else moved.cases.nearest(SUITE, folder.model)
        why = f"its framework is {folder.framework}; only pytorch is here: {near}"
        moved.tell(where, 0, "", None, "unknown", why=why)
        return None
    if case is None:
        moved.tell(where, 0, "", None, "unknown", why=moved.cases.nearest(SUITE, folder.model))
    elif case.file.case != folder.model:
        moved.tell(where, 0, "", None, "renamed", here=case.name)
    return case


def _move_scale(
    moved: Moved,
    folder: CaseFolder,
    case: OurCase | None,
    standard: Standard,
    name: str,
    path: Path,
    file: PythonFile,
    mine: dict[str, Assigned],
    written: dict[str, Path],
) -> None:
    """One file of settings; of a case that is not here each key is told all the same."""
    if case is None:
        for key, each in mine.items():
            why = moved.absence(folder)
            moved.tell(each.file, each.line, key, each.value, "unknown", why=why, theirs=standard.says(key, each.value))
        _tell_refused(moved, case, file)
        return
    if not file.values and any(not each.line for each in file.refused):  # nothing of it could be read
        _tell_refused(moved, case, file)
        return
    try:
        scale = _scale(name)
    except UsageError as error:
        moved.tell(path, 0, "", None, "illegal", why=str(error))
        return
    target = f"{moved.package}/configs/{case.name}/{scale}.yaml"
    if target in moved.files:
        why = f"{target} is written already, of {moved.checkout.shown(written.get(target, 'another case'))}"
        moved.tell(path, 0, "", None, "illegal", why=why)
        return
    written[target] = path
    moved.facts.chips.add(scale.chip or "")
    values = _fate_of_each(moved, case, standard, mine, str(scale), target)
    _tell_refused(moved, case, file)
    moved.facts.precisions.add(str(values.get("precision", case.file.settings["precision"].value)))
    moved.write_yaml(target, values, f"Of FlagPerf's {moved.checkout.shown(path)}; what is not here, import.md tells")


def _scale(name: str) -> Scale:
    scale = Scale.parse(name)
    if scale.chip is None:
        raise UsageError(f"'config_{name}.py': expected one chip, nodes and processes, as config_A100x1x8.py")
    return scale


def _fate_of_each(
    moved: Moved, case: OurCase, standard: Standard, mine: dict[str, Assigned], scale: str, target: str
) -> dict[str, Any]:
    """Tell the fate of each key, and return the settings that stand."""
    asked: dict[str, tuple[str, Any]] = {}
    for key, each in sorted(mine.items(), key=lambda item: is_off(item[0], item[1].value)):
        theirs = standard.says(key, each.value)
        ours, value = ours_of(case, key, each.value)
        if ours is None:
            fate, remarks = _without_setting(moved, case, standard, key, each)
            moved.tell(each.file, each.line, key, each.value, fate, theirs=theirs, **remarks)
        elif ours in asked and is_off(key, each.value) and asked[ours][0] in PRECISIONS:
            why = f"{asked[ours][0]} says {ours} {asked[ours][1]}"
            moved.tell(each.file, each.line, key, each.value, "redundant", why=why, theirs=theirs)
        elif ours in asked:
            why = (
                f"{asked[ours][0]} says so already" if asked[ours][1] == value else f"{asked[ours][0]} sets {ours} too"
            )
            fate = "redundant" if asked[ours][1] == value else "illegal"
            moved.tell(each.file, each.line, key, each.value, fate, why=why, theirs=theirs)
        else:
            asked[ours] = (key, value)
    verdicts = case.held(moved.checkout.vendor, {ours: value for ours, (_, value) in asked.items()}, scale)
    for ours, (key, value) in asked.items():
        each = mine[key]
        theirs = standard.says(key, each.value)
        if ours in verdicts.wrong:
            idle, what = verdicts.wrong[ours]
            moved.tell(
                each.file, each.line, key, each.value, "redundant" if idle else "illegal", why=what, theirs=theirs
            )
        else:
            here = f"{target}: {ours}" if ours == key else f"{target}: {ours}: {value}"
            fate = "taken over" if ours == key else "renamed"
            moved.tell(each.file, each.line, key, each.value, fate, here=here, theirs=theirs)
    return dict(verdicts.legal)


def _without_setting(
    moved: Moved, case: OurCase, standard: Standard, key: str, each: Assigned
) -> tuple[Fate, dict[str, str]]:
    """The fate of a key that is no setting of ours."""
    value = each.value
    if key in BY_ITSELF:
        return "redundant", {"why": BY_ITSELF[key]}
    if key in PRECISIONS and "precision" in case.file.settings:
        return "illegal", {"why": f"expected True or False, found {value!r:.40}: it stands for precision here"}
    if key == "dist_backend" and isinstance(value, str):
        return moved.take_backend(value, each.file)
    if key.lower() == "theoryflops":
        return _peak(moved, each)
    if why := same_as_the_task(case, key, value):
        return "redundant", {"why": why}
    parameter = case.parameter(key)
    words = key.lower().split("_")
    if parameter or "target" in words or "seed" in words:
        return "illegal", {
            "why": f"is a parameter of the task{f' ({parameter})' if parameter else ''}, which may not be set"
        }
    verdicts = case.held(moved.checkout.vendor, {key: value})
    what = verdicts.wrong.get(key, (False, ""))[1]
    if "reserved name" in what or "host setting" in what:
        return "illegal", {"why": what}
    if standard.mutable is not None and key in standard.values and key not in standard.mutable:
        return "illegal", {"why": "is of the task in FlagPerf, where vendors may not set it, and no setting here"}
    return "unknown", {"why": "no setting of this case"}


def _peak(moved: Moved, each: Assigned) -> tuple[Fate, dict[str, str]]:
    flops = each.value
    if isinstance(flops, bool) or not isinstance(flops, int | float) or not 1e9 < flops < 1e17:
        return "illegal", {"why": "is not a chip's peak: remove it; there is then no MFU"}
    return moved.take_peak("fp16", float(flops), each.file)


def _tell_code(moved: Moved, case: OurCase | None, folder: CaseFolder) -> None:
    """Code in extern and csrc is the vendor's to move: which of our steps takes the place of which function."""
    own = _adapter(moved, case)
    for path in sorted((folder.path / "extern").rglob("*.py")):
        found = [(name, line) for name, line in functions_of(path, moved.checkout.root) if name in STEPS]
        for name, line in found:
            moved.tell(path, line, f"{name}()", None, "by hand", here=f"{own}: TrainingAdapter.{STEPS[name] or name}")
        if why := unreadable(path, moved.checkout.root):
            moved.tell(path, 0, "", None, "refused", why=why)
        elif not found and path.stem != "__init__":
            why = "no step of a training that may be adapted: the case's model is the referee's"
            moved.tell(path, 0, "", None, "by hand", why=why)
    if (folder.path / "csrc").is_dir():
        moved.tell(folder.path / "csrc", 0, "", None, "by hand", why="build it as a package, and require that")
