"""A container around a far end: docker or podman, which share a command line."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import re
import secrets
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from proofmark.errors import ConfigurationError, Problem, UsageError
from proofmark.launch.cluster.cluster_file import Cluster
from proofmark.launch.cluster.connection import HostError
from proofmark.launch.cluster.container_file import FILE, ContainerSettings, device_files, settings_of
from proofmark.launch.cluster.node import Node
from proofmark.rules.yaml.strict import text_of
from proofmark.vendor.registry import FoundVendor

BUILD_TIMEOUT, REMOVING = 3600.0, 15.0
"""Seconds in which an image is built, and a container removed."""

Ask = Callable[..., Awaitable[str]]
"""Runs a command on a node and returns its output: `_run` with its first arguments given."""

CONTAINERFILE = "Containerfile"

IMAGES = "images"
"""The folder of `work_dir` with one for each image, which its containers see in the place of `work_dir`."""

PROXIES = tuple(f"{kind}_proxy" for kind in ("http", "https", "ftp", "all", "no"))
"""Variables that an engine hands on of its own accord, from this user's environment or configuration: there may be a
password in them."""


@dataclass(frozen=True)
class ContainerImage:
    """Which engine runs which image, and what its containers are given.

    Attributes:
        engine: the engine's command.
        image: a name or an id that the engine knows.
        settings: what the vendor's devices need.
        containerfile: what the image is built from where a host lacks it; None: hosts must have it.
    """

    engine: str
    image: str
    settings: ContainerSettings
    containerfile: bytes | None = None

    def around(
        self,
        program: Sequence[str],
        cluster: Cluster,
        work: str,
        read: Sequence[str],
        user: str,
        name: str,
        rootless: bool = False,
    ) -> list[str]:
        """The engine's command that runs `program` in container `name` as `user` (`uid:gid`).

        Directories are at their own paths, those too that are only `read`, but for `work`, which is there in the place
        of the work directory. A podman without root gives its user another id in there, who may not write into them,
        unless it is told to keep it.

        An image may be its vendor's. Its entry point is not run; no program of it becomes another user, who would
        write as that one where directories are shown; and no proxy's password is handed on.
        """
        given = self.settings
        mounts = [f"{work}:{cluster.work_dir}", *(f"{path}:{path}" for path in [cluster.checkpoints] if path)]
        mounts += [f"{path}:{path}:ro" for path in dict.fromkeys(read)]
        mounts += cluster.mounts
        options = ["--rm", "-i", "--pull=never", "--network=host", *(["--userns=keep-id"] if rootless else [])]
        options += ["--entrypoint=", "--security-opt=no-new-privileges"]
        options += [f"--env={each}=" for name in PROXIES for each in (name, name.upper())]
        options += [f"--volume={mount}" for mount in (*mounts, *given.mounts)]
        options += [f"--device={device}" for device in given.devices]
        options += [f"--shm-size={given.shm_size}"] if given.shm_size else []
        options += ["--privileged"] if given.privileged else []
        last = [f"--user={user}", f"--name={name}"]  # an engine takes the last of two: the record stays true
        return [self.engine, "run", *options, *given.options, *last, self.image, *program]

    async def prepare(self, node: Node, cluster: Cluster, read: Sequence[str]) -> tuple[list[str], dict[str, Any]]:
        """Make sure that a node has the image.

        Returns the command that runs a program there but for the program itself, and what a record should say.

        Raises:
            HostError: there is no engine, no image, or it can't be built; a device is not there, or is a disk; what is
                to be mounted is not there.
        """
        ask = partial(_run, node, cluster.answer_timeout)
        user = re.search(r"uid=(\d+).*? gid=(\d+)", await ask(["id"], "who the user is"))
        if user is None:
            raise HostError("`id` does not tell who the user is")
        await _without_disks(ask, device_files(self.settings))
        shown = [mount.split(":")[0] for mount in (*cluster.mounts, *self.settings.mounts)]
        await _all_there(ask, [*filter(None, [cluster.checkpoints]), *read, *shown])
        identifier = await self._image_id(ask)
        digest = re.search(r"[0-9a-f]{64}", identifier)
        if digest is None:
            raise HostError(f"{self.engine} does not tell the id of {self.image}: {identifier[:80]!r}")
        work = f"{cluster.work_dir}/{IMAGES}/{digest[0]}"
        await ask(["mkdir", "-p", work], "making work_dir")  # else the engine would, as root
        facts: dict[str, Any] = {
            "engine": self.engine,
            "image": self.image,
            "id": identifier,
            "name": f"proofmark-{secrets.token_hex(8)}",
            "user": f"{user[1]}:{user[2]}",
            "rootless": user[1] != "0" and await self._is_rootless_podman(ask),
            "vendors": self.containerfile is not None,
            "privileged": self.settings.privileged,
        }
        command = self.around([], cluster, work, read, facts["user"], facts["name"], facts["rootless"])
        return command, {**facts, "command": command}

    async def _is_rootless_podman(self, ask: Ask) -> bool:
        command = [self.engine, "info", "--format", "{{.Host.Security.Rootless}}"]
        try:
            return (await ask(command, "asking the engine whether it is rootless")).strip() == "true"
        except _Refused:  # docker, which does not know the field
            return False

    async def remove(self, node: Node, name: str) -> None:
        """Remove a container that may have outlived the connection to it."""
        with contextlib.suppress(HostError):
            await _run(node, REMOVING, [self.engine, "rm", "-f", name], "removing the container")

    async def _image_id(self, ask: Ask) -> str:
        command = [self.engine, "image", "inspect", "--format", "{{.Id}}", self.image]
        try:
            return (await ask(command, "looking for the image")).strip()
        except _Refused as error:
            if self.containerfile is None:
                raise HostError(f"{error}; have {self.engine} pull or load {self.image} there") from None
        build = [self.engine, "build", "-q", "-t", self.image, "-"]
        await ask(build, f"building {self.image}", self.containerfile, BUILD_TIMEOUT)
        return (await ask(command, "looking for the image")).strip()


async def _without_disks(ask: Ask, devices: Sequence[str]) -> None:
    """A disk may have any name below /dev, and lie in a folder of which an engine gives all: only its host can tell."""
    if not devices:
        return
    found = await ask(["find", "-L", *devices, "-maxdepth", "3", "-type", "b"], "looking at the devices")
    if disks := found.split():
        raise HostError(f"{disks[0]} is a disk, not an accelerator: no container is given it (container.yaml, devices)")


async def _all_there(ask: Ask, paths: Sequence[str]) -> None:
    """What is not there docker would make, as root and empty, where podman refuses."""
    look = 'for path; do [ -e "$path" ] || echo "$path"; done'
    lacking = await ask(["sh", "-c", look, "sh", *paths], "looking at what is mounted")
    if lacking:
        raise HostError(
            f"missing, or not visible to the user: {', '.join(lacking.splitlines())}; a container would be given it "
            "(data directory, --weights, `checkpoints`, `mounts`): create it, or name an existing one"
        )


class _Refused(HostError):
    """A command that ran and failed."""


async def _run(
    node: Node, patience: float, command: list[str], what: str, given: bytes = b"", timeout: float | None = None
) -> str:
    """The output of a command on a node, which is given what nodes are given for any answer, or a time of its own.

    Raises:
        HostError: it can't be run, fails, or takes too long.
    """
    pipe = asyncio.subprocess.PIPE
    try:
        ran = await asyncio.create_subprocess_exec(
            *node.command(command), stdin=pipe, stdout=pipe, stderr=pipe, start_new_session=True
        )
    except OSError as error:
        raise HostError(f"{what}: {command[0]}: {error.strerror}") from None
    try:
        output, errors = await asyncio.wait_for(ran.communicate(given), timeout or patience)
    except TimeoutError:
        key = "" if timeout else ", `answer_timeout`"
        raise HostError(f"{what}: no answer within {timeout or patience:g} s{key}") from None
    finally:
        if ran.returncode is None:
            ran.kill()
            await ran.wait()
    if ran.returncode:
        last_line = errors.decode("utf-8", "replace").strip().splitlines()[-1:] or [f"exit code {ran.returncode}"]
        missing = ran.returncode in (126, 127, 255)  # the shell's, and ssh's own
        raise (HostError if missing else _Refused)(f"{what}: {last_line[0]}")
    return output.decode("utf-8", "replace")


def container_of(found: FoundVendor, image: str, engine: str, privileged: bool = False) -> ContainerImage:
    """The container that a user asked for.

    Args:
        found: the vendor, in whose package Containerfile and container.yaml are.
        image: an image's name, or 'vendor' for the one that the vendor's Containerfile makes.
        engine: docker, podman, or a path.
        privileged: whether its user lets it be that.

    Raises:
        UsageError: there is no Containerfile; or what should be an image's or an engine's name is an option.
        ConfigurationError: what the vendor wants for it is no container's to have; or its Containerfile is a link to
            another's file, or no text.
    """
    for option, name in (("--container", image), ("--container-engine", engine)):
        if name.startswith("-"):
            raise UsageError(f"{option}: expected a name, found {name!r}, which the engine would take as an option")
    settings = settings_of(found)
    if settings.privileged and not privileged:
        what = "such a container has all of its host: only its user may allow that, by privileged: true in cluster.yaml"
        raise ConfigurationError([Problem(str(found.directory / FILE), "privileged", what)])
    if image != "vendor":
        return ContainerImage(engine, image, settings)
    file = found.directory / CONTAINERFILE
    if not file.is_file():
        raise UsageError(f"--container vendor: vendor {found.name} has no {CONTAINERFILE}; name an image instead")
    content = text_of(file, found.directory).encode()  # an engine's complaint of it shows what stands in it
    # the digest whole: of half of it its author could have a second file, and its image run in the name of the first
    return ContainerImage(engine, f"proofmark-{found.name}:{hashlib.sha256(content).hexdigest()}", settings, content)
