"""Finding a vendor by name: a folder under vendors/, or an entry point of an installed package."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from importlib.metadata import Distribution
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from proofmark.errors import Problem, StepError, UsageError
from proofmark.finding import imported, installed
from proofmark.names import hint, misnamed
from proofmark.vendor.adapter import TrainingAdapter, adapted_steps
from proofmark.vendor.compiler_module import lacks_class, wrong_arguments, wrong_with
from proofmark.vendor.contract import Vendor
from proofmark.vendor.engine import Compiler, InferModel
from proofmark.vendor.from_source import FromSource
from proofmark.vendor.stray_files import (
    CONFIGS,
    names_a_scale,
    what_is_expected,
    why_never_read,
    why_none_is_read,
)

if TYPE_CHECKING:
    from proofmark.wall.isolation import Isolation

GROUP = "proofmark.vendors"

EVERY_CASE = ""
"""In the place of a case, for what holds of all that have nothing of their own."""


class FoundVendor:
    """A vendor with the place it came from."""

    def __init__(
        self,
        name: str,
        package: ModuleType,
        vendor: Vendor,
        vendors_dir: Path,
        distribution: str | None = None,
        adapted: Mapping[str, Collection[str]] | None = None,
        isolation: Isolation | None = None,
    ) -> None:
        self.name = name
        self.distribution = distribution
        """The installed package that it came with; None of a folder under vendors/."""
        self.isolation = isolation
        """How its code was kept from the rest when it introduced itself; None where it was imported right here."""
        self.vendors_dir = vendors_dir
        self._adapted = adapted
        self.package = package
        self.vendor = vendor
        self.directory = Path(package.__file__ or ".").resolve().parent

    @property
    def unsupported_file(self) -> Path:
        """What the vendor expects not to work; need not exist."""
        return self.directory / "unsupported.yaml"

    def expects_unsupported(self, case: str, compiler: str | None, precision: str) -> str | None:
        """Why the vendor expects `<suite>/<case>` not to run like this; None where it does not.

        Raises:
            ConfigurationError: its list is wrong.
        """
        from proofmark.vendor.unsupported import expected_reason, load_expected  # not there in a vendor's image

        return expected_reason(load_expected(self.unsupported_file), case, compiler, precision)

    def adapters_of(self, suites: Iterable[str]) -> list[str]:
        """Cases of some suites, as `<suite>/<case>`, that the vendor has a module for: `<suite>/<case>.py`."""
        found = [path for suite in suites for path in sorted((self.directory / suite).glob("*.py"))]
        return [f"{path.parent.name}/{path.stem}" for path in found if path.stem != "__init__"]

    def training_adapter(self, case: str) -> TrainingAdapter:
        """The vendor's way to train `<suite>/<case>`: of the case's own module, where there is one.

        Raises:
            UsageError: the module can't be imported, or has no adapter.
        """
        if not (self.directory / f"{case}.py").is_file():
            return self.vendor.training_adapter()
        target = f"{self.package.__name__}.{case.replace('/', '.')}"
        adapter = getattr(imported(target, f"what vendor '{self.name}' adapts of {case}"), "adapter", None)
        if not isinstance(adapter, TrainingAdapter):
            file = self.directory / f"{case}.py"
            theirs = f"; it {what}" if (what := why_never_read(file.name)) else ""
            raise UsageError(f"{file}: expected 'adapter', an instance of a TrainingAdapter{theirs}")
        return adapter

    def adapted_in(self, case: str) -> list[str]:
        """Names of the steps of a case's training that the vendor does otherwise."""
        if self._adapted is None:
            return adapted_steps(self.training_adapter(case))
        return list(self._adapted.get(case, self._adapted[EVERY_CASE]))

    @property
    def chips_file(self) -> Path:
        """Peaks of the vendor's chips."""
        return self.directory / "chips.yaml"

    def overrides_file(self, suite: str, case: str) -> Path:
        """Where the vendor's overrides of one case are; need not exist."""
        return self.directory / CONFIGS / suite / f"{case}.yaml"

    def scale_files(self, suite: str, case: str) -> list[Path]:
        """The vendor's overrides of a case that is run at scales, each in a file: `<chip>x<nnodes>x<nproc>.yaml`."""
        return sorted((self.directory / CONFIGS / suite / case).glob("*.yaml"))

    def stray_overrides(self, cases: Mapping[str, bool]) -> list[Problem]:
        """Files among the vendor's overrides that no case will ever read, whatever they are.

        Args:
            cases: all there are, as `<suite>/<case>`, and of each whether it is run at scales.
        """
        configs = self.directory / CONFIGS
        known = [f"{case}.yaml" for case, scaled in cases.items() if not scaled]
        files = (path for path in sorted(configs.rglob("*")) if path.is_symlink() or not path.is_dir())
        names = {path: path.relative_to(configs).as_posix() for path in files if "__pycache__" not in path.parts}
        links = [path for path in (configs, *names) if path.is_symlink()]
        what = "is a link; expected a file with the case's own settings: a change of another's would change them too"
        return [Problem(str(path), "", what) for path in links] + [
            Problem(str(path), "", what_is_expected(name, known, cases))
            for path, name in names.items()
            if name not in known and not names_a_scale(name, cases) and path.name != ".gitkeep" and path not in links
        ]

    def stray_files(self, cases: Iterable[str]) -> list[Problem]:
        """Files and folders beside the vendor's package, or files among its adapters, that look like settings and that
        nobody reads.

        Args:
            cases: all there are, as `<suite>/<case>`.
        """
        suites = sorted({case.partition("/")[0] for case in cases})
        found = [path for folder in ["", *suites] for path in sorted((self.directory / folder).glob("*"))]
        whys = {path: why_never_read(path.name) for path in found}
        whys |= {
            path: why_none_is_read(path, suites) for path in found if path.parent == self.directory and path.is_dir()
        }
        return [Problem(str(path), "", why) for path, why in whys.items() if why is not None]

    @property
    def is_local(self) -> bool:
        """Whether it lives beside the suites, and not in an installed package."""
        return self.directory.parent == self.vendors_dir.resolve()

    def compiler(self, name: str) -> tuple[str, Compiler]:
        """Resolve a compiler's name, `default` included.

        Raises:
            UsageError: the vendor has none of that name.
        """
        resolved = self.vendor.default_compiler if name == "default" else name
        if resolved not in self.vendor.compilers:
            known = sorted(self.vendor.compilers)
            has = f"it has {', '.join(known) or 'none'}, and 'null' ends after framework validation"
            raise UsageError(f"unknown compiler '{name}' of vendor {self.name}: {has}{hint(name, [*known, 'null'])}")
        return resolved, self.vendor.compilers[resolved]

    def infer_model(self, compiler: str) -> Callable[..., InferModel]:
        """The InferModel class of a compiler's module.

        Raises:
            UsageError: the module can't be imported or holds no such class.
        """
        module = imported(f"{self.package.__name__}.{compiler}", f"compiler '{compiler}' of vendor {self.name}")
        found = getattr(module, "InferModel", None)
        if not isinstance(found, type):
            own = [name for name, each in vars(module).items() if getattr(each, "__module__", "") == module.__name__]
            raise UsageError(f"{module.__file__}: {lacks_class(own)}")
        if "__call__" not in dir(found):
            own = [name for name, each in vars(found).items() if callable(each)]
            has = f"has {', '.join(own)}{misnamed('__call__', own)}" if own else "has no method"
            raise UsageError(f"{module.__file__}: expected a class InferModel with a method __call__; it {has}")
        if what := wrong_arguments(found):
            raise UsageError(f"{module.__file__}{what}")
        return found


