"""The suite seam: everything by which one suite differs from another, found by name as a vendor is.

A suite is a package `suites/<name>`, or an installed one behind the entry point `proofmark.suites: <name>`, with an
attribute `suite`: an instance of a subclass of `Suite`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar, Generic, TypeVar

from proofmark.case import Case
from proofmark.errors import Problem, UsageError
from proofmark.finding import imported, installed
from proofmark.record.comparison import Comparison
from proofmark.record.envelope import CaseRecord
from proofmark.record.figures import Figure
from proofmark.rules.case_file import Parameters
from proofmark.rules.config import EffectiveConfig, Resolution
from proofmark.verdict.stages import Stage

GROUP = "proofmark.suites"

R = TypeVar("R", bound=CaseRecord)

RESUME: Mapping[str, Mapping[str, Any]] = {
    "--resume": {"metavar": "DIR", "help": "resume an earlier session, given its results folder"}
}
"""An option that suites share whose runs can be gone on with: two that declare it alike have it in common."""


class Run(ABC, Generic[R]):
    """A case on its way to its record."""

    run_dir: Path
    record: R | None
    """None until it is finished."""

    interrupted: bool = False
    """Whether the session was interrupted: what was not run then had been selected."""

    stopped: bool = False
    """Whether the session ended before all selected tests had run (-x, --maxfail)."""

    @abstractmethod
    def finish(self) -> R:
        """End it, whatever has happened; collect, judge and save its record, once.

        Raises:
            OSError: the record can't be written.
        """

    def judged_so_far(self) -> R:
        """The record that the run would have if it ended now, judged. For suites with `short_rounds`."""
        raise NotImplementedError

    def again(self) -> Mapping[str, float]:
        """Time what is loaded for a fraction of a second more: the figures of the suite's `compared`, by key.

        Raises:
            ProofmarkError: it is not there any more, or did what a target must not.
        """
        raise NotImplementedError


class Suite(ABC):
    """What is measured, and how that is told."""

    name: ClassVar[str]
    """Its name, which is that of its folder, and what its cases have as `suite`."""

    case_type: ClassVar[type[Case]]
    record_type: ClassVar[type[CaseRecord]]

    record_fixture: ClassVar[str]
    """The fixture with the judged record of a case's run."""

    plugins: ClassVar[Sequence[str]] = ()
    """Modules with pytest fixtures and hooks of its own."""

    options: ClassVar[Mapping[str, Mapping[str, Any]]] = {}
    """Command-line options of its own: a name such as `--scale`, and argparse's attributes of it. An option that does
    no more than to set a configuration has the further attribute `sets`, its key."""

    imports: ClassVar[Sequence[str]] = ()
    """Large modules that processes of its cases import on this machine: the first case finds them imported."""

    task_launchers: ClassVar[frozenset[str]] = frozenset()
    """Names of launchers that may place its cases' jobs by themselves, as tasks."""

    compiles: ClassVar[bool] = False
    """Whether its cases have a compiler; otherwise they train."""

    scaled: ClassVar[bool] = False
    """Whether its cases are run at scales: tests have the parameter `scale`, and a vendor a file for each scale."""

    closed: ClassVar[bool] = False
    """Whether nothing may be set that the case does not declare."""

    attended: ClassVar[bool] = False
    """Whether its runs are spoken to while they run, so that a pipe must lead to them: no service that takes whole jobs
    has one."""

    engines_alone: ClassVar[bool] = False
    """Whether a vendor's code can be alone in its image, and all else of a run outside it."""

    compared: ClassVar[Sequence[str]] = ()
    """Keys of the figures, rates all, by which a version of a case is slower or faster than another."""

    short_rounds: ClassVar[bool] = False
    """Whether its runs can be timed `again`, so that two of them can be in turns; otherwise whole runs are."""

    def settle(self, resolution: Resolution, scale: str, path: str) -> Resolution:
        """Complete a resolved configuration for a scale ('' without one), and for the case file at `path`."""
        return resolution

    def precision(self, config: EffectiveConfig) -> str:
        """The precision at which a case is run."""
        return str(config.precision)

    def variant(self, config: EffectiveConfig, scale: str) -> Mapping[str, str]:
        """What tells runs of a case apart, beside vendor, chip and profile."""
        return {"precision": self.precision(config)}

    def takes_weights(self, parameters: Parameters) -> bool:
        """Whether a case of these parameters begins with what --weights names, if it is given."""
        return True

    def host_problems(self, config: EffectiveConfig, here: bool) -> Sequence[Problem]:
        """What is wrong with where the user says that data and weights are. `here`: the case runs on this machine."""
        return ()

    @abstractmethod
    def stages(self, record: Any) -> Iterable[Stage]:
        """Its verdict's stages after legality, in order; `proofmark.verdict.stages` has what suites share."""

    @abstractmethod
    def figures(self, record: Any) -> Sequence[Figure]:
        """All figures of a record, in the order in which they are read. The first headline ranks."""

    def collect(self, run_dir: Path, record: Any) -> CaseRecord | None:
        """The record of a run that has ended, made and judged once more from what lies in its folder alone.

        Args:
            run_dir: its folder, wherever that lies by now.
            record: what the session itself saved there, for what no log holds: the seal of the log. What is made with
                that seal says in `changed` what shows that the log is another.

        Returns:
            None, for a suite whose records nobody can hold to their logs.

        Raises:
            ValueError: nothing there says what was run.
            OSError: something can't be read.
        """
        return None

    def held_logs(self, run_dir: Path) -> Iterable[Path]:
        """The logs of which `collect` holds all events in memory; it may read others of any length, line by line."""
        return run_dir.rglob("*.jsonl")

    def charts(self, record: Any) -> Mapping[str, str]:
        """Charts of a record by title, each an SVG that stands in a page or alone. They keep what is withheld."""
        return {}

    def section(self, record: Any) -> str:
        """What else the page shows of a record beside its envelope and figures, as safe HTML: `<div class="block">`."""
        return ""

    def comparisons(self, records: Sequence[Any]) -> Sequence[Comparison]:
        """What records of one session say together."""
        return ()

    def write_files(self, record: Any, run_dir: Path) -> None:  # noqa: B027 (most suites have none)
        """Write what other tools read of a run, into its folder.

        Raises:
            OSError: no space, no permission.
        """


