"""An engine's process in a container, as the referee starts, stops and ends it: with no container engine, and against
what might run in there."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from proofmark.errors import StepError
from proofmark.inference.engine.place import contained
from proofmark.inference.engine.place.contained import Contained
from proofmark.launch.engine_container import EngineContainer
from proofmark.wall.isolation import Isolation
from tests.services import missing, program
from tests.waiting import PATIENCE, until

SHOWS = """#!/bin/sh
case $1 in
run)
  echo "$@" > {folder}/command
  env > {folder}/environment
  for word; do
    case $word in --env-file=*) cp "${{word#*=}}" {folder}/given ;; esac
  done
  exit 3 ;;
esac
"""

LATE = """#!/bin/sh
case $1 in
run) (sleep 2; touch {folder}/there) & exit 0 ;;
rm) [ -e {folder}/there ] || exit 1
  rm {folder}/there; touch {folder}/removed ;;
esac
"""
"""As with a daemon that is still making a container when whoever asked for it is gone."""

HOPS = """
import os, signal, time
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
if os.fork() == 0:
    while True:
        for _ in range(2000):
            pass
        if os.fork():
            os._exit(0)
print("ready", flush=True)
time.sleep(600)
"""
"""Who has always just started another, which goes on in its place."""

CALLS = """
import socket, sys, time
channel = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
channel.connect(sys.argv[1])
time.sleep(600)
"""


def engine_in(folder: Path, script: str) -> EngineContainer:
    engine = folder / "engine"
    engine.write_text(script.format(folder=folder))
    engine.chmod(0o755)
    return EngineContainer(str(engine), "image", "2.0", "name", (), (), False, False)


def started(container: EngineContainer, directory: Path, variables: dict[str, str]) -> None:
    with pytest.raises(StepError, match="before it called"):
        Contained(container, directory, (), variables, Isolation())


def test_no_variable_of_an_engines_reaches_who_starts_it(tmp_path: Path) -> None:
    """Docker and podman are programs of the host's: by such variables they find their daemon, and what they run."""
    own = tmp_path / "own"
    own.mkdir()
    variables = {"HOME": str(own), "DOCKER_HOST": "unix:///vendors", "CONTAINERS_CONF": "/vendors", "ACME": "a b=c"}
    started(engine_in(tmp_path, SHOWS), own, variables)
    seen = (tmp_path / "environment").read_text().splitlines()
    assert not {f"{name}={value}" for name, value in variables.items()} & {*seen}
    given = (tmp_path / "given").read_text().splitlines()
    assert {f"{name}={value}" for name, value in variables.items()} <= {*given}
    assert "https_proxy=" in given and "HTTPS_PROXY=" in given


def test_which_devices_it_uses_is_not_the_vendors_to_say(tmp_path: Path) -> None:
    container = EngineContainer("engine", "image", "", "name", ("--env=ACME_VISIBLE_DEVICES=all",), (), False, False)
    variables = {"ACME_VISIBLE_DEVICES": "3", "ACME_LOG": "geheim"}
    command = container.command(["python3"], "name", tmp_path, variables=tmp_path / "file", assigned=variables)
    assert [word for word in command if word.startswith("--env=")][-1] == "--env=ACME_VISIBLE_DEVICES=3"
    assert "geheim" not in " ".join(command)


@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="a session has all cores")
@pytest.mark.parametrize("bounds, expected", [(True, ["--cpuset-cpus={core}"]), (False, [])])
def test_a_session_on_some_cores_has_the_engine_keep_it_to_those(
    tmp_path: Path, bounds: bool, expected: list[str]
) -> None:
    """Else a library that gives its threads all cores gets them, and the run is refused."""
    container = replace(engine_in(tmp_path, SHOWS), bounds_cores=bounds)
    before = os.sched_getaffinity(0)
    try:
        for cores, wanted in (({max(before)}, expected), (range(os.cpu_count() or 1), [])):
            os.sched_setaffinity(0, cores)
            started(container, tmp_path, {})
            asked = [word for word in (tmp_path / "command").read_text().split() if word.startswith("--cpuset")]
            assert asked == [each.format(core=max(before)) for each in wanted]
    finally:
        os.sched_setaffinity(0, before)


def test_a_variable_of_several_lines(tmp_path: Path) -> None:
    container = engine_in(tmp_path, SHOWS)
    with pytest.raises(StepError, match="ACME has several lines"):
        Contained(container, tmp_path, (), {"ACME": "a\nLD_PRELOAD=b"}, Isolation())


