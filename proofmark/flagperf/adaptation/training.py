"""A vendor's settings of FlagPerf's trainings: a file for each case and scale, held against our case."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from proofmark.errors import ConfigurationError, UsageError
from proofmark.flagperf.adaptation.environment_files import exports, lowers_precision, requirements
from proofmark.flagperf.adaptation.fates import Fate, MutableCheck
from proofmark.flagperf.adaptation.layout import CaseFolder
from proofmark.flagperf.adaptation.moved import CaseNeeds, Moved
from proofmark.flagperf.adaptation.our_cases import OurCase
from proofmark.flagperf.adaptation.python_literals import Assigned
from proofmark.flagperf.adaptation.python_source import PythonFile, functions_of, read_python, unreadable
from proofmark.rules.scale import Scale
from proofmark.rules.strict_yaml import text_of
from proofmark.vendor.adapter import ADAPTABLE
from proofmark.vendor.environment import may_not_be_set

SUITE = "training"
PRECISIONS = {"fp16": "fp16", "amp": "fp16", "use_amp": "fp16", "bf16": "bf16", "use_bf16": "bf16", "tf32": "tf32"}
"""Switches of FlagPerf's cases, and which precision each stands for."""

STEPS = dict.fromkeys(ADAPTABLE, "") | {"model_to_fp16": "autocast", "create_grad_scaler": "autocast"}
"""Functions of FlagPerf's trainer_adapter, and which step of ours takes their place where its name is another."""


class _Standard(NamedTuple):
    """What all vendors share of a case: its values, and which of them FlagPerf lets vendors change."""

    base: dict[str, Any]
    whole: bool
    """Whether all of `base` could be read."""
    mutable: frozenset[str] | None
    """None where nobody knows."""

    def says(self, key: str, value: Any) -> str:
        """What FlagPerf's own rules say of an assignment."""
        if self.mutable is not None and key not in self.mutable:
            nowhere = self.whole and key not in self.base
            return "not in FlagPerf's mutable_params" + (", nor in its _base" if nowhere else "")
        if key in self.base and type(self.base[key]) is type(value) and self.base[key] == value:
            return "equal to FlagPerf's _base"
        return ""


def move_trainings(moved: Moved) -> None:
    """Read all of the vendor's training cases."""
    files = breaking = assignments = off = 0
    for folder in moved.checkout.case_folders:
        standard = _standard(moved, folder)
        case = _case_of(moved, folder)
        written: dict[str, Path] = {}
        for name, path in folder.scale_files:
            file = read_python(path, moved.checkout.root, [moved.checkout.base_of(folder)])
            mine = {key: each for key, each in file.values.items() if not key.startswith("_")}
            if standard.mutable is not None:
                wrong = [key for key in mine if key not in standard.mutable]
                files, breaking = files + 1, breaking + bool(wrong)
                assignments, off = assignments + len(mine), off + len(wrong)
            _move_scale(moved, case, standard, name, path, file, mine, written)
        _move_environment(moved, case, folder)
        _tell_code(moved, case, folder)
    moved.check = MutableCheck(files, breaking, assignments, off)


def _standard(moved: Moved, folder: CaseFolder) -> _Standard:
    """Of a list that could not be read whole nobody knows what is not on it."""
    config = moved.checkout.base_of(folder)
    files = (config / "_base.py", config / "mutable_params.py")
    base, listed = (read_python(file, moved.checkout.root, [config]) if file.exists() else None for file in files)
    for file in filter(None, (base, listed)):
        moved.tell_refused(file)
    mutable = listed.plain.get("mutable_params") if listed and not listed.refused else None
    if listed and not listed.refused and not isinstance(mutable, list):
        moved.tell(files[1], 0, "mutable_params", None, "refused", why="is no list of names there")
    known = frozenset(map(str, mutable)) if isinstance(mutable, list) else None
    return _Standard(base.plain if base else {}, not (base and base.refused), known)


def _case_of(moved: Moved, folder: CaseFolder) -> OurCase | None:
    where = moved.checkout.shown(folder.path)
    if not folder.framework.startswith("pytorch"):
        moved.tell(where, 0, "", None, "unknown", why=f"its framework is {folder.framework}; only pytorch is here")
        return None
    case = moved.cases.find(SUITE, folder.model)
    if case is None:
        moved.tell(where, 0, "", None, "unknown", why=moved.cases.nearest(SUITE, folder.model))
    elif case.file.case != folder.model:
        moved.tell(where, 0, "", None, "renamed", here=case.name)
    return case


def _move_scale(
    moved: Moved,
    case: OurCase | None,
    standard: _Standard,
    name: str,
    path: Path,
    file: PythonFile,
    mine: dict[str, Assigned],
    written: dict[str, Path],
) -> None:
    """One file of settings; of a case that is not here each key is told all the same."""
    if case is None:
        for key, each in mine.items():
            why = "its case is not here"
            moved.tell(each.file, each.line, key, each.value, "unknown", why=why, theirs=standard.says(key, each.value))
        moved.tell_refused(file)
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
    moved.tell_refused(file)
    moved.facts.precisions.add(str(values.get("precision", case.file.settings["precision"].value)))
    moved.write_yaml(target, values, f"Of FlagPerf's {moved.checkout.shown(path)}; what is not here, import.md tells")


def _scale(name: str) -> Scale:
    scale = Scale.parse(name)
    if scale.chip is None:
        raise UsageError(f"'config_{name}.py': expected one chip, nodes and processes, as config_A100x1x8.py")
    return scale


