"""A process that SIGKILL does not end, as where it waits in a driver: it is given up, and said to be."""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from proofmark.inference.engine.place.own_group import OwnGroup
from proofmark.process import child as child_module
from proofmark.process import lifetime
from proofmark.process.child import Child, cause_of_death
from tests.waiting import PATIENCE, name_of, until

SLEEPS = "import time; print('ready', flush=True); time.sleep(600)"
DAEMON = "import os, sys\nif os.fork() == 0: os.setsid(); os.execvp('sleep', ['sleep', '600'])\nsys.stdin.read()"


@pytest.fixture
def spare(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[int], None]]:
    """Has signals no effect on a process, until the end."""
    spared, kill, killpg = set[int](), psutil.Process.kill, os.killpg

    def none_of(process: psutil.Process) -> None:
        if process.pid not in spared:
            kill(process)

    monkeypatch.setattr(psutil.Process, "kill", none_of)
    monkeypatch.setattr(os, "killpg", lambda pid, number: None if pid in spared else killpg(pid, number))
    for module, name in ((lifetime, "DYING"), (child_module, "DYING"), (child_module, "SWEEP")):
        monkeypatch.setattr(module, name, 1.0)
    yield spared.add
    for pid in spared:
        with contextlib.suppress(ProcessLookupError, ChildProcessError):
            killpg(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


def started(folder: Path, text: str) -> Child:
    (folder / "whatever.py").write_text(text)
    return Child("whatever", sys_path=[str(folder), *sys.path])


def daemon_of(child: Child) -> int:
    return next((each.pid for each in psutil.Process(child.pid).children() if name_of(each) == "sleep"), 0)


def test_it_is_waited_for_no_longer_and_said_once(
    tmp_path: Path,
    spare: Callable[[int], None],
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    child = started(tmp_path, SLEEPS)
    assert child.left == ""
    spare(child.pid)
    assert not child.end(patience=0.0)
    assert child.returncode is None and list(child.outlived) == [child.pid] and child.identity.lives()
    assert child.left.startswith(f"; process {child.pid} goes on though it was killed: SIGKILL does not end")
    assert child.cause_of_death() == cause_of_death(None) and "was killed, and goes on" in cause_of_death(None)
    assert capfd.readouterr().err.count(f"WARNING process {child.pid} goes on") == 1
    waits: list[float] = []
    for module in (lifetime, child_module):
        monkeypatch.setattr(module, "wait_without_reaping", lambda _, seconds: bool(waits.append(seconds)))
    child.kill()
    assert child.has_ended(within=60)
    lifetime.end_group(child._process)
    assert not any(waits)
    assert "WARNING" not in capfd.readouterr().err


def test_one_that_ends_after_all_is_reaped(tmp_path: Path, spare: Callable[[int], None]) -> None:
    child = started(tmp_path, SLEEPS)
    spare(child.pid)
    child.kill()
    os.kill(child.pid, signal.SIGKILL)
    assert lifetime.wait_without_reaping(child.pid, PATIENCE)
    lifetime.end_group(child._process)
    assert child.returncode == -signal.SIGKILL


def test_what_a_child_has_started_is_known_too(tmp_path: Path, spare: Callable[[int], None]) -> None:
    child = started(tmp_path, DAEMON)
    until(lambda: daemon_of(child), "the daemon")
    daemon = daemon_of(child)
    spare(daemon)
    child.kill()
    assert child.returncode == -signal.SIGKILL and list(child.outlived) == [daemon]
    assert f"process {daemon} goes on" in child.left


def test_an_engine_is_closed_once(
    tmp_path: Path, spare: Callable[[int], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("proofmark.inference.engine.place.own_group.ENDING", 0.1)
    engine = OwnGroup(tmp_path)
    os.kill(engine.pid, signal.SIGSTOP)  # or it would end by itself
    spare(engine.pid)
    engine.close()
    engine.close()


@pytest.fixture
def many_open() -> Iterator[None]:
    """Descriptors from now on are beyond those that select() knows."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(limits[1], 4096), limits[1]))
    opened = [os.open(os.devnull, os.O_RDONLY)]
    try:
        while opened[-1] < 1024:
            opened.append(os.dup(opened[0]))
        yield
    finally:
        for each in opened:
            os.close(each)
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)


@pytest.mark.usefixtures("many_open")
def test_an_engine_is_closed_where_very_many_files_are_open(tmp_path: Path) -> None:
    """As of data that lies in thousands of shards."""
    engine = OwnGroup(tmp_path)
    engine.close()
    assert not psutil.pid_exists(engine.pid)
