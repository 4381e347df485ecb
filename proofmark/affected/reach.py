"""From changed files to the runs that they can affect: a pure function.

Every file has a reach, a pattern over runs. What can't be placed reaches every run.

| a file                                             | reaches                                                   |
|----------------------------------------------------|-----------------------------------------------------------|
| `vendors/<v>/configs/<suite>/<case>.yaml`          | that case with that vendor                                |
| `vendors/<v>/configs/<suite>/<case>/<scale>.yaml`  | and at that scale                                         |
| whatever else is in `vendors/<v>/`                 | that vendor, and vendors whose modules import it          |
| `suites/<suite>/test_<case>.py`, `<case>.yaml`     | that case, and what imports it                            |
| whatever else is in `suites/<suite>/`              | that suite                                                |
| what the base's `ci/rooms.yaml` names              | nothing                                                   |
| anything else                                      | everything                                                |

Within a vendor it isn't asked which module runs which. Its code may be written to hide it (a name that is computed, a
file that is read and executed), and then a change of one file would change every case and run none.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field

from proofmark.affected.changes import Change
from proofmark.affected.imports import Imports, dependents
from proofmark.affected.rooms import Rooms
from proofmark.rules.scale import Scale


@dataclass(frozen=True)
class Asked:
    """A run that a session would have: `scale` is empty without one."""

    suite: str
    case: str
    scale: str
    vendor: str


@dataclass(frozen=True)
class Reach:
    """Runs that agree with all that is given here, reached by the file `because`."""

    because: str
    suite: str | None = None
    case: str | None = None
    scale: str | None = None
    vendor: str | None = None

    def covers(self, other: Asked | Reach) -> bool:
        """Whether a run, or all that another reaches, is among them."""
        given = {name: getattr(self, name) for name in ("suite", "case", "scale", "vendor")}
        return all(mine in (None, getattr(other, name)) for name, mine in given.items())

    def __str__(self) -> str:
        case = f"{self.suite}/{self.case or '*'}" if self.suite else ""
        parts = (case, f"at {self.scale}" if self.scale else "", f"with vendor {self.vendor}" if self.vendor else "")
        return " ".join(part for part in parts if part) or "everything"


@dataclass(frozen=True)
class Tree:
    """What there is to be reached.

    Attributes:
        suites: names of the suites that have a folder.
        imports: what every module in `vendors/` and `suites/` imports.
    """

    suites: Collection[str]
    imports: Imports = field(default_factory=dict)


def reaches(files: Iterable[Change], rooms: Rooms, tree: Tree) -> tuple[Reach, ...]:
    """What changed files reach; nothing that another of them covers, but for scales' own files."""
    own: list[Reach] = []
    kept: list[Reach] = []
    for reach in (reach for change in files for reach in _reach_of(change, rooms, tree)):
        if reach.scale is not None:
            own.append(reach)
        elif not any(other.covers(reach) for other in kept):
            kept = [*(other for other in kept if not reach.covers(other)), reach]
    return (*own, *kept)


def why(run: Asked, found: Iterable[Reach]) -> Reach | None:
    """What a run is affected by, its scale's own file before any other; None where it is not affected."""
    return next((reach for reach in found if reach.covers(run)), None)


def vendors_in(files: Iterable[Change]) -> list[str]:
    """Vendors some file of which has changed."""
    paths = (f"{change.path}/" if change.submodule else change.path for change in files)
    return sorted({vendor for path in paths if (vendor := _vendor_of(path))})


def _reach_of(change: Change, rooms: Rooms, tree: Tree) -> Iterator[Reach]:
    path = change.path
    if change.submodule:  # what changed in there is not known
        yield _place(f"{path}/", path, tree)
    elif path.endswith(".py") and not rooms.affects_no_case(path):
        yield from (_place(each, path, tree) for each in sorted(dependents(path, tree.imports)))
    elif not rooms.affects_no_case(path):
        yield _place(path, path, tree)


def _place(path: str, because: str, tree: Tree) -> Reach:
    """Where a single file belongs, whatever imports it."""
    room, *names = path.split("/")
    if room == "vendors" and (vendor := _vendor_of(path)):
        return _in_vendor(vendor, names[1:], because, tree)
    if room == "suites" and len(names) > 1 and names[0] in tree.suites:
        return Reach(because, suite=names[0], case=_case_of(names, tree))
    return Reach(because)


def _in_vendor(vendor: str, names: list[str], because: str, tree: Tree) -> Reach:
    match names:
        case ["configs", suite, file] if file.endswith(".yaml") and _is_case(suite, file.removesuffix(".yaml"), tree):
            return Reach(because, suite, file.removesuffix(".yaml"), vendor=vendor)
        case ["configs", suite, name, file] if file.endswith(".yaml") and _is_case(suite, name, tree):
            if Scale.is_named(scale := file.removesuffix(".yaml")):
                return Reach(because, suite, name, scale, vendor)
    return Reach(because, vendor=vendor)


def _case_of(names: list[str], tree: Tree) -> str | None:
    """The case of a file right in a suite's folder, if it is a case's module or its YAML."""
    stem, dot, ending = names[-1].rpartition(".")
    if len(names) != 2 or not dot:
        return None
    if ending == "py" and stem.startswith("test_"):
        return stem.removeprefix("test_")
    return stem if ending == "yaml" and _is_case(names[0], stem, tree) else None


def _is_case(suite: str, name: str, tree: Tree) -> bool:
    return f"suites/{suite}/test_{name}.py" in tree.imports


def _vendor_of(path: str) -> str:
    """The vendor in whose folder a file is; empty of any other file."""
    room, *names = path.split("/")
    return names[0] if room == "vendors" and len(names) > 1 and names[0].isidentifier() else ""