def _fate_of_each(
    moved: Moved, case: OurCase, standard: _Standard, mine: dict[str, Assigned], scale: str, target: str
) -> dict[str, Any]:
    """Tell the fate of each key; the settings that stand."""
    asked: dict[str, tuple[str, Any]] = {}
    for key, each in mine.items():
        theirs = standard.says(key, each.value)
        ours, value = _ours(case, key, each.value)
        if ours is None:
            fate, told = _without_setting(moved, case, standard, key, each)
            moved.tell(each.file, each.line, key, each.value, fate, theirs=theirs, **told)
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


def _ours(case: OurCase, key: str, value: Any) -> tuple[str | None, Any]:
    """Our setting and its value for a key of theirs."""
    if key in PRECISIONS and isinstance(value, bool):
        return "precision", PRECISIONS[key] if value else "fp32"
    return case.setting(key), value


BY_ITSELF = {
    "vendor": "--vendor says it",
    "data_dir": "--data-dir, or the run list, says it",
    "local_rank": "torchrun says it",
    "n_device": "the scale says it",
    "dist_init_method": "torchrun says it",
    "name": "the folder says it",
    "do_train": "a training trains",
}
"""Keys of FlagPerf's cases that say what is known here anyway."""


def _without_setting(
    moved: Moved, case: OurCase, standard: _Standard, key: str, each: Assigned
) -> tuple[Fate, dict[str, str]]:
    """The fate of a key that is no setting of ours."""
    package, value = moved.package, each.value
    if key in BY_ITSELF:
        return "redundant", {"why": BY_ITSELF[key]}
    if key == "dist_backend" and isinstance(value, str):
        moved.facts.backend = moved.facts.backend or value
        return "renamed", {"here": f"{package}/__init__.py: distributed_backend"}
    if key.lower() == "theoryflops":
        return _peak(moved, each)
    parameter = case.parameter(key)
    words = key.lower().split("_")
    if parameter or "target" in words or "seed" in words:
        return "illegal", {"why": f"is a parameter of the task{f' ({parameter})' if parameter else ''}: nobody sets it"}
    verdicts = case.held(moved.checkout.vendor, {key: value})
    what = verdicts.wrong.get(key, (False, ""))[1]
    if "reserved name" in what or "host setting" in what:
        return "illegal", {"why": what}
    if standard.mutable is not None and key in standard.base and key not in standard.mutable:
        return "illegal", {"why": "is of the task in FlagPerf, where vendors may not set it, and no setting here"}
    return "unknown", {"why": "no setting of this case"}


def _peak(moved: Moved, each: Assigned) -> tuple[Fate, dict[str, str]]:
    flops = each.value
    if isinstance(flops, bool) or not isinstance(flops, int | float) or not 1e9 < flops < 1e17:
        return "illegal", {"why": "is no chip's peak: leave it out, and there is no MFU"}
    return moved.take_peak("fp16", float(flops), each.file)


def _move_environment(moved: Moved, case: OurCase | None, folder: CaseFolder) -> None:
    config = folder.path / "config"
    needs = moved.facts.needs.setdefault(case.name, CaseNeeds()) if case else None
    take_environment(moved, needs, case, config / "environment_variables.sh")
    take_requirements(moved, needs, case, config / "requirements.txt")


def take_environment(moved: Moved, needs: CaseNeeds | None, case: OurCase | None, path: Path) -> None:
    """The variables of a script, into a case's needs."""
    for line in exports(_text(moved, path)):
        here = f"{moved.package}/environment.yaml: cases: {case.name if case else ''}: variables: {line.name}"
        why = line.why or may_not_be_set(line.name) or lowers_precision(line.value or "") or ""
        if line.value is None:
            moved.tell(path, line.number, line.name, None, "refused", why=why)
        elif why:
            moved.tell(path, line.number, line.name, line.value, "illegal", why=why)
        elif needs is None:
            moved.tell(path, line.number, line.name, line.value, "unknown", why="its case is not here")
        else:
            needs.variables[line.name] = line.value
            moved.tell(path, line.number, line.name, line.value, "taken over", here=here)


def take_requirements(moved: Moved, needs: CaseNeeds | None, case: OurCase | None, path: Path) -> None:
    """The packages of a list, into a case's needs."""
    for line in requirements(_text(moved, path)):
        if line.value is None:
            moved.tell(path, line.number, line.name, None, "refused", why=line.why)
        elif needs is None or case is None:
            moved.tell(path, line.number, line.name, line.value, "unknown", why="its case is not here")
        else:
            if line.value not in needs.requirements:
                needs.requirements.append(line.value)
            here = f"{moved.package}/environment.yaml: cases: {case.name}: requirements"
            moved.tell(path, line.number, line.name, line.value, "taken over", here=here)


def _text(moved: Moved, path: Path) -> str:
    """A file's text; none where there is none, or where it can't be read, which is told."""
    if not path.exists():
        return ""
    try:
        return text_of(path, moved.checkout.root)
    except ConfigurationError as error:
        moved.tell(path, 0, "", None, "refused", why=error.problems[0].what)
        return ""


def _tell_code(moved: Moved, case: OurCase | None, folder: CaseFolder) -> None:
    """Code in extern and csrc is the vendor's to move: which of our steps takes the place of which function."""
    own = f"{moved.package}/training/{case.file.case if case else '<case>'}.py"
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
