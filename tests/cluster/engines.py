"""Container engines with images and containers of their own, and an image in which this machine's Python runs."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Self

import pytest

from tests.services import missing, program
from tests.waiting import until

ROOT = Path(__file__).parents[2]

IMAGE = "localhost/machine"
CONTAINERFILE = "FROM scratch\nLABEL purpose=test\n"
PODMAN_CONFIGURATION = """\
[containers]
default_ulimits = ["nofile=1024:1024", "nproc=1024:1024"]
[engine]
cgroup_manager = "cgroupfs"
runtime = "runc"
events_logger = "none"
lock_type = "file"
"""
# The limits above: without them runc asks for more than root may have on a machine that lacks CAP_SYS_RESOURCE.
PODMAN = """\
#!/bin/sh
store={folder}/$(readlink /proc/self/ns/pid | tr -dc 0-9)
mkdir -p "$store/tmp"
export CONTAINERS_CONF={folder}/containers.conf TMPDIR="$store/tmp"
exec {program} --root="$store/root" --runroot="$store/run" --tmpdir="$store/tmp" --storage-driver=vfs "$@"
"""
# Every host has a store of its own, as in life. What runs in it on other hosts ends with them, what runs here by this:
PODMAN_KEEPER = """
read -r _
for attempt in $(seq 50); do
  pgrep -f "$1/$2/run" > /dev/null || break
  "$0" rm --all --force --time=0
  sleep 0.1
done
rm -rf --one-file-system "$1"
"""
DOCKER = """\
#!/bin/sh
export DOCKER_CONFIG={folder}/configuration
exec {program} --host=unix://{folder}/socket "$@"
"""
DOCKER_KEEPER = """
dockerd --host="unix://$1/socket" --data-root="$1/data" --exec-root="$1/run" --pidfile="$1/pid" \\
  --storage-driver=vfs --bridge=none --iptables=false --ip6tables=false \\
  --default-ulimit=nofile=1024:1024 --default-ulimit=nproc=1024:1024 > "$1/log" 2>&1 < /dev/null &
read -r _
"$0" ps --all --quiet | xargs --no-run-if-empty "$0" rm --force
kill $!
wait
umount "$1"/run/netns/*
rm -rf --one-file-system "$1"
"""


class Engine:
    """A program that is an engine to whoever calls it. When the test session ends, however it ends, all of it goes."""

    image = IMAGE
    """An empty image, built on the test session's own host only. It needs `mounts`."""

    def __init__(self, name: str, package: str, wrapper: str, keeper: str) -> None:
        installed = program(name, f"apt-get install {package}")
        program("runc", "apt-get install runc")
        if os.geteuid() != 0:
            missing("root, for containers without user namespaces")
        folder = Path(tempfile.mkdtemp(prefix=name))  # engines want its path to be short
        self.path = folder / name
        """The engine's executable."""
        self.context = folder / "context"
        """The directory of the image's Containerfile."""
        self.context.mkdir()
        self.prepare(folder)
        self.path.write_text(wrapper.format(folder=folder, program=installed))
        self.path.chmod(0o755)
        (self.context / "Dockerfile").write_text(CONTAINERFILE)
        store = "".join(filter(str.isdigit, os.readlink("/proc/self/ns/pid")))
        self._keeper = subprocess.Popen(
            ["/bin/sh", "-c", keeper, str(self.path), str(folder), store],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            until(lambda: self._run("info").returncode == 0, f"{name} to answer", every=0.2)
            self.ask("build", "--quiet", f"--tag={IMAGE}", str(self.context))
        except BaseException:
            self.close()
            raise

    def prepare(self, folder: Path) -> None:
        """Whatever else is to be in its folder."""

    @property
    def mounts(self) -> list[Path]:
        """What a container must see, read-only and at the same place, to run this test session's Python."""
        prefixes = (Path(sys.prefix), Path(sys.prefix).resolve(), Path(sys.base_prefix), ROOT)
        system = [path for path in map(Path, ("/usr", "/lib", "/lib64")) if path.exists()]
        return system + sorted({path for path in prefixes if not path.is_relative_to("/usr")})

    def run(self, *options: str) -> list[str]:
        """The command line of a container that runs this machine's programs, up to the program."""
        volumes = [f"--volume={path}:{path}:ro" for path in self.mounts]
        return [str(self.path), "run", "--interactive", "--rm", "--network=host", *volumes, *options, IMAGE]

    def containers(self) -> list[str]:
        """The names of all containers, running or not."""
        return self.ask("ps", "--all", "--format={{.Names}}").split()

    def ask(self, *command: str) -> str:
        """What the engine prints when it is given a command that must succeed."""
        asked = self._run(*command)
        assert asked.returncode == 0, f"{self.path.name} {' '.join(command)}: {asked.stderr}"
        return asked.stdout

    def _run(self, *command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([self.path, *command], check=False, capture_output=True, text=True)

    def close(self) -> None:
        """End every container and remove everything."""
        self._keeper.communicate()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class Podman(Engine):
    """Podman, which has no daemon."""

    def __init__(self) -> None:
        super().__init__("podman", "podman runc", PODMAN, PODMAN_KEEPER)

    def prepare(self, folder: Path) -> None:
        """Its configuration."""
        (folder / "containers.conf").write_text(PODMAN_CONFIGURATION)


class Docker(Engine):
    """Docker, with a daemon of its own."""

    def __init__(self) -> None:
        program("dockerd", "apt-get install docker.io")
        super().__init__("docker", "docker.io", DOCKER, DOCKER_KEEPER)


on_podman = pytest.mark.parametrize("engine", [Podman], ids=["podman"], indirect=True)
"""Where what is tested is the same with every engine."""
