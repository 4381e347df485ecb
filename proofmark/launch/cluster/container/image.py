"""A container around a far end: docker or podman, which share a command line."""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from proofmark.errors import ConfigurationError, Problem, UsageError
from proofmark.launch.cluster.cluster_file import Cluster
from proofmark.launch.cluster.connection import HostError
from proofmark.launch.cluster.container.asking import Ask, Refused, all_there, run_on, without_disks
from proofmark.launch.cluster.container.keeper import Keeper
from proofmark.launch.cluster.container.settings import FILE, ContainerSettings, device_files, settings_of
from proofmark.launch.cluster.node import Node
from proofmark.launch.cluster.program import ALONE, OLDEST
from proofmark.launch.engine_container import PROXIES, PYTHON, EngineContainer, is_gone, removal
from proofmark.rules.yaml.strict import text_of
from proofmark.vendor.isolation import isolation_settings
from proofmark.vendor.registry import FoundVendor

BUILD_TIMEOUT, LOOKING, REMOVING = 3600.0, 600.0, 15.0
"""Seconds in which an image is built, has imported its torch, and a container is removed."""

ABSENT = re.compile("no such image|image not known", re.IGNORECASE)
"""What docker and podman say of an image that they have not got."""

ENGINES = "expected docker or podman, or a command that is called as they are, and a user who may use it there"

CONTAINERFILE = "Containerfile"

VENDORS = "vendor"
"""In the place of an image's name: the one that the vendor's Containerfile makes."""

IMAGES = "images"
"""The folder of `work_dir` with one for each image, which its containers see in the place of `work_dir`."""