def available_vendors(vendors_dir: Path) -> list[str]:
    """All names that `find_vendor` knows, broken ones included."""
    folders = {path.parent.name for path in vendors_dir.glob("*/__init__.py")}
    return sorted({name for name in folders if name.isidentifier()} | {entry.name for entry in installed(GROUP)})


def target_of(name: str, vendors_dir: Path) -> tuple[str, Distribution | None]:
    """The module that is imported for a vendor, and the installed package that it came with; nothing is imported.

    Raises:
        UsageError: unknown or ambiguous.
    """
    entries = [entry for entry in installed(GROUP) if entry.name == name]
    local = (vendors_dir / name / "__init__.py").is_file() and name.isidentifier()
    if len(entries) + local > 1:
        places = [str(vendors_dir / name)] * local + [entry.value for entry in entries]
        raise UsageError(f"vendor '{name}' is defined more than once: {', '.join(places)}; remove all but one")
    if not local and not entries:
        if any(path.name == name and path.is_dir() for path in vendors_dir.glob("*")):
            named = "its name may only have letters, digits and underscores, and begin with no digit: ac_me"
            what = "there is no __init__.py in it" if name.isidentifier() else named
            raise UsageError(f"vendor '{name}': {vendors_dir / name} cannot be imported: {what}")
        known = available_vendors(vendors_dir)
        raise UsageError(f"unknown vendor '{name}': there are {', '.join(known)}{hint(name, known)}")
    return (f"vendors.{name}", None) if local else (entries[0].value.partition(":")[0], entries[0].dist)


