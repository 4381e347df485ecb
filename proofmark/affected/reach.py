"""From changed files to the runs that they can affect: a pure function.

Every file has a reach, a pattern over runs. What can't be placed reaches every run.

| a file                                             | reaches                                                   |
|----------------------------------------------------|-----------------------------------------------------------|
| `vendors/<v>/configs/<suite>/<case>.yaml`          | that case with that vendor                                |
| `vendors/<v>/configs/<suite>/<case>/<scale>.yaml`  | and at that scale                                         |
| `vendors/<v>/<compiler>.py`, and modules that only | the cases that use that compiler with that vendor         |
| compilers' modules import                          |                                                           |
| whatever else is in `vendors/<v>/`                 | that vendor                                               |
| `suites/<suite>/test_<case>.py`, `<case>.yaml`     | that case, and what imports it                            |
| whatever else is in `suites/<suite>/`              | that suite                                                |
| what the base's `ci/rooms.yaml` names              | nothing                                                   |
| anything else                                      | everything                                                |
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from proofmark.affected.changes import Change
from proofmark.affected.imports import Imports, dependents
from proofmark.affected.rooms import Rooms
from proofmark.rules.scale import Scale


@dataclass(frozen=True)
class Asked:
    """A run that a session would have: `scale` is empty without one, `compiler` None where nothing is compiled."""

    suite: str
    case: str
    scale: str
    vendor: str
    compiler: str | None


@dataclass(frozen=True)
class Reach:
    """Those runs that agree with all that is given here, because of the file `because`."""

    because: str
    suite: str | None = None
    case: str | None = None
    scale: str | None = None
    vendor: str | None = None
    compiler: str | None = None

    def covers(self, other: Asked | Reach) -> bool:
        """Whether a run, or all that another reaches, is among them."""
        given = {name: getattr(self, name) for name in ("suite", "case", "scale", "vendor", "compiler")}
        return all(mine in (None, getattr(other, name)) for name, mine in given.items())

    def __str__(self) -> str:
        case = f"{self.suite}/{self.case or '*'}" if self.suite else ""
        parts = (case, f"at {self.scale}" if self.scale else "", f"with vendor {self.vendor}" if self.vendor else "")
        compiler = f"compiled by {self.compiler}" if self.compiler else ""
        return " ".join(part for part in (*parts, compiler) if part) or "everything"


@dataclass(frozen=True)
class Tree:
    """What there is to be reached.

    Attributes:
        suites: names of the suites that have a folder.
        compilers: of each vendor that is known, the names of its compilers.
        imports: what every module in `vendors/` and `suites/` imports.
    """

    suites: Collection[str]
    compilers: Mapping[str, Collection[str]]
    imports: Imports = field(default_factory=dict)


def reaches(files: Iterable[Change], rooms: Rooms, tree: Tree) -> tuple[Reach, ...]:
    """What changed files reach; nothing that another of them covers."""
    kept: list[Reach] = []
    for reach in (reach for change in files for reach in _reach_of(change, rooms, tree)):
        if not any(other.covers(reach) for other in kept):
            kept = [*(other for other in kept if not reach.covers(other)), reach]
    return tuple(kept)


def why(run: Asked, found: Iterable[Reach]) -> Reach | None:
    """By what a run is affected; None where it is not."""
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
        run = [each for each in sorted(dependents(path, tree.imports)) if not _is_inner(each, tree)]
        yield from (_place(each, path, tree) for each in run or [path])
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
        case ["configs", suite, file] if file.endswith(".yaml"):
            return Reach(because, suite, file.removesuffix(".yaml"), vendor=vendor)
        case ["configs", suite, name, file] if file.endswith(".yaml") and Scale.is_named(file.removesuffix(".yaml")):
            return Reach(because, suite, name, file.removesuffix(".yaml"), vendor)
        case [file] if _is_compiler(vendor, file, tree):
            return Reach(because, vendor=vendor, compiler=file.removesuffix(".py"))
    return Reach(because, vendor=vendor)


def _case_of(names: list[str], tree: Tree) -> str | None:
    """Of files right in a suite's folder: its case, if it is one's module or the numbers beside one."""
    stem, dot, ending = names[-1].rpartition(".")
    if len(names) != 2 or not dot:
        return None
    if ending == "py" and stem.startswith("test_"):
        return stem.removeprefix("test_")
    return stem if ending == "yaml" and f"suites/{names[0]}/test_{stem}.py" in tree.imports else None


def _vendor_of(path: str) -> str:
    """The vendor in whose folder a file is; empty of any other file."""
    room, *names = path.split("/")
    return names[0] if room == "vendors" and len(names) > 1 and names[0].isidentifier() else ""


def _is_compiler(vendor: str, file: str, tree: Tree) -> bool:
    return file.endswith(".py") and file.removesuffix(".py") in tree.compilers.get(vendor, ())


def _is_inner(path: str, tree: Tree) -> bool:
    """Whether a vendor's module is run only by what imports it.

    The referee itself imports its package, its compilers' modules, and those beside its package that adapt a case.
    """
    vendor, names = _vendor_of(path), path.split("/")[2:]
    if not vendor:
        return False
    return not (names == ["__init__.py"] or names[0] in tree.suites or _is_compiler(vendor, "/".join(names), tree))
