"""One training as a job: submitted, followed to its end."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from proofmark.launch.job import ENDING, Handle, Job, Launcher
from proofmark.launch.job_file import index_in
from proofmark.launch.rank_result import LEFT
from proofmark.record.events.log import Event
from proofmark.training.logs.ranks.tail import Tail
from proofmark.training.node.agent_forks import IMPORTED
from proofmark.training.node.stopwatch import Stopwatch
from proofmark.training.outside.examination import LOG as EXAMINER_LOG
from proofmark.training.outside.examination import PATIENCE
from proofmark.training.spec import TrainingSpec
from proofmark.vendor.environment import referee_environment_of

RANKS = ("rank[0-9]*.jsonl", "rank[0-9]*.log", LEFT)
LEAVES = ("agent.jsonl", "agent.log", "monitor.jsonl", "monitor.err", EXAMINER_LOG, *RANKS)
"""What a node's agent, its monitor, the referee's process and its ranks write."""

STANDSTILL = 1.0
"""Seconds between two looks: in more the session itself stood still, and heard nothing."""


def submit(spec: TrainingSpec, launcher: Launcher, imports: Sequence[str] = ()) -> Handle:
    """Start an agent per node, on this machine with `imports` of the case's done.

    Raises:
        OSError: the run's folder can't be written.
    """
    return launcher.submit(
        Job(
            name=f"{spec.config['suite']}/{spec.config['case']}/{spec.nnodes}x{spec.nproc}",
            module="proofmark.training.node.agent",
            spec=spec,
            directory=Path(spec.directory),
            leaves=LEAVES,
            index=index_in(spec.config["host"]["cache_dir"]),
            nnodes=spec.nnodes,
            sys_path=spec.sys_path,
            imports=(*IMPORTED, *imports),
            environment=referee_environment_of(spec.config["host"]),
            ending=ENDING + PATIENCE * spec.setup_timeout,  # the first node's referee has yet to look at the weights
        )
    )


def follow(
    handle: Handle, spec: TrainingSpec, timeout: float, tell: Callable[[Event], None], note: Callable[[str], None]
) -> dict[str, Any]:
    """Wait until the job has ended, or `timeout` seconds; pass on what rank 0 and the launcher tell meanwhile.

    Returns the job's `status`, or 'stopped' with a `reason`; stopping it is the caller's.
    """
    deadline = time.monotonic() + timeout
    path = spec.node_directory(0) / "rank0.jsonl"
    tail, stopwatch, hearing = Tail(path), Stopwatch(path, clock=time.monotonic), _Hearing()
    while True:
        status = handle.status()
        if hearing.is_well(handle.silent) or status != "running":
            stopwatch.look()
        for news in handle.news():
            note(news)
        for event in tail.events():
            tell(event)
        if status != "running":
            return {"status": status, **({"watched": {"least": stopwatch.least}} if stopwatch.ended else {})}
        if time.monotonic() > deadline:
            return {
                "status": "stopped",
                "reason": f"took longer than the {timeout:g} s of --step-timeout and was ended",
            }
        time.sleep(0.1)


class _Hearing:
    """Whether what is not home was not said: else its time would be taken for that at which it comes."""

    def __init__(self) -> None:
        self._asked, self._behind = time.monotonic(), 0.0

    def is_well(self, silent: bool) -> bool:
        """Whether it is now, while a host is `silent` or none is. What was said in a silence comes home when that is
        over, in no more time than it lasted."""
        passed, self._asked = time.monotonic() - self._asked, time.monotonic()
        self._behind += passed if silent or passed > STANDSTILL else -min(passed, self._behind)
        return self._behind <= 0.0
