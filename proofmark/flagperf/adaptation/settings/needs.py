"""What a case of a vendor's needs around it: its environment_variables.sh and requirements.txt."""

from __future__ import annotations

from collections.abc import Set
from pathlib import Path

from packaging.utils import canonicalize_name

from proofmark.errors import ConfigurationError
from proofmark.flagperf.adaptation.layout import CaseFolder
from proofmark.flagperf.adaptation.moved import CaseNeeds, Moved
from proofmark.flagperf.adaptation.our_cases import OurCase
from proofmark.flagperf.adaptation.settings.environment_files import Line, exports, lowers_precision, requirements
from proofmark.rules.yaml.strict import text_of
from proofmark.vendor.environment import ASSIGNED, may_not_be_set


def move_environment(moved: Moved, case: OurCase | None, folder: CaseFolder) -> None:
    """Read what lies beside a training's settings."""
    config = folder.path / "config"
    needs = moved.facts.needs.setdefault(case.name, CaseNeeds()) if case else None
    absent = moved.absence(folder)
    _take_variables(moved, needs, case, config / "environment_variables.sh", absent)
    take_requirements(moved, needs, case, config / "requirements.txt", absent=absent)


def _take_variables(moved: Moved, needs: CaseNeeds | None, case: OurCase | None, path: Path, absent: str) -> None:
    """The variables of a script, into a case's needs. Of one that is set twice the last counts, as in a shell."""
    lines = list(exports(_text(moved, path)))
    last = {line.name: at for at, line in enumerate(lines) if not (line.under or _forbidden(moved, line))}
    gone = {name: line.number for line in lines if line.name.startswith("unset ") for name in line.name.split()[1:]}
    for at, line in enumerate(lines):
        here = f"{moved.package}/environment.yaml: cases: {case.name if case else ''}: variables: {line.name}"
        if line.value is None:
            moved.tell(path, line.number, line.name, None, "refused", why=line.why)
        elif needs is None:
            moved.tell(path, line.number, line.name, line.value, "unknown", why=absent)
        elif why := _forbidden(moved, line):
            moved.tell(path, line.number, line.name, line.value, "illegal", why=why)
        elif line.under:
            why = f"only under a condition: {line.under}; write it there if it always holds"
            moved.tell(path, line.number, line.name, line.value, "by hand", here=here, why=why)
        elif last[line.name] != at:
            why = f"is set again in line {lines[last[line.name]].number}"
            moved.tell(path, line.number, line.name, line.value, "redundant", why=why)
        elif gone.get(line.name, 0) > line.number:
            why = f"is unset in line {gone[line.name]}"
            moved.tell(path, line.number, line.name, line.value, "redundant", why=why)
        elif (known := needs.variables.setdefault(line.name, line.value)) != line.value:
            why = f"another script of this case says {known!r}"
            moved.tell(path, line.number, line.name, line.value, "illegal", why=why)
        else:
            moved.tell(path, line.number, line.name, line.value, "taken over", here=here)


def _forbidden(moved: Moved, line: Line) -> str:
    """Why a variable is not taken over whatever the case; empty where it may be."""
    if line.name == moved.facts.visible_devices_variable:
        return line.why or ASSIGNED
    return line.why or may_not_be_set(line.name) or lowers_precision(line.value or "", line.name) or ""


def take_requirements(
    moved: Moved,
    needs: CaseNeeds | None,
    case: OurCase | None,
    path: Path,
    there: Set[str] = frozenset(),
    absent: str = "",
) -> None:
    """The packages of a list, into a case's needs, but for those that are there anyway."""
    for line in requirements(_text(moved, path)):
        if line.value is None:
            moved.tell(path, line.number, line.name, None, "refused", why=line.why)
        elif needs is None or case is None:
            moved.tell(path, line.number, line.name, line.value, "unknown", why=absent)
        elif canonicalize_name(line.name) in there:
            why = "requirements.txt here names it, for every vendor"
            moved.tell(path, line.number, line.name, line.value, "redundant", why=why)
        else:
            if line.value not in needs.requirements:
                needs.requirements.append(line.value)
            here = f"{moved.package}/environment.yaml: cases: {case.name}: requirements"
            moved.tell(path, line.number, line.name, line.value, "taken over", here=here)


def take_inference_requirements(moved: Moved, case: OurCase, folder: Path) -> None:
    """The packages of an inference case at each framework: FlagPerf takes the vendor's list in the place of the shared
    one."""
    needs = moved.facts.needs.setdefault(case.name, CaseNeeds())
    mine = f"{moved.checkout.vendor}_requirements.txt"
    for place in sorted(path for path in folder.glob("*") if path.is_dir()):
        shared = place / "requirements.txt"
        take_requirements(moved, needs, case, place / mine)
        if not (place / mine).exists():
            take_requirements(moved, needs, case, shared, moved.cases.packages)
        elif shared.exists():
            moved.tell(shared, 0, "", None, "redundant", why=f"FlagPerf takes {mine} in its place")


def _text(moved: Moved, path: Path) -> str:
    """A file's text; none where there is none, or where it can't be read, which is told."""
    if not path.exists():
        return ""
    moved.read.add(path)
    try:
        return text_of(path, moved.checkout.root)
    except ConfigurationError as error:
        moved.tell(path, 0, "", None, "refused", why=error.problems[0].what)
        return ""