@dataclass(frozen=True)
class ContainerImage:
    """Which engine runs which image, and what its containers are given.

    Attributes:
        engine: the engine's command.
        image: a name or an id that the engine knows.
        settings: what the vendor's devices need.
        network: whether the vendor's isolation.yaml asks for the network: engines that are alone have none otherwise.
        containerfile: what the image is built from where a host lacks it; None: hosts must have it.
    """

    engine: str
    image: str
    settings: ContainerSettings
    network: bool = False
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

        An image may be its vendor's. Its entry point is not run, nor a HEALTHCHECK; no program of it becomes another
        user, who would write as that one where directories are shown; and no proxy's password is handed on. What goes
        home through the container's output becomes no file of the engine's own.
        """
        mounts = [f"{work}:{cluster.work_dir}", *(f"{path}:{path}" for path in [cluster.checkpoints] if path)]
        mounts += [f"{path}:{path}:ro" for path in dict.fromkeys(read)]
        mounts += cluster.mounts
        options = ["--rm", "-i", "--pull=never", "--network=host", *(["--userns=keep-id"] if rootless else [])]
        options += ["--log-driver=none", "--no-healthcheck", "--entrypoint=", "--security-opt=no-new-privileges"]
        options += [f"--env={each}=" for name in PROXIES for each in (name, name.upper())]
        options += [f"--volume={mount}" for mount in (*mounts, *self.settings.mounts)]
        last = [f"--user={user}", f"--name={name}"]  # an engine takes the last of two: the record stays true
        return [self.engine, "run", *options, *self._of_devices, *last, self.image, *program]

    @property
    def _of_devices(self) -> tuple[str, ...]:
        """What the vendor's devices need, mounts aside."""
        given = self.settings
        shm_size = [f"--shm-size={given.shm_size}"] if given.shm_size else []
        privileged = ["--privileged"] if given.privileged else []
        return (*(f"--device={device}" for device in given.devices), *shm_size, *privileged, *given.options)

    async def prepare(self, node: Node, cluster: Cluster, read: Sequence[str]) -> tuple[list[str], dict[str, Any]]:
        """Make sure that a node has the image.

        Returns the command that runs a program there but for the program itself, and what a record should say.

        Raises:
            HostError: there is no engine, no image, or it can't be built; a device is not there, or is a disk; what is
                to be mounted is not there.
        """
        ask = partial(run_on, node, cluster.answer_timeout)
        await self._look(ask, cluster, [*filter(None, [cluster.checkpoints]), *read])
        facts = await self._facts(ask)
        (digest,) = re.findall(r"[0-9a-f]{64}", facts["id"])
        work = f"{cluster.work_dir}/{IMAGES}/{digest}"
        await ask(["mkdir", "-p", work], "making work_dir")  # else the engine would, as root
        command = self.around([], cluster, work, read, facts["user"], facts["name"], facts["rootless"])
        return command, {**facts, "command": command}

    async def for_engines(self, node: Node, cluster: Cluster) -> tuple[EngineContainer, dict[str, Any]]:
        """Make sure that a node has the image, and that engines can be put into it, they alone.

        Returns what starts them, and what a record should say.

        Raises:
            HostError: as of `prepare`; or the image has no Python, or no torch of its own; or it has volumes.
        """
        ask = partial(run_on, node, cluster.answer_timeout)
        await self._look(ask, cluster, [])
        facts = await self._facts(ask)
        container = EngineContainer(
            engine=self.engine,
            image=facts["id"],
            torch="",
            name=facts["name"],
            options=(*self._of_devices, f"--user={facts['user']}", *(["--userns=keep-id"] * facts["rootless"])),
            mounts=(*cluster.mounts, *self.settings.mounts),
            network=self.network,
            privileged=self.settings.privileged,
            devices=tuple(device_files(self.settings)),
            bounds_cores=not facts["rootless"],
        )
        await self._has_no_volumes(ask)
        look = f"{container.name}-look"
        keeper = await Keeper.start(node, self.engine, look)
        try:
            container = replace(container, torch=await self._torch_in(ask, container, look))
        finally:  # one that does not answer would stay
            await keeper.end(removed=await self.remove(node, look))
        command = [*container.lead, container.image]
        return container, {**facts, "command": command, "engines_alone": True, "torch": container.torch}

    async def _torch_in(self, ask: Ask, container: EngineContainer, name: str) -> str:
        """The version of the image's own torch. A claim of its maker's: nothing rests on it."""
        program = [PYTHON, "-c", f"{ALONE}; import torch; print(*sys.version_info[:2], torch.__version__)"]
        oldest = ".".join(map(str, OLDEST))
        expected = f"expected an image with {PYTHON}, {oldest} or newer, and with its vendor's torch"
        command = container.command(program, name)
        try:
            answer = await ask(command, f"looking into {self.image}", timeout=LOOKING)
        except HostError as error:
            raise HostError(f"{error}; {expected}") from None
        found = re.fullmatch(r"(\d+) (\d+) ([\w.+-]{1,64})", (answer.strip().splitlines() or [""])[-1], re.ASCII)
        if found is None or (int(found[1]), int(found[2])) < OLDEST:
            raise HostError(f"looking into {self.image}: it answers {answer.strip()[-80:]!r}; {expected}")
        return found[3]

    async def _has_no_volumes(self, ask: Ask) -> None:
        """See that what an engine writes is held to its own directory: a volume is on the host's disk, and nobody
        counts what is in there."""
        command = [self.engine, "image", "inspect", "--format", "{{json .Config.Volumes}}", self.image]
        if (await ask(command, "looking for volumes of the image")).strip() not in ("null", "{}", ""):
            raise HostError(f"{self.image} has a VOLUME, which engines could fill: expected an image with none")

    async def _look(self, ask: Ask, cluster: Cluster, shown: Sequence[str]) -> None:
        """See that a node has what containers are to be given, and that no disk is among it."""
        await without_disks(ask, device_files(self.settings))
        mounted = [mount.split(":")[0] for mount in (*cluster.mounts, *self.settings.mounts)]
        await all_there(ask, [*shown, *mounted])

    async def _facts(self, ask: Ask) -> dict[str, Any]:
        """What a record says of a container in which nothing runs yet, on a node that has its image from now on."""
        user = re.search(r"uid=(\d+).*? gid=(\d+)", await ask(["id"], "who the user is"))
        if user is None:
            raise HostError("`id` does not tell who the user is")
        identifier = await self._image_id(ask)
        if len(re.findall(r"[0-9a-f]{64}", identifier)) != 1:
            raise HostError(f"{self.engine} does not tell the id of {self.image}: {identifier[:80]!r}")
        return {
            "engine": self.engine,
            "image": self.image,
            "id": identifier,
            "name": f"proofmark-{secrets.token_hex(8)}",
            "user": f"{user[1]}:{user[2]}",
            "rootless": user[1] != "0" and await self._is_rootless_podman(ask),
            "vendors": self.containerfile is not None,
            "privileged": self.settings.privileged,
        }

    async def _is_rootless_podman(self, ask: Ask) -> bool:
        command = [self.engine, "info", "--format", "{{.Host.Security.Rootless}}"]
        try:
            return (await ask(command, "asking the engine whether it is rootless")).strip() == "true"
        except Refused:  # docker, which does not know the field
            return False

    async def remove(self, node: Node, name: str) -> bool:
        """Remove a container that may have outlived the connection to it; whether the engine says that it is gone."""
        try:
            await run_on(node, REMOVING, removal(self.engine, name), "removing the container")
        except HostError as error:
            return is_gone(str(error))
        return True

    async def _image_id(self, ask: Ask) -> str:
        command = [self.engine, "image", "inspect", "--format", "{{.Id}}", self.image]
        try:
            return (await ask(command, "looking for the image (--container-engine)")).strip()
        except Refused as error:
            if self.containerfile is None:
                cure = f"have {self.engine} pull or load {self.image} there" if ABSENT.search(str(error)) else ENGINES
                raise HostError(f"{error}; {cure}") from None
        build = [self.engine, "build", "-q", "-t", self.image, "-"]
        await ask(build, f"building {self.image}", self.containerfile, BUILD_TIMEOUT)
        return (await ask(command, "looking for the image")).strip()


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
    network = isolation_settings(found.directory).network
    if image != VENDORS:
        return ContainerImage(engine, image, settings, network)
    file = found.directory / CONTAINERFILE
    if not file.is_file():
        there = file.with_name("Dockerfile").is_file()
        how = f"call its Dockerfile {CONTAINERFILE}" if there else f"write {file}"
        raise UsageError(f"--container vendor: vendor {found.name} has no {CONTAINERFILE}: {how}, or name an image")
    content = text_of(file, found.directory).encode()  # an engine's complaint of it shows what stands in it
    # the digest whole: of half of it its author could have a second file, and its image run in the name of the first
    tag = hashlib.sha256(content).hexdigest()
    return ContainerImage(engine, f"proofmark-{found.name}:{tag}", settings, network, content)
