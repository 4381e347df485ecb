"""One training as a job: submitted, followed to its end."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from harness.events import Event
from harness.launch import Handle, Job, Launcher
from harness.machine import usable_cores
from harness.process import tidy_environment
from harness.training.spec import TrainingSpec
from harness.training.tail import Tail


def submit(spec: TrainingSpec, launcher: Launcher) -> Handle:
    """Write the spec into the run's folder and start an agent per node.

    Processes of one node share its cores, unless the user set OMP_NUM_THREADS.

    Raises:
        OSError: the folder can't be written.
    """
    directory = Path(spec.directory)
    path = directory / "spec.json"
    spec.save(path)
    environment = {
        "PYTHONPATH": os.pathsep.join(spec.sys_path),
        **tidy_environment(Path(spec.config["host"]["cache_dir"])),
    }
    if "OMP_NUM_THREADS" not in os.environ:
        environment["OMP_NUM_THREADS"] = str(max(1, usable_cores() // spec.nproc))
    return launcher.submit(
        Job([sys.executable, "-m", "harness.training.agent", str(path)], directory, spec.nnodes, environment)
    )


def follow(handle: Handle, spec: TrainingSpec, timeout: float, tell: Callable[[Event], None]) -> dict[str, Any]:
    """Wait until the job has ended, or `timeout` seconds, and pass on what rank 0 notes meanwhile.

    Returns the job's `status`, or 'stopped' with a `reason`; stopping it is the caller's.
    """
    deadline = time.monotonic() + timeout
    tail = Tail(spec.node_directory(0) / "rank0.jsonl")
    while True:
        status = handle.status()
        for event in tail.events():
            tell(event)
        if status != "running":
            return {"status": status}
        if time.monotonic() > deadline:
            return {
                "status": "stopped",
                "reason": f"took longer than the {timeout:g} s of --step-timeout and was ended",
            }
        time.sleep(0.1)
