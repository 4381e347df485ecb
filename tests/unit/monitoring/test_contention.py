"""Who computes beside this process."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from proofmark.monitoring import contention
from proofmark.monitoring.contention import ContentionMeter

pytestmark = pytest.mark.quiet

ALONE = """
import os, time
if pid := os.fork():
    print(pid, flush=True)
    os._exit(0)
end = time.monotonic() + 30
while time.monotonic() < end: pass
"""
"""Nobody's child any more."""


@pytest.fixture(autouse=True)
def one_core() -> Iterator[None]:
    """A share is one of one core, and this test's processes have no other."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(before)})
    yield
    os.sched_setaffinity(0, before)


def test_a_child_of_this_process_is_none_of_the_others_alive_or_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever else computes here: in place of the machine's times stand those of this test's own processes."""

    def of_this_test(*_: object) -> tuple[float, float]:
        alive = [sum(child.cpu_times()[:2]) for child in psutil.Process().children()]
        return sum(os.times()[:4]) + sum(alive), 0.0

    monkeypatch.setattr(contention, "_machine", of_this_test)
    meter, before = ContentionMeter(os.getpid()), of_this_test()[0]
    child = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    while of_this_test()[0] - before < 1:
        time.sleep(0.1)
    alive = meter.seen().others
    child.kill()
    child.wait()
    assert alive < 0.1 and meter.seen().others < 0.1


def test_what_is_left_of_counters_is_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contention, "_machine", lambda _: (100.3, 0.0))
    monkeypatch.setattr(contention, "_seconds", lambda _: 0.0)
    meter = ContentionMeter()
    monkeypatch.setattr(contention, "_machine", lambda _: (100.3 + 0.3, 0.0))
    monkeypatch.setattr(contention, "_seconds", lambda _: 0.1 + 0.2 - 1e-12)
    assert meter.seen().others == 0.0


def test_others_are() -> None:
    with subprocess.Popen([sys.executable, "-c", ALONE], stdout=subprocess.PIPE, text=True) as started:
        assert started.stdout is not None
        orphan = psutil.Process(int(started.stdout.readline()))
    try:
        meter = ContentionMeter(os.getpid())
        time.sleep(1)
        assert meter.seen().others > 0.5
    finally:
        orphan.kill()


def test_a_helper_that_was_forked_twice_in_an_engines_group_is_none_of_the_others() -> None:
    engine = f"import sys, subprocess; subprocess.run([sys.executable, '-c', {ALONE!r}]); sys.stdin.read()"
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", engine], stdin=pipe, stdout=pipe, start_new_session=True) as started:
        assert started.stdout is not None
        helper = psutil.Process(int(started.stdout.readline()))
        try:
            assert helper.ppid() != started.pid
            assert {started.pid, helper.pid} <= contention._tree(os.getpid())
            while sum(helper.cpu_times()[:2]) < 0.2:
                time.sleep(0.05)
            assert helper.pid not in contention._tree(started.pid), "a root's own group may be others' too"
            assert contention._seconds(contention._tree(os.getpid())) >= 0.2
        finally:
            helper.kill()
            started.communicate()


def test_what_a_session_has_started_beside_what_is_timed_is_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a case's monitor, of which the case's process knows nothing."""
    session, spin = os.getpid(), [sys.executable, "-c", "while True: pass"]
    with subprocess.Popen(spin) as timed:
        try:
            monkeypatch.setattr("os.getpid", lambda: timed.pid)
            assert _beside(ContentionMeter(session)) < 0.1
            with subprocess.Popen(spin) as monitor:
                try:
                    assert _beside(ContentionMeter(session)) > 0.2
                finally:
                    monitor.kill()
        finally:
            timed.kill()


def _beside(meter: ContentionMeter) -> float:
    time.sleep(1)
    return meter.seen().beside


@pytest.mark.parametrize(
    "affinity, seconds, others, idle",
    [
        ({2, 3}, {0: 8, 1: 8, 2: 0, 3: 0}, 0.0, 1.0),  # others have their own
        ({2, 3}, {0: 0, 1: 0, 2: 8, 3: 0}, 0.4, 0.6),  # of four cores it would be 0.2
        ({0, 1, 2, 3}, {0: 0, 1: 0, 2: 8, 3: 0}, 0.2, 0.8),
        ({0, 2, 4, 6}, {0: 0, 2: 0, 4: 8, 6: 0}, 0.2, 0.8),  # each second is off
        ({4, 6}, {0: 8, 2: 8, 4: 8, 6: 0}, 0.4, 0.6),
        ({40, 41}, {0: 8, 1: 0, 2: 0, 3: 0}, 0.2, 0.8),  # a container's cores alone, by numbers of its own
        ({2, 3, 4, 5}, {0: 8, 1: 0, 2: 0, 3: 0}, 0.2, 0.8),  # of which some are others' in the machine
    ],
)
def test_only_cores_that_the_session_may_use_count(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    affinity: set[int],
    seconds: dict[int, int],
    others: float,
    idle: float,
) -> None:
    """By the numbers that the kernel gives them, of those that are on."""
    clock, ticks = [0.0], os.sysconf("SC_CLK_TCK")
    monkeypatch.setattr(contention, "STAT", tmp_path / "stat")
    monkeypatch.setattr("os.sched_getaffinity", lambda process: affinity)
    monkeypatch.setattr(contention, "_seconds", lambda processes: 0.0)
    monkeypatch.setattr(contention, "time", SimpleNamespace(monotonic=lambda: clock[0]))

    def lie(times: dict[int, list[float]]) -> None:
        lines = [f"cpu{core} {' '.join(str(round(each * ticks)) for each in kinds)}" for core, kinds in times.items()]
        Path(tmp_path, "stat").write_text("\n".join(["cpu  0 0 0", *lines, "intr 0 0", ""]))

    lie({core: [0.0] * 10 for core in seconds})
    meter, clock[0] = ContentionMeter(os.getpid()), 10.0
    lie({core: [busy * 0.8, 0, 0, 10 - busy, 0, 0, 0, busy * 0.2, busy, 0] for core, busy in seconds.items()})
    seen = meter.seen()
    assert (seen.others, seen.idle) == (pytest.approx(others), pytest.approx(idle))
    assert seen.stolen == pytest.approx(others / 5)


def test_of_a_session_that_has_ended_the_machines_cores_count() -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        pass
    assert contention._places(contention._usable(ended.pid)) == sorted(contention._times())


ROAMING = """
import os, threading
def roam():
    os.sched_setaffinity(0, range(os.cpu_count()))
    print(flush=True)
    input()
threading.Thread(target=roam).start()
"""
SESSION = f"import subprocess, sys; input(); subprocess.run([sys.executable, '-c', {ROAMING!r}]); print(); input()"
PIPES = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "bufsize": 1}


@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="there is no core to leave for")
def test_a_thread_that_may_run_elsewhere_is_seen() -> None:
    with subprocess.Popen([sys.executable, "-uc", SESSION], **PIPES) as session:
        assert session.stdin is not None and session.stdout is not None
        meter = ContentionMeter(session.pid)
        assert meter.seen().beyond == ()
        for goes_on in (True, False):
            session.stdin.write("\n")
            session.stdout.readline()
            others = set(range(os.cpu_count() or 1)) - os.sched_getaffinity(0)
            assert set(meter.seen().beyond) == (others if goes_on else set())
        session.communicate("\n")
