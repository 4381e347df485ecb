"""A container for a vendor's code alone: what starts one of a vendor's image that sees nothing but what it is given."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from proofmark.errors import StepError

PROXIES = tuple(f"{kind}_proxy" for kind in ("http", "https", "ftp", "all", "no"))
"""Variables that an engine hands on of its own accord, from this user's environment or configuration: there may be a
password in them."""

PYTHON = "python3"
"""The interpreter of an image in which engines are alone."""

REMOVED = 'for pause in 0 2 5 15; do sleep $pause; [ -z "$("$@")" ] || break; done'
"""What a shell does to remove a container by an engine's command, its arguments: several times, for an engine may still
be making it for who is gone; until that says what it has removed."""

ENGINES_VARIABLES = ("HOME", "XDG_RUNTIME_DIR", "XDG_DATA_HOME", "XDG_CONFIG_HOME", "DBUS_SESSION_BUS_ADDRESS")
ENGINES_PREFIXES = ("DOCKER_", "CONTAINER_", "CONTAINERS_", "PODMAN_")
"""Variables by which docker and podman find their daemon, their images and their settings."""


@dataclass(frozen=True)
class EngineContainer:
    """What the containers of a case's engines have in common.

    Attributes:
        engine: docker, podman, or a path.
        image: its id.
        torch: version of the image's own torch, as that says.
        name: how the names of its containers begin.
        options: what the vendor's devices need, and whose processes they are.
        mounts: what lies with a driver, and what the cluster file adds, as --volume takes it.
        network: whether they have the host's network, as the vendor's isolation.yaml asks.
        privileged: whether they have all of their host, as its user allows.
        devices: files of the host's that they are given.
        environment: variables that the engine itself needs, in which there is nothing of the image's.
        bounds_cores: whether the engine can keep them to some cores, which podman without root mostly can't.
    """

    engine: str
    image: str
    torch: str
    name: str
    options: tuple[str, ...]
    mounts: tuple[str, ...]
    network: bool
    privileged: bool
    devices: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    bounds_cores: bool = True

    @property
    def lead(self) -> list[str]:
        """The engine's command as far as all containers have it in common.

        Its entry point is not run, nothing of the image can be written, nor becomes what it prints a file of the
        engine's own; no program of it becomes another user or has a capability that no device needs. What an image
        has run beside its first process (HEALTHCHECK) is none of that one's descendants, which alone are stopped. It
        is removed at once: podman would first ask it to end, and an interpreter that is the first process does not.
        """
        network = "host" if self.network else "none"
        closed = ["--cap-drop=ALL", "--security-opt=no-new-privileges", "--read-only", "--tmpfs=/tmp:size=4g"]
        volumes = [f"--volume={mount}" for mount in self.mounts]
        fixed = ["--rm", "--pull=never", "--log-driver=none", "--entrypoint=", "--no-healthcheck", "--stop-timeout=0"]
        fixed += [f"--network={network}", *closed]
        return [self.engine, "run", *fixed, *volumes, *self.options]

    def command(
        self,
        program: Sequence[str],
        name: str,
        directory: Path | None = None,
        read: Sequence[tuple[Path, Path]] = (),
        variables: Path | None = None,
        assigned: Mapping[str, str] | None = None,
        cores: Iterable[int] = (),
    ) -> list[str]:
        """The whole command of one that runs `program`.

        Args:
            directory: what is its own, and all that it may write, at the place that it has here.
            read: what it sees beside that, here and there.
            variables: a file of those that it has, as `variables_text` gives it: a command line is for all to see, and
                by its own environment the engine would find its daemon, its settings and what it runs.
            assigned: all of them with their values: those that the vendor's options set too, which devices it uses for
                one, are as they are here. An engine takes the last, and before a file what stands in its command.
            cores: that the kernel keeps it to, whatever it asks for, where the engine can; all where none are named.

        Raises:
            StepError: a path can't be named to an engine.
        """
        shown = [*((each, each) for each in [directory] if each), *read]
        for here, _ in shown:
            if ":" in str(here):
                raise StepError(f"{str(here)!r} has a colon, which no container can be shown: name another place")
        volumes = [f"--volume={directory}:{directory}"] if directory else []
        volumes += [f"--volume={here}:{there}:ro" for here, there in read]
        last = [f"--env-file={variables}"] if variables else [f"--env={name}=" for name in _no_proxies()]
        set_too = {option.split("=")[1] for option in self.options if option.startswith("--env=")}
        last += [f"--env={name}={value}" for name, value in (assigned or {}).items() if name in set_too]
        if self.bounds_cores and (numbers := ",".join(map(str, sorted(cores)))):
            last.append(f"--cpuset-cpus={numbers}")
        return [*self.lead, *volumes, *last, f"--name={name}", self.image, *program]


def variables_text(variables: Mapping[str, str]) -> str:
    """A file of variables, and of no proxy but those among them.

    Raises:
        StepError: one has several lines, which would be several variables.
    """
    for name, value in variables.items():
        if len(f"{name}={value}".splitlines()) != 1:
            raise StepError(f"{name} has several lines: a variable of a container has one")
    return "".join(f"{name}={value}\n" for name, value in {**_no_proxies(), **variables}.items())


def _no_proxies() -> dict[str, str]:
    return {each: "" for name in PROXIES for each in (name, name.upper())}


def removal(engine: str, name: str) -> list[str]:
    """What removes a container, whatever runs in it, and what it has kept beside its image."""
    return [engine, "rm", "--force", "--volumes", name]


def is_gone(errors: str) -> bool:
    """Whether that is what an engine means which was to remove a container and says that it can't."""
    return any(what in errors.lower() for what in ("no such container", "already in progress"))


def engines_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Those variables of a user's that a container engine needs."""
    return {
        name: value
        for name, value in environment.items()
        if name in ENGINES_VARIABLES or name.startswith(ENGINES_PREFIXES)
    }
