"""A child process: known by its mark, followed by its log, ended with all that it started, leaving nothing behind."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from proofmark.process import between_programs, lifetime
from proofmark.process import child as child_module
from proofmark.process.between_programs import becomes_another, is_ending
from proofmark.process.child import Child
from proofmark.process.lifetime import MARK, NOBODY, WITHIN, end_marked
from proofmark.process.output.capped_log import CappedLog
from proofmark.process.output.dictation import Dictation
from proofmark.process.scratch.temporary import temporary_directory, temporary_name
from tests.waiting import PATIENCE, until

Start = Callable[..., Child]

DAEMON = "import os\nif os.fork() == 0:\n    os.setsid(); os.execvp('sleep', ['sleep', '600'])\n"


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Start a module of this text."""
    started: list[Child] = []

    def make(text: str, **given: Any) -> Child:
        (tmp_path / "whatever.py").write_text(text)
        started.append(Child("whatever", sys_path=[str(tmp_path), *sys.path], **given))
        return started[-1]

    yield make
    for child in started:
        child.kill()


def with_mark(mark: str) -> list[psutil.Process]:
    found = []
    for process in psutil.process_iter():
        try:
            found += [process] if mark in (process.environ().get(MARK), process.environ().get(WITHIN)) else []
        except psutil.Error:
            continue
    return found


def test_it_ends_by_itself_when_its_standard_input_closes(start: Start, tmp_path: Path) -> None:
    child = start("import sys\nprint(sys.stdin.read(), end='')", log=tmp_path / "log")
    child.say("one")
    child.say("two")
    assert child.end(patience=PATIENCE) and child.returncode == 0
    assert (tmp_path / "log").read_text() == "one\ntwo\n"
    assert child.cause_of_death() == "ended with exit code 0"


def test_one_that_does_not_is_killed_with_all_that_it_started(start: Start) -> None:
    child = start(DAEMON + "import time; print('ready', flush=True); time.sleep(600)")
    until(lambda: len(with_mark(child.mark)) == 2, "it and what it starts")
    assert not child.end(patience=0.1)
    assert with_mark(child.mark) == [] and child.cause_of_death() == "died of signal 9 (SIGKILL)"
    child.kill()  # once more does nothing
    child.say("it hears no more")
    assert not child.identity.lives()


def test_what_leaves_its_group_is_ended_though_it_ended_well(start: Start) -> None:
    child = start(DAEMON)
    assert child.has_ended(within=PATIENCE)
    child.kill()
    assert with_mark(child.mark) == [] and child.returncode == 0


def stat(flags: int, environment_ends: int) -> bytes:
    """What the kernel says of a process that calls itself as it likes."""
    fields = ["S", *"12345", str(flags), *(["0"] * 41), str(environment_ends), "0"]
    return f"7 () R 1) {' '.join(fields)}\n".encode()


@pytest.mark.parametrize(
    "flags, environment_ends, between, ending",
    [(0x400000, 0, True, False), (0x400000, 4096, False, False), (0x4, 0, False, True), (0x208040, 0, False, False)],
)
def test_what_has_no_environment_yet_and_what_never_has_one(
    flags: int, environment_ends: int, between: bool, ending: bool
) -> None:
    seen = stat(flags, environment_ends)
    assert (becomes_another(seen), is_ending(seen)) == (between, ending)
    own = Path("/proc/self/stat").read_bytes()
    assert not becomes_another(own) and not is_ending(own)


