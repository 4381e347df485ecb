"""What runs on a Ray cluster: a job's task, and the actor by which it is heard while it runs.

Both are sent by value, with the far end's modules: a node needs Ray and what the job itself imports, not this package.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import queue
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from proofmark.launch.far_end.protocol import goes_home
from proofmark.launch.far_end.run import Run
from proofmark.launch.far_end.store import temporary_directory
from proofmark.process.scratch.own_directory import remove

HERE = "/proofmark-here"
"""Stands for the folder that a node gives a job, wherever the job's orders name it."""

HEARD = 0.1
"""Seconds between two exchanges of a task with those who wait for it."""

APART = ("-S", "-c", "import subprocess, sys; sys.exit(subprocess.run(sys.argv[1:]).returncode)")
"""What is between a task's process and the agent: with the one Ray kills its children, and the other must live to tidy
up behind it."""

Heard = tuple[str, str, float, list[tuple[str, int | None, bytes]]]
"""A job, the execution of its task, that host's monotonic clock in seconds, and pieces of its files: the name, where a
piece belongs, None for a file that it is the whole of, and the piece."""


class Inbox:
    """Between tasks and the driver. A task that Ray runs again hears all lines again."""

    def __init__(self) -> None:
        self._heard: list[Heard] = []
        self._lines: dict[str, list[str]] = {}
        self._stopped: set[str] = set()

    def exchange(self, heard: Heard, known: int) -> tuple[list[str], bool]:
        """A task's: what there is for it beyond the first `known` lines, and whether it is to end."""
        self._heard.append(heard)
        return self._lines.get(heard[0], [])[known:], heard[0] in self._stopped

    def take(self) -> list[Heard]:
        """The driver's: what was heard since the last time."""
        heard, self._heard = self._heard, []
        return heard

    def say(self, job: str, line: str) -> None:
        """A line for a job's standard input."""
        self._lines.setdefault(job, []).append(line)

    def stop(self, job: str) -> None:
        """Have a job end."""
        self._stopped.add(job)

    def forget(self, job: str) -> None:
        """Drop a job that has ended."""
        self._lines.pop(job, None)
        self._stopped.discard(job)


def run_job(
    inbox: Any, job: str, orders: Mapping[str, Any], code: Mapping[str, bytes], brought: Mapping[str, bytes]
) -> dict[str, Any]:
    """Run a job's agent to its end, on whichever node this is; its exit code, and what it leaves.

    All of it is in one folder, which is the agent's directory for temporary files too.

    Args:
        orders: module, environment, spec, leaves, results, beats (files that are renewed in place), numbered (the
            resource that its devices are, and the vendor's variable for them; or None) and marks: the variables by
            which processes are known, of which the first is this execution's own.
        code: files of Python packages, by their paths.
        brought: files that the job reads, by their names.
    """
    frames: queue.SimpleQueue[tuple[str, bytes | None, dict[str, Any]]] = queue.SimpleQueue()
    mark = os.urandom(16).hex()  # not the job's: what ends one execution is not to end the next
    with _own_folder(code, mark, orders["marks"]) as folder:
        logs = folder / "run" / "noderank0"
        _lay_out(folder / "run" / "brought", brought)
        environment = {key: value.replace(HERE, str(folder)) for key, value in orders["environment"].items()}
        environment[orders["marks"][0]] = mark
        environment |= _devices(*orders["numbered"]) if orders["numbered"] else {}
        agent = [sys.executable, "-P", "-m", orders["module"], str(folder / "run" / "spec.json"), "0"]
        spec = orders["spec"].replace(HERE, str(folder))
        run = Run(logs, orders["leaves"], lambda kind, body=None, **fields: frames.put((kind, body, fields)))
        try:
            run.start([sys.executable, *APART, *agent], environment, folder / "code", spec, mark, folder)
            code_of_exit = _attend(inbox, job, run, frames, [logs / name for name in orders["beats"]])
            return {"code": code_of_exit, "files": dict(_left(logs, [*orders["leaves"], *orders["results"]]))}
        finally:
            run.end(patience=5.0)


def _devices(resource: str, variable: str) -> dict[str, str]:
    """The task's own in the vendor's variable: Ray sets one for each resource, which need not be this vendor's."""
    numbers: list[str] = importlib.import_module("ray").get_runtime_context().get_accelerator_ids()[resource]
    manager = importlib.import_module("ray._private.accelerators").get_accelerator_manager_for_resource(resource)
    rays = manager.get_visible_accelerator_ids_env_var()
    if rays != variable:
        if rays is not None:
            os.environ.pop(rays, None)  # who heeds both would count among the one's by the other's numbers
        if variable in os.environ:  # the node has these
            node = os.environ[variable].split(",")
            numbers = [node[int(each)] for each in numbers]
    return {variable: ",".join(numbers)}


@contextlib.contextmanager
def _own_folder(code: Mapping[str, bytes], mark: str, marks: Sequence[str]) -> Iterator[Path]:
    """A folder with the code in it that is removed at the end, and by the reaper if this process is killed."""
    folder = temporary_directory({})
    reaper = None
    try:
        _lay_out(folder / "code", code)
        reaper = _reaper(folder, mark, marks)
        yield folder
    finally:
        remove(folder)
        if reaper is not None:
            reaper.close()


def _reaper(folder: Path, mark: str, marks: Sequence[str]) -> IO[bytes]:
    """Start what ends all that bears the mark, and removes the folder, once this pipe is closed: as it is when this
    process is killed. It bears none itself, by which it would be ended before."""
    unmarked = {key: value for key, value in os.environ.items() if key not in marks}
    started = subprocess.Popen(
        [sys.executable, "-P", "-m", "proofmark.launch.ray.reaper", str(folder), mark],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=unmarked | {"PYTHONPATH": str(folder / "code")},
        start_new_session=True,
    )
    started.wait()  # until it is no child of this process any more
    assert started.stdin is not None
    return started.stdin


def _attend(inbox: Any, job: str, run: Run, frames: Any, beats: Sequence[Path]) -> int:
    """Pass on what the agent writes and what it is told, until it has ended; its exit code."""
    ray = importlib.import_module("ray")  # an extra
    execution, known, ended = os.urandom(8).hex(), 0, None
    while ended is None:
        pieces: list[tuple[str, int | None, bytes]] = []
        while not frames.empty():
            kind, body, fields = frames.get()
            if kind == "ended":
                ended = int(fields["code"])
            elif body is not None:
                pieces.append((fields["name"], fields["offset"], body))
        pieces += [(path.name, None, path.read_bytes()) for path in beats if path.exists()]
        lines, stopped = ray.get(inbox.exchange.remote((job, execution, time.monotonic(), pieces), known))
        known += len(lines)
        for line in lines:
            run.say(line)
        if stopped:
            run.end(patience=5.0)
        run.touch()
        time.sleep(0.0 if ended is not None else HEARD)
    return ended


def _left(logs: Path, leaves: Sequence[str]) -> list[tuple[str, bytes]]:
    found = [path for path in sorted(logs.iterdir()) if goes_home(path.name, leaves)]
    return [(path.name, path.read_bytes()) for path in found if path.is_file() and not path.is_symlink()]


def _lay_out(folder: Path, files: Mapping[str, bytes]) -> None:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
