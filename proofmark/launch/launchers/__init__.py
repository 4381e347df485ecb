"""Launchers, found as vendors are: a module in here, or the entry point `proofmark.launchers: <name>` of a package.

Either has an attribute `launcher`: an instance of a subclass of `HostLauncher`, which finds hosts, of
`ServiceLauncher`, which hands whole jobs over, or of `TaskLauncher`, which places them as tasks.
"""

from __future__ import annotations

import contextlib
import pkgutil
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Protocol

from proofmark.errors import UsageError
from proofmark.finding import imported, installed
from proofmark.launch.cluster.cluster_file import Cluster
from proofmark.launch.cluster.code_tree import CodeTree
from proofmark.launch.cluster.node import Nodes
from proofmark.launch.job import Launcher
from proofmark.launch.service.contract import Service
from proofmark.names import hint

GROUP = "proofmark.launchers"

DEFAULT = "local"
"""The one that is taken where none is named."""


class FoundLauncher:
    """What all launchers have."""

    elsewhere: ClassVar[bool] = True
    """Whether its hosts are others than this machine."""

    options: ClassVar[Mapping[str, Mapping[str, Any]]] = {}
    """Command-line options of its own: a name such as `--region`, and argparse's attributes of it."""

    keys: ClassVar[frozenset[str]] = frozenset()
    """Keys of the cluster file that it alone looks at; one of a package has `launcher_options`, its own mapping."""


class HostLauncher(FoundLauncher, ABC):
    """Finds the hosts of a job, and the command that reaches each. What it runs there is the same for all launchers."""

    @abstractmethod
    def count(self, cluster: Cluster) -> int | None:
        """How many hosts there are; None if that is known when a job gets some."""

    @abstractmethod
    def nodes(self, cluster: Cluster, origin: str) -> Nodes:
        """What gives a job its hosts; `origin` is the cluster file's name, for messages.

        Raises:
            UsageError: something is missing here, or in the file.
        """


class ServiceLauncher(FoundLauncher, ABC):
    """Hands whole jobs to a service, which has hosts of its own: no pipe leads there. It has no cluster file."""

    @abstractmethod
    def service(self, options: Mapping[str, Any]) -> Service:
        """The service that its options ask for, by their destinations.

        Raises:
            ProofmarkError: an option is missing, or what it names is wrong; all problems at once.
        """

    @abstractmethod
    def recalled(self, settings: Mapping[str, Any]) -> Service:
        """The service that an earlier session's job is at, by its `settings`.

        Raises:
            ProofmarkError: they are none, or secrets are missing.
        """


class TaskCluster(Protocol):
    """Machines on which jobs of one node are placed.

    Attributes:
        ours: whether the session started it, so that all that runs there descends from the session.
    """

    ours: bool

    def places(self, each: int, variable: str | None = None) -> int:
        """How many jobs of so many devices there is room for at a time. See `launcher`.

        Raises:
            UsageError: for none; or for several on a machine, which nothing gives devices of their own.
        """

    def launcher(self, each: int, variable: str | None = None) -> Launcher:
        """Of jobs of so many devices, which they have in the vendor's variable; None: it has none."""

    def close(self) -> None:
        """Let go of them."""


class TaskLauncher(FoundLauncher, ABC):
    """Places many jobs of one node as tasks, on machines that it knows of, for suites that say that theirs may be
    placed so. It has no cluster file."""

    @abstractmethod
    def open(self, options: Mapping[str, Any], accelerated: bool, code: CodeTree) -> TaskCluster:
        """Connect to the machines.

        Args:
            options: its own, by their destinations.
            accelerated: whether jobs' devices are others than the processor.
            code: what jobs import of this house.

        Raises:
            UsageError: it can't be done; one line.
        """


def available_launchers() -> list[str]:
    """All names that `find_launcher` knows, broken ones included."""
    own = {module.name for module in pkgutil.iter_modules(__path__)}
    return sorted(own | {entry.name for entry in installed(GROUP)})


def find_launcher(name: str) -> FoundLauncher:
    """The launcher of that name.

    Raises:
        UsageError: unknown, ambiguous, broken on import, or none.
    """
    own = any(module.name == name for module in pkgutil.iter_modules(__path__))
    targets = [f"{__name__}.{name}"] * own
    targets += [entry.value.partition(":")[0] for entry in installed(GROUP) if entry.name == name]
    if not targets:
        known = available_launchers()
        raise UsageError(f"unknown launcher '{name}': there are {', '.join(known)}{hint(name, known)}")
    if len(targets) > 1:
        raise UsageError(f"launcher '{name}' is defined more than once: {', '.join(targets)}; remove all but one")
    module = imported(targets[0], f"launcher '{name}'")
    found = getattr(module, "launcher", None)
    if not isinstance(found, FoundLauncher):
        kinds = f"{__name__}.HostLauncher, ServiceLauncher or TaskLauncher"
        what = f"an attribute 'launcher', an instance of a subclass of {kinds}"
        raise UsageError(f"{module.__file__}: launcher '{name}': expected {what}")
    return found


def usable_launchers() -> Iterator[tuple[str, FoundLauncher]]:
    """All that can be found, by name: one that is broken harms nobody else."""
    for name in available_launchers():
        with contextlib.suppress(UsageError):
            yield name, find_launcher(name)


def left_aside(cluster: Cluster, name: str) -> list[str]:
    """Keys of a cluster file that others look at, and this launcher does not."""
    others = {"launcher_options"}
    for _, other in usable_launchers():
        others |= other.keys
    others -= find_launcher(name).keys
    return [key for key in type(cluster).model_fields if key in others and key in cluster.model_fields_set]
