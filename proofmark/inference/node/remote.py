"""A case's processes on a host: its agent is a job, which is told the steps and whose answers are followed."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from proofmark.inference.node.agent import HEARTBEAT
from proofmark.inference.node.answers import FILE, read_node_answer
from proofmark.inference.node.processes import Ending
from proofmark.inference.node.spec import CaseSpec
from proofmark.inference.node.worker import STANDSTILL, Progress, WorkerLost
from proofmark.launch.job import Job, Launcher
from proofmark.launch.job_file import index_in
from proofmark.process.wall_clock import now
from proofmark.record.events.tail import Tail

LEAVES = ("agent.log", FILE, "worker.log", "monitor.jsonl", "monitor.err")
"""What the agent and its processes write, and what comes home while they do."""

SILENCE = 24 * HEARTBEAT
"""Seconds without a word of the agent after which it is given up: its host lives, or the launcher would have said."""

STARTING = 1800.0
"""Seconds from a host's first answer to its processes' readiness: a vendor's package may take long to import there."""

CLOSING = 600.0
"""Seconds from when its processes are told to end until it says that they have."""

ENDING = 60.0
"""Seconds that the agent's last words may take."""

LATE = {
    "ready": f"its processes were not ready {STARTING / 60:.0f} min after its host first answered, which was let go of",
    "outcome": "it took longer than --step-timeout, its host did not end it, and was let go of",
    "closed": "its host was told to end its processes, did not, and was let go of",
    "ended": "its processes had ended, its job had not a minute later, and was let go of",
}
"""What has happened where a host says that it is there, and not what is waited for."""

EVERY = 0.05
"""Seconds between two looks."""


class RemoteProcesses:
    """A case's processes on a host that a launcher finds."""

    def __init__(self, spec: CaseSpec, launcher: Launcher) -> None:
        """Submit the job; `begin` waits until it runs.

        Raises:
            OSError: the run's folder can't be written.
        """
        directory = Path(spec.directory)
        self._handle = launcher.submit(
            Job(
                name=spec.name,
                module="proofmark.inference.node.agent",
                spec=spec,
                directory=directory,
                leaves=LEAVES,
                index=index_in(spec.config["host"]["cache_dir"]),
                sys_path=spec.sys_path,
                held=True,
                begins="the case starts",
            )
        )
        self._answers = Tail(spec.node_directory(0) / FILE)
        self._patience = float("inf") if spec.step_timeout is None else spec.step_timeout + ENDING
        self._now = 0.0  # seconds in which this process looked: while it stood still it heard nobody
        self._heard = float("inf")  # hosts may be waited for

    def begin(self, on_progress: Progress) -> dict[str, Any]:
        """Wait for a host as long as it takes, then for the processes there.

        Returns what is known of the host: `hosts`, as the launcher found them, whether `caches_cleared` there, the
        index of the case's `device`, and when its processes had `begun`, by its clock.

        Raises:
            WorkerLost: there is no host, it is not ready, or they can't be started there.
        """
        try:
            ready = self._wait_for("ready", on_progress, STARTING)
        except WorkerLost:
            self.kill()
            raise
        facts = self._handle.facts()
        hosts = facts.get("hosts", [])
        ahead = next((host["skew"] or 0.0 for host in hosts), 0.0)
        known = {"hosts": hosts, "caches_cleared": facts.get("caches_cleared")}
        return {**known, "device": ready["device"], "begun": now() + ahead}

    def run(self, step: str, on_progress: Progress) -> dict[str, Any]:
        """Have a step run, and wait for its outcome; how long that may take is watched over there, and here in case
        that host doesn't."""
        self._handle.tell(json.dumps({"step": step}))
        self._heard = self._now
        return dict(self._wait_for("outcome", on_progress, self._patience))

    def close(self) -> Ending:
        """Have the processes end, and wait until all that they wrote is here."""
        self._handle.tell(json.dumps({"step": None}))
        self._heard = self._now
        try:
            closed = self._wait_for("closed", lambda _: None, CLOSING)
            looks = iter(range(int(ENDING / EVERY)))
            while (status := self._handle.status()) == "running" and next(looks, None) is not None:
                time.sleep(EVERY)
            if status == "running":
                raise WorkerLost(LATE["ended"])
            lost = closed["lost"] if status == "succeeded" else self._cause()
            return Ending(closed["monitor_failure"], lost)
        except WorkerLost as error:
            self.kill()
            return Ending(lost=str(error))

    def kill(self) -> None:
        """End all of it, and let go of the host."""
        self._handle.stop()

    def fetch(self, leaves: Sequence[str]) -> str | None:
        """Bring files and folders of those names home."""
        return self._handle.fetch(leaves) if self._handle.status() == "succeeded" else "its job did not end well"

    def release(self, well: bool) -> None:
        """Let go of the host."""
        self._handle.stop()

    def _wait_for(self, kind: str, on_progress: Progress, patience: float) -> Any:
        """That answer; `patience` counts from when the host has first been heard."""
        until, looked = self._heard + patience, time.monotonic()
        while True:
            self._now, looked = self._now + min(time.monotonic() - looked, STANDSTILL), time.monotonic()
            ended = self._handle.status() != "running"  # looked at first: what came before it is read below
            for note in self._handle.news():
                on_progress({"note": note})
            for answer in self._read():
                self._heard = self._now
                until = min(until, self._heard + patience)
                if kind in answer:
                    return answer[kind]
                if "lost" in answer:
                    raise WorkerLost(answer["lost"]["reason"], answer["lost"]["detail"])
                if "agent" not in answer:
                    on_progress(answer)
            if ended:
                raise WorkerLost(self._cause())
            if self._handle.silent:  # its launcher says when the host is lost
                self._heard = self._now
            if self._now > until:
                self.kill()
                raise WorkerLost(LATE[kind])
            if self._now - self._heard > SILENCE:
                self.kill()
                raise WorkerLost(f"the case's agent gave no sign of life for {SILENCE:.0f} s, and was ended")
            time.sleep(EVERY)

    def _read(self) -> Iterator[dict[str, Any]]:
        for line in self._answers.lines():
            try:
                yield read_node_answer(line)
            except ValueError as error:
                self.kill()
                reason = f"the case's host sent an invalid answer, and was let go of: {error}"
                raise WorkerLost(reason) from None

    def _cause(self) -> str:
        """Why the job has ended, as far as its launcher knows."""
        lost = [str(each["reason"]) for each in self._handle.facts().get("lost", [])]
        return "; ".join(lost) or "the case's agent has ended; its output is in noderank0/agent.log"