def test_a_path_that_engines_would_take_for_two(tmp_path: Path) -> None:
    own = tmp_path / "a:b"
    own.mkdir()
    with pytest.raises(StepError, match="has a colon"):
        Contained(engine_in(tmp_path, SHOWS), own, (), {}, Isolation())


REFEREE = """
import sys
from pathlib import Path
from proofmark.inference.engine.place.contained import Contained
from proofmark.launch.engine_container import EngineContainer
from proofmark.wall.isolation import Isolation
container = EngineContainer(sys.argv[1], "image", "", "name", (), (), False, False)
Contained(container, Path(sys.argv[2]), (), {}, Isolation())
"""

WAITS = LATE.replace("exit 0", "touch {folder}/begun; sleep 600")


def test_a_container_that_comes_late_is_removed(tmp_path: Path) -> None:
    """After its referee was killed while an engine was making it."""
    container = engine_in(tmp_path, WAITS)
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    referee = subprocess.Popen(
        [sys.executable, "-c", REFEREE, container.engine, str(tmp_path)], env=environment, start_new_session=True
    )
    until((tmp_path / "begun").exists, "it to begin")
    os.kill(referee.pid, signal.SIGKILL)
    referee.wait()
    try:
        until((tmp_path / "removed").exists, "it to be removed")
    finally:
        os.killpg(referee.pid, signal.SIGKILL)


@contextmanager
def first_process(code: str, *arguments: str, nested: bool = False) -> Iterator[int]:
    """The id of the first process of a namespace of its own, which runs some code."""
    if os.geteuid() != 0:
        missing("root, for a namespace of processes")
    unshare = [program("unshare", "apt-get install util-linux"), "--pid", "--fork", "--kill-child"]
    command = [*unshare, *(unshare if nested else ()), sys.executable, "-c", code, *arguments]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        if not arguments:
            assert process.stdout is not None and process.stdout.readline() == "ready\n"
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
        until(lambda: children.read_text().split(), "the first process")
        yield int(children.read_text().split()[0])
    finally:
        process.kill()
        process.wait()


@contextmanager
def held(pid: int) -> Iterator[Contained]:
    found = Contained.__new__(Contained)
    found.pid, found.life = pid, os.pidfd_open(pid)
    found.socket, other = socket.socketpair()
    with found.socket, other:
        yield found
    os.close(found.life)


def test_who_always_starts_another_stops_or_is_found_out() -> None:
    for _ in range(8):
        with first_process(HOPS) as pid, held(pid) as container:
            stopped = set[int]()
            with contextlib.suppress(StepError):  # it says that it can't
                stopped = {*container.stop()}
            if not stopped:
                continue
            time.sleep(0.05)
            assert {*contained._tree(pid)} <= stopped, "one that had ended may be among those that were stopped"


def test_the_first_of_a_namespace_within_the_containers(tmp_path: Path) -> None:
    """What is beside that namespace would be in no tree of its."""
    path = str(tmp_path / "socket")
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(path)
        listener.listen(1)
        listener.settimeout(PATIENCE)
        with first_process(CALLS, path), listener.accept()[0] as connection:
            assert contained._first_of(connection)
        refused = pytest.raises(StepError, match="not the first process")
        with first_process(CALLS, path, nested=True), listener.accept()[0] as connection, refused:
            contained._first_of(connection)


def test_nobody_is_signalled_under_the_id_of_who_has_ended() -> None:
    ended = subprocess.Popen(["true"])
    life = os.pidfd_open(ended.pid)
    select.select([life], [], [], PATIENCE)
    ended.wait()
    other = subprocess.Popen(["sleep", "600"])
    with held(other.pid) as container:
        os.dup2(life, container.life)
        try:
            container.tell(signal.SIGSTOP)
            container.stacks()
            assert container.stop() == []
            time.sleep(0.2)
            assert other.poll() is None and Path(f"/proc/{other.pid}/stat").read_text().split()[2] != "T"
        finally:
            os.close(life)
            other.kill()
            other.wait()


def test_one_that_hangs_up_and_does_not_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contained, "ENDING", 0.2)
    process = subprocess.Popen(["sleep", "600"])
    with held(os.getpid()) as container:
        container._client = process
        monkeypatch.setattr(container, "close", lambda patience: None)
        try:
            assert container.cause() == "hung up, and did not end"
        finally:
            process.kill()
            process.wait()