def test_what_becomes_another_program_while_it_is_looked_for_is_ended(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For a moment, which is long where the machine is busy, nobody can tell what it bears."""
    child = start("import time; print('ready', flush=True); time.sleep(600)")
    until(lambda: child.log.received, "it to begin")
    environ, looks = psutil.Process.environ, iter(range(20))

    def between(process: psutil.Process) -> dict[str, str]:
        hidden = process.pid == child.pid and next(looks, None) is not None
        return {} if hidden else environ(process)

    monkeypatch.setattr(psutil.Process, "environ", between)
    is_between = between_programs._is_between
    monkeypatch.setattr(
        between_programs,
        "_is_between",
        lambda pid: next(looks, None) is not None if pid == child.pid else is_between(pid),
    )
    lifetime.end_marked(child.mark)
    assert child.has_ended(within=PATIENCE)


@pytest.mark.parametrize("kind", [CappedLog, Dictation])
def test_a_log_is_waited_for_though_this_process_stood_still_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: type[CappedLog | Dictation]
) -> None:
    """Whatever time a look had has passed then, and the thread that writes has had none of it."""
    log, goes_on, join = kind(tmp_path / "log"), threading.Event(), threading.Thread.join
    write = log._write

    def later(chunk: Any) -> None:
        assert goes_on.wait(PATIENCE)
        write(chunk)

    def look(thread: threading.Thread, timeout: float | None = None) -> None:
        if thread is log and not goes_on.is_set():
            goes_on.set()
        else:
            join(thread, timeout)

    monkeypatch.setattr(log, "_write", later)
    monkeypatch.setattr(threading.Thread, "join", look)
    os.write(log.descriptor, b"said\n")
    if kind is CappedLog:
        os.close(log.descriptor)
    log.finish()
    assert not log.is_alive() and (tmp_path / "log").read_bytes() == b"said\n"


UNMARKED = """
import os, sys
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.setpgid(0, os.getppid())  # no group of its own, as behind a wall
    os.execve("/bin/sleep", ["sleep", "600"], {})
"""
"""One that leads a session, and its fork: no mark is on either, and nobody told them to end with their parent."""


def sleeping(pid: int) -> list[psutil.Process]:
    with contextlib.suppress(psutil.Error):
        below = psutil.Process(pid).children(recursive=True)
        return [process for process in below if process.cmdline() == ["sleep", "600"]]
    return []


def test_what_wiped_its_mark_is_ended_by_its_descent(start: Start) -> None:
    child = start(UNMARKED + "import time; time.sleep(600)")
    until(lambda: len(sleeping(child.pid)) == 2, "both")
    left = sleeping(child.pid)
    child.kill()
    until(lambda: not any(process.is_running() for process in left), "their end")


@pytest.mark.parametrize("own", [True, False])
def test_its_temporary_directory_goes_with_it(start: Start, own: bool) -> None:
    child = start("import tempfile\nprint(tempfile.mkstemp()[1])", temporary=own)
    child.end(patience=PATIENCE)
    left = Path(child.printed.decode().strip())
    assert left.exists() is not own and left.parent.exists() is not own
    left.unlink(missing_ok=True)


def test_where_the_users_has_a_long_path_it_lies_in_another_that_can_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / ("long" * 20)))
    assert temporary_name().parent == Path("/tmp")
    monkeypatch.setattr(os, "access", lambda path, mode: path != "/tmp")
    assert temporary_name().parent == tmp_path / ("long" * 20)


def test_where_it_is_can_be_asked(start: Start, tmp_path: Path) -> None:
    hangs = "import faulthandler, signal, time\nfaulthandler.register(signal.SIGUSR1)\nprint('x', flush=True)\n"
    child = start(hangs + "time.sleep(600)", log=tmp_path / "log")
    until(lambda: child.log.received, "it to begin")
    until(lambda: b"whatever.py" in child.stacks(), "where it is")  # what it has written when it was asked


def test_one_that_cannot_be_started_leaves_nothing(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: Any) -> None:
        raise OSError("no more processes")

    monkeypatch.setattr(child_module, "start_module", refused)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    before = set(os.listdir("/dev/fd"))
    with pytest.raises(OSError, match="no more processes"):
        start("", log=tmp_path / "log")
    assert {path.name for path in tmp_path.iterdir()} <= {"whatever.py", "log"}
    until(lambda: len(os.listdir("/dev/fd")) <= len(before), "its log to be closed")


def test_the_mark_in_the_place_of_a_parents_ends_nobody(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    """A job's file may have it: all that any of the user's sessions has started bears it."""
    monkeypatch.delenv(MARK, raising=False)
    child = start("import time; time.sleep(600)")
    until(lambda: psutil.Process(child.pid).environ().get(WITHIN) == NOBODY, "it to begin")
    end_marked(NOBODY)
    assert not child.has_ended(within=1)


def test_nobody_is_known_by_no_mark(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    """A child of a session has no mark of its parent's."""
    monkeypatch.delenv(MARK, raising=False)
    child = start("import time; time.sleep(600)")
    end_marked("")
    assert child.identity.lives()


OVERTAKEN = """
from proofmark.process.lifetime import tidy_at_exit
import subprocess
import sys
tidy_at_exit()
print("ready", flush=True)
sys.stdin.read()
raise OSError("nobody reads what this process answers")
"""
"""A child whose main thread fails when its parent is gone, before any that watches has ended what it should."""

PARENT = """
import os, sys, time
from pathlib import Path
from proofmark.process.child import Child
child = Child("whatever", sys_path=sys.argv[2:], log=Path(sys.argv[1]))
print(child.mark, child._temporary, flush=True)
time.sleep(600)
"""


WATCHED = """
from proofmark.process.lifetime import end_own_group
import sys
print("ready", flush=True)
sys.stdin.read()
end_own_group()
"""
"""A child that watches for its parent's end."""


@pytest.mark.parametrize("ends", [OVERTAKEN, WATCHED])
def test_one_without_its_parent_leaves_nothing_behind(tmp_path: Path, ends: str) -> None:
    (tmp_path / "whatever.py").write_text(DAEMON + UNMARKED + "print(os.getpid(), flush=True)\n" + ends)
    (tmp_path / "parent.py").write_text(PARENT)
    log = tmp_path / "log"
    command = [sys.executable, str(tmp_path / "parent.py"), str(log), str(tmp_path), *sys.path]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as parent:
        assert parent.stdout is not None
        mark, temporary = parent.stdout.readline().split()
        until(lambda: log.read_text().endswith("ready\n"), "it to begin")
        assert Path(temporary).is_dir()
        pid = int(log.read_text().split()[0])
        until(lambda: len(with_mark(mark)) == 2 and len(sleeping(pid)) == 3, "all that it starts")
        left = sleeping(pid)
        parent.kill()
    until(lambda: not with_mark(mark) and not Path(temporary).exists(), "its end")
    until(lambda: not any(process.is_running() for process in left), "their end")


WAITING = """
import socket
from proofmark.process.child import Child
from proofmark.process.warm.modules import warm_up
warm_up(["slow"], {})
send = socket.send_fds
socket.send_fds = lambda *orders: (send(*orders), print("asked", flush=True))
Child("whatever")
"""
"""One that is killed while its child is about to be made: what that is forked from still imports, as torch for long."""


@pytest.mark.skipif(sys.platform != "linux", reason="there is no warm process")
def test_one_that_is_killed_while_it_waits_for_a_child_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text("import time\ntime.sleep(60)\n")
    (tmp_path / "parent.py").write_text(WAITING)
    with temporary_directory() as own:
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path]), "TMPDIR": own}
        command = [sys.executable, str(tmp_path / "parent.py")]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as parent:
            assert parent.stdout is not None and parent.stdout.readline() == "asked\n"
            parent.kill()
        assert os.listdir(own) == []
