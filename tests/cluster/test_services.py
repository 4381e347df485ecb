"""The real hosts, Slurm and container engine for tests of launching: they go, and are missed in one line."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import PIPE, Popen
from typing import IO

import psutil
import pytest

from tests.cluster.cell import Cell, mentioned
from tests.cluster.engines import Docker, Podman
from tests.cluster.netns import Hosts
from tests.cluster.slurm import Slurm
from tests.waiting import until

ROOT = Path(__file__).parents[2]
EVERYTHING = """
import subprocess, sys
from pathlib import Path
from tests.waiting import until
from tests.cluster.netns import Hosts
from tests.cluster.engines import Docker, Podman
from tests.cluster.slurm import Slurm
folder = Path(sys.argv[1])
for name in ("hosts", "slurm"):
    (folder / name).mkdir()
hosts, slurm, engines = Hosts(1, folder / "hosts"), Slurm(folder / "slurm", 1), (Podman(), Docker())
subprocess.run([*hosts.ssh(0), "setsid sleep 1000 > /dev/null 2>&1 < /dev/null &"], check=True)
for engine in engines:
    subprocess.Popen([*engine.run("--name=endless"), "/usr/bin/sleep", "1000"])
until(lambda: all(engine.containers() for engine in engines), "containers", every=0.2)
print(hosts.uplink, *(engine.path.parent for engine in engines), flush=True)
input()
"""


@contextmanager
def running(command: list[str], environment: dict[str, str] | None = None) -> Iterator[Popen[bytes]]:
    """A program with pipes."""
    with Popen(command, stdin=PIPE, stdout=PIPE, stderr=PIPE, env=os.environ | (environment or {})) as process:
        try:
            yield process
        finally:
            process.kill()


def pipe(of: IO[bytes] | None) -> IO[bytes]:
    assert of is not None
    return of


def names(processes: list[psutil.Process]) -> list[str]:
    return [process.info["name"] for process in processes]


def test_nothing_is_left_of_a_session_that_is_killed(tmp_path: Path) -> None:
    with running([sys.executable, "-c", EVERYTHING, str(tmp_path)], {"PYTHONPATH": str(ROOT)}) as session:
        printed = pipe(session.stdout).readline().decode().split()
        assert len(printed) == 3, pipe(session.stderr).read().decode()
        link, engines = Path("/sys/class/net", printed[0]), [Path(folder) for folder in printed[1:]]
        assert link.is_symlink()
        serving = {name for folder in (tmp_path, *engines) for name in names(mentioned(str(folder)))}
        assert {"unshare", "sshd", "slurmctld", "conmon", "dockerd"} <= serving
    until(lambda: not link.is_symlink() and not any(map(Path.exists, engines)), "links and files to go")
    until(lambda: not any(mentioned(str(folder)) for folder in (tmp_path, *engines)), "processes to end")


@pytest.mark.parametrize("service", [Hosts, Slurm, Podman, Docker])
def test_a_machine_without_the_programs_skips(service: type, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("PROOFMARK_SKIPS_FAIL", raising=False)
    with pytest.raises(pytest.skip.Exception, match=r"^missing: \w+ \(apt-get install .*\)$"):
        {Hosts: lambda: Hosts(1, tmp_path), Slurm: lambda: Slurm(tmp_path), Podman: Podman, Docker: Docker}[service]()


def test_a_user_without_namespaces_skips(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "unshare").write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "unshare").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.delenv("PROOFMARK_SKIPS_FAIL", raising=False)
    with pytest.raises(pytest.skip.Exception, match=r"^missing: root with CAP_SYS_ADMIN"):
        Cell()
