"""Who guards a monitor and an introduction is held up by nothing that their code does."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from proofmark.monitoring import monitor
from proofmark.monitoring.monitor import MonitorProcess
from proofmark.monitoring.watch import Watch
from proofmark.process import guard
from proofmark.process.child import Child
from proofmark.process.lifetime import MARK
from tests.unit.vendor.test_registry import GOOD, add, vendors
from tests.waiting import until

__all__ = ["vendors"]

HANGS = """
import ctypes, os

class Monitor:
    def sample(self):
        open(os.environ["TMPDIR"] + "/hangs", "w").close()
        ctypes.PyDLL(None).sleep(600)  # with the interpreter's lock

    def close(self):
        pass

Acme.monitor = lambda self: Monitor()
Acme.software = lambda self: Monitor().sample()
"""

PARENTS = {
    "introduction": "introduce('acme', vendors)",
    "monitor": (
        "watch = Watch('acme', str(vendors), os.getpgid(0), None, str(vendors / 'log'), 1.0)\n"
        "kept = MonitorProcess(watch); time.sleep(600)"
    ),
}


@pytest.fixture(params=PARENTS)
def parent(request: pytest.FixtureRequest, vendors: Path) -> Iterator[subprocess.Popen[bytes]]:
    """One whose child hangs where no other thread of its has a turn."""
    add(vendors, "acme", GOOD + HANGS)
    code = (
        "import os, sys, time\nfrom pathlib import Path\n"
        "from proofmark.monitoring.monitor import MonitorProcess\n"
        "from proofmark.monitoring.watch import Watch\n"
        "from proofmark.vendor.introduction.asking import introduce\n"
        f"vendors = Path(sys.argv[1])\n{PARENTS[request.param]}\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen([sys.executable, "-P", "-c", code, str(vendors)], env=environment) as process:
        yield process
        process.kill()


def marked(mark: str) -> list[psutil.Process]:
    found = []
    for process in psutil.process_iter():
        try:
            found += [process] if process.environ().get(MARK) == mark else []
        except psutil.Error:
            continue
    return found


def test_what_keeps_the_interpreter_to_itself_ends_with_its_parent(parent: subprocess.Popen[bytes]) -> None:
    until(lambda: psutil.Process(parent.pid).children(), "its child")
    (child,) = psutil.Process(parent.pid).children()
    until(lambda: MARK in child.environ(), "what it begins with")  # before its program begins it has its parent's
    directory, mark = Path(child.environ()["TMPDIR"]), child.environ()[MARK]
    until((directory / "hangs").exists, "its code to hang")
    parent.kill()
    until(lambda: not marked(mark) and not directory.exists(), "the end of it")


def test_a_monitor_that_fills_the_disk_is_ended_at_once(vendors: Path, tmp_path: Path) -> None:
    fills = "for _ in range(5): os.truncate(__import__('tempfile').mkstemp()[1], 1 << 30)\n        "
    add(vendors, "acme", GOOD + HANGS.replace("ctypes.PyDLL", fills + "ctypes.PyDLL"))
    process = MonitorProcess(Watch("acme", str(vendors), os.getpgid(0), None, str(tmp_path / "monitor.jsonl"), 1.0))
    directory = process._child._temporary
    assert directory is not None
    try:
        until(lambda: process._child.has_ended() and not directory.exists(), "its end")
    finally:
        assert "ended by itself with code -9" in (process.stop() or "")
    expected = (
        f"it filled its own directory with more than the {guard.MOST >> 30} GiB that it may keep, and was ended\n"
    )
    assert (tmp_path / "monitor.err").read_text() == expected


PATIENT = """
from proofmark.monitoring import monitor_main
from proofmark.process.guard import guard
from proofmark.process.lifetime import leave
monitor_main.guard = lambda patience: guard(patience=600)
monitor_main.main()
leave(0)
"""
"""A monitor whose guard waits for it, however slow the machine is."""


def test_a_monitor_that_ends_by_itself_tidies_up_before(
    vendors: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its parent may be killed before it does."""
    add(vendors, "acme", GOOD)
    (tmp_path / "patient.py").write_text(PATIENT)
    path = [str(tmp_path), *sys.path]
    monkeypatch.setattr(monitor, "Child", lambda _, **given: Child("patient", sys_path=path, **given))
    process = MonitorProcess(Watch("acme", str(vendors), os.getpgid(0), None, str(tmp_path / "monitor.jsonl"), 1.0))
    directory = process._child._temporary
    assert directory is not None
    process._child._hang_up()
    until(process._child.has_ended, "its end")
    left = directory.exists()
    assert process.stop() is not None and not left
