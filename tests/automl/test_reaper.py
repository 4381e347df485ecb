"""A task's process that is killed as Ray kills it: its children first. Without a Ray."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from proofmark.launch.far_end.child import carrying
from proofmark.process.lifetime import MARK, WITHIN
from tests.automl.searches import ROOT
from tests.waiting import until

AGENT = """
import sys, time
from pathlib import Path
Path(sys.argv[1]).with_name("begun").touch()
sys.stdin.read()
time.sleep(600)
"""

TASK = """
import sys, time
from pathlib import Path
from types import SimpleNamespace
from proofmark.launch.ray.task import HERE, run_job

sys.modules["ray"] = SimpleNamespace(get=lambda _: time.sleep(600))  # as if its process were about to end
inbox = SimpleNamespace(exchange=SimpleNamespace(remote=lambda heard, known: None))
root, agent, *marks, mark = sys.argv[1:]
code = {str(path.relative_to(root)): path.read_bytes() for path in Path(root, "proofmark").rglob("*.py")}
orders = {"module": "agent", "environment": {"PYTHONPATH": f"{HERE}/code", marks[1]: mark}, "spec": "", "marks": marks}
orders |= {"leaves": [], "results": [], "beats": [], "numbered": None}
run_job(inbox, "a job", orders, code | {"agent.py": agent.encode()}, {})
"""


class Task:
    """A task's process, and what it has started; all but the reaper bears the task's mark."""

    def __init__(self, temporary: Path) -> None:
        self.mark = f"of {temporary.name}"
        self._before = self.folders(temporary)
        arguments = [sys.executable, "-c", TASK, str(ROOT), AGENT, MARK, WITHIN, self.mark]
        environment = os.environ | {"TMPDIR": str(temporary), MARK: self.mark}
        self.process = subprocess.Popen(arguments, cwd=ROOT, env=environment, start_new_session=True)
        until(lambda: any((folder / "run/begun").exists() for folder in self.new(temporary)), "its agent")
        (self.folder,) = self.new(temporary)

    @staticmethod
    def folders(temporary: Path) -> set[Path]:
        return set(temporary.glob("proofmark-host-*"))

    def new(self, temporary: Path) -> set[Path]:
        return self.folders(temporary) - self._before

    def agents(self) -> list[psutil.Process]:
        """What runs from its folder, the reaper aside."""
        return [each for each in self._running() if "proofmark.launch.ray.reaper" not in each.info["cmdline"]]

    def is_gone(self) -> bool:
        return not self.folder.exists() and not self._running()

    def _running(self) -> list[psutil.Process]:
        found = psutil.process_iter(["cmdline"])
        return [each for each in found if any(str(self.folder) in word for word in each.info["cmdline"] or ())]

    def end(self) -> None:
        self.process.kill()
        self.process.wait()


@pytest.fixture
def temporary() -> Iterator[Path]:
    """A directory for temporary files, under a path that is short enough for sockets."""
    with tempfile.TemporaryDirectory() as directory:
        yield Path(directory)


@pytest.mark.parametrize("killed_with_it", ["nothing", "its children, before", "all that its session has started"])
def test_what_a_task_leaves_goes_with_its_process(temporary: Path, killed_with_it: str) -> None:
    """Its own code sees its child's end, and kills the agent, which then removes nothing; nor does it itself."""
    task = Task(temporary)
    try:
        if killed_with_it == "its children, before":
            for child in psutil.Process(task.process.pid).children():
                with contextlib.suppress(psutil.NoSuchProcess):
                    child.kill()
            until(lambda: not task.agents(), "its agent's end")
        elif killed_with_it == "all that its session has started":
            for pid in carrying(task.mark):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
    finally:
        task.end()
    until(task.is_gone, "its folder, its agent and its reaper to be gone")


def test_a_task_that_is_run_again_beside_what_is_left_of_it_is_let_be(temporary: Path) -> None:
    """Both are of one job."""
    first = Task(temporary)
    first.end()
    second = Task(temporary)
    try:
        until(first.is_gone, "all of the first to be gone, whose agent must be killed")
        assert second.agents() and second.process.poll() is None
    finally:
        second.end()
    until(second.is_gone, "all of the second to be gone")
