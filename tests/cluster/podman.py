"""A container engine with images and containers of its own, and an image in which this machine's Python runs."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Self

from tests.services import missing, program

ROOT = Path(__file__).parents[2]
IMAGE = "localhost/machine"
CONTAINERFILE = "FROM scratch\nLABEL purpose=test\n"
CONFIGURATION = """\
[containers]
default_ulimits = ["nofile=1024:1024", "nproc=1024:1024"]
[engine]
cgroup_manager = "cgroupfs"
runtime = "runc"
events_logger = "none"
lock_type = "file"
"""
# The limits above: without them runc asks for more than root may have on a machine that lacks CAP_SYS_RESOURCE.
WRAPPER = """\
#!/bin/sh
store={folder}/$(readlink /proc/self/ns/pid | tr -dc 0-9)
mkdir -p "$store/tmp"
export CONTAINERS_CONF={folder}/containers.conf TMPDIR="$store/tmp"
exec {podman} --root="$store/root" --runroot="$store/run" --tmpdir="$store/tmp" --storage-driver=vfs "$@"
"""
# Every host has a store of its own, as in life. What runs in it on other hosts ends with them, what runs here by this:
KEEPER = """
read -r _
for attempt in $(seq 50); do
  pgrep -f "$2/run" > /dev/null || break
  "$0" rm --all --force --time=0
  sleep 0.1
done
rm -rf --one-file-system "$1"
"""


class Podman:
    """A program that is podman to whoever calls it. When the test session ends, however it ends, all of it goes."""

    image = IMAGE
    """An empty image, built on the test session's own host only. It needs `mounts`."""

    def __init__(self) -> None:
        podman = program("podman", "apt-get install podman runc")
        program("runc", "apt-get install runc")
        if os.geteuid() != 0:
            missing("root, for containers without user namespaces")
        folder = Path(tempfile.mkdtemp(prefix="podman"))  # podman wants its path to be short
        self.path = folder / "podman"
        """The engine's executable."""
        self.context = folder / "context"
        """The directory of the image's Containerfile."""
        self.context.mkdir()
        (folder / "containers.conf").write_text(CONFIGURATION)
        self.path.write_text(WRAPPER.format(folder=folder, podman=podman))
        self.path.chmod(0o755)
        (self.context / "Containerfile").write_text(CONTAINERFILE)
        store = folder / "".join(filter(str.isdigit, os.readlink("/proc/self/ns/pid")))
        self._keeper = subprocess.Popen(
            ["/bin/sh", "-c", KEEPER, str(self.path), str(folder), str(store)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            self.ask("build", "--quiet", f"--tag={IMAGE}", str(self.context))
        except BaseException:
            self.close()
            raise

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
        """What podman prints when it is given a command that must succeed."""
        asked = subprocess.run([self.path, *command], check=False, capture_output=True, text=True)
        assert asked.returncode == 0, f"podman {' '.join(command)}: {asked.stderr}"
        return asked.stdout

    def close(self) -> None:
        """End every container and remove everything."""
        self._keeper.communicate()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