def find_vendor(name: str, vendors_dir: Path, device: str | None = None, target: str | None = None) -> FoundVendor:
    """Import a vendor, let it select `device` where one is asked for, and check that it fulfils the contract.

    Args:
        target: its module, where that is known; None: as `target_of` finds it.

    Raises:
        UsageError: unknown, ambiguous, broken on import, without such a device, or not what the contract asks for.
    """
    dist = None
    if target is None:
        target, dist = target_of(name, vendors_dir)
    FromSource.imports(target.partition(".")[0] if dist is None else target)
    package = imported(target, f"vendor '{name}'")
    distribution = None if dist is None else dist.name
    return FoundVendor(name, package, _checked(package, name, device), vendors_dir, distribution)


def _checked(package: ModuleType, name: str, device: str | None) -> Vendor:
    where = f"{package.__file__}: vendor '{name}'"
    candidate = getattr(package, "vendor", None)
    if isinstance(candidate, type) and issubclass(candidate, Vendor):
        raise UsageError(f"{where}: 'vendor' is a class; expected an instance of it: vendor = {candidate.__name__}()")
    if not isinstance(candidate, Vendor):
        raise UsageError(f"{where}: expected an attribute 'vendor', an instance of proofmark.vendor.Vendor")
    if device is not None:
        try:
            candidate.select(device)
        except StepError as error:
            raise UsageError(f"vendor '{name}': --device {device}: {error}") from None
    compilers = candidate.compilers
    if not isinstance(compilers, dict) or not all(isinstance(value, Compiler) for value in compilers.values()):
        raise UsageError(f"{where}: 'compilers' must be a dict of names to proofmark.vendor.Compiler")
    if texts := _no_sets(candidate):
        raise UsageError("\n".join(f"{where}: {what}" for what in texts))
    default: object = getattr(candidate, "default_compiler", None)
    if default not in list(compilers):
        found = f"found {default!r:.80}{hint(default, compilers)}" if isinstance(default, str) else "found no text"
        known = ", ".join(sorted(compilers)) or "(none)"
        raise UsageError(f"{where}: 'default_compiler' must be one of {known}; {found}")
    directory = Path(package.__file__ or ".").parent
    for compiler in compilers:
        if not (directory / f"{compiler}.py").is_file():
            of_many = " (a package is none: its file may import from one)" if (directory / compiler).is_dir() else ""
            raise UsageError(f"{where}: compiler '{compiler}' has no module {directory / compiler}.py{of_many}")
    files = [directory / f"{compiler}.py" for compiler in compilers]
    if problems := [f"{file}: {what}" for file in files if (what := wrong_with(file))]:
        raise UsageError("\n".join(problems))
    return candidate


def _no_sets(vendor: Vendor) -> list[str]:
    """Precisions that are text, which is a collection too: of letters."""
    declared: dict[str, object] = {
        f"compilers.{name}.precisions": each.precisions for name, each in vendor.compilers.items()
    }
    declared |= {name: getattr(vendor, name, None) for name in ("framework_precisions", "training_precisions")}
    found = {name: value for name, value in declared.items() if isinstance(value, str)}
    return [f"{name}: expected a set of precisions, found the text {value!r:.80}" for name, value in found.items()]