def find_suites(suites_dir: Path) -> dict[str, Suite]:
    """All suites by name: folders of `suites_dir` and installed ones. A folder without cases need be none.

    Raises:
        UsageError: one can't be imported, is no suite, lacks a part, or has the name of another.
    """
    folders = sorted(path.parent.name for path in suites_dir.glob("*/__init__.py") if path.parent.name.isidentifier())
    found: dict[str, tuple[str, Suite]] = {}
    for name in folders:
        package = imported(f"suites.{name}", f"suite '{name}'")
        if hasattr(package, "suite") or any((suites_dir / name).glob("test_*.py")):
            found[name] = (str(suites_dir / name), _checked(package, name))
    for entry in sorted(installed(GROUP), key=lambda entry: entry.name):
        if entry.name in found:
            places = f"{found[entry.name][0]}, {entry.value}"
            raise UsageError(f"suite '{entry.name}' is defined more than once: {places}; remove all but one")
        package = imported(entry.value.partition(":")[0], f"suite '{entry.name}'")
        found[entry.name] = (entry.value, _checked(package, entry.name))
    return {name: suite for name, (_, suite) in sorted(found.items())}


def _checked(package: ModuleType, name: str) -> Suite:
    where = f"{package.__file__}: suite '{name}'"
    candidate = getattr(package, "suite", None)
    if isinstance(candidate, type) and issubclass(candidate, Suite):
        raise UsageError(f"{where}: 'suite' is a class; expected an instance of it: suite = {candidate.__name__}()")
    if not isinstance(candidate, Suite):
        raise UsageError(f"{where}: expected an attribute 'suite', an instance of proofmark.suite.Suite")
    if getattr(candidate, "name", None) != name:
        raise UsageError(f"{where}: its name is {getattr(candidate, 'name', None)!r:.80}; expected '{name}'")
    for part, kind in (("case_type", Case), ("record_type", CaseRecord)):
        given = getattr(candidate, part, None)
        if not isinstance(given, type) or not issubclass(given, kind):
            raise UsageError(f"{where}: '{part}' must be a subclass of {kind.__module__}.{kind.__name__}")
    if not isinstance(getattr(candidate, "record_fixture", None), str):
        raise UsageError(f"{where}: 'record_fixture' must be the name of a fixture")
    for option in candidate.options:
        if not option.startswith("--"):
            raise UsageError(f"{where}: option {option!r:.80}: expected a name such as --scale")
    return candidate
