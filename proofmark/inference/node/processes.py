"""A case's process and its monitor, on this machine."""

from __future__ import annotations

import os
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from proofmark.inference.node.spec import CaseSpec
from proofmark.inference.node.worker import CaseWorker, Progress, WorkerSpec
from proofmark.inference.outcome.kept import OWN_DIRECTORY, remove_handed_over
from proofmark.launch.engine_container import EngineContainer, engines_environment
from proofmark.launch.job_file import JobFile
from proofmark.monitoring.monitor import MonitorProcess
from proofmark.monitoring.watch import Watch
from proofmark.process.scratch.own_directory import lay_open
from proofmark.process.threads import threads_of_quota
from proofmark.vendor.environment import declared_of, environment_of, referee_environment_of
from proofmark.vendor.hardware.devices import Assignment
from proofmark.vendor.introduction.answers import IntroducedVendor
from proofmark.vendor.registry import FoundVendor

EDGES = ("round_begin", "round_end", "probed")
"""Events at which energy is counted: where what is timed begins and ends, and where a honesty round does, so that being
asked tells a monitor as little of where that one is as an engine knows."""


@dataclass(frozen=True)
class Ending:
    """How a case's processes ended: what was wrong with the monitor, and why no result of theirs counts."""

    monitor_failure: str | None = None
    lost: str | None = None


class CaseProcesses(Protocol):
    """A case's processes, wherever they are."""

    def run(self, step: str, on_progress: Progress) -> dict[str, Any]:
        """Run one step and return its outcome: status, reason, kind, detail.

        Raises:
            WorkerLost: the case's process died, was ended, or its host is gone.
        """

    def close(self) -> Ending:
        """Let them end. Nothing is left running; what they left can be fetched until `release`."""

    def kill(self) -> None:
        """End the case's process now."""

    def fetch(self, leaves: Sequence[str]) -> str | None:
        """Have files and folders of those names in the run's folder, or say why not."""

    def release(self, well: bool) -> None:
        """Let go of where they ran, after a run that went `well` or not."""


class ProcessesHere:
    """This machine's."""

    def __init__(
        self, spec: CaseSpec, found: FoundVendor, directory: Path, device: Assignment, index: Path | None = None
    ) -> None:
        """Start both; what they write is in `directory`, and with an `index` they are a job that is remembered there.

        `found` is the spec's vendor as it introduced itself on this machine.

        Raises:
            OSError: the case's process can't be started, or a file written.
        """
        assert isinstance(found.vendor, IntroducedVendor)
        self._timeout = spec.step_timeout
        # an earlier run's code can't have told its name: what sizes its files have could be seen by this one's
        self._home = home = directory / f"{OWN_DIRECTORY}{secrets.token_hex(8)}"
        home.mkdir()
        own = declared_of(spec.config["host"]) | device.environment  # of its engines
        host = {**spec.config["host"], "environment": own}
        config = {**spec.config, "host": host}
        self._worker = CaseWorker(
            WorkerSpec(
                *spec.case,
                spec.vendor,
                found.vendor.answers,
                spec.vendors_dir,
                spec.compiler,
                config,
                str(directory),
                str(home),
                engine_container=self._container_of(spec),
            ),
            threads_of_quota() | referee_environment_of(host) | device.environment,
            spec.patience,
            spec.imports,
        )
        self._job: JobFile | None = None
        self._no_monitor: str | None = None
        try:
            if index is not None:
                child = self._worker.child
                self._job = JobFile.begin(index, spec.name, "local", directory, agent=child.identity, mark=child.mark)
            self._monitor = self._monitor_of(spec, directory / "monitor.jsonl", device)
        except BaseException:
            self.kill()  # nobody else knows of it
            raise

    @staticmethod
    def _container_of(spec: CaseSpec) -> EngineContainer | None:
        """What engines are put into, with what this process knows of where its engine's daemon and images are."""
        container = spec.engine_container
        return container and replace(container, environment=engines_environment(os.environ))

    def _monitor_of(self, spec: CaseSpec, log: Path, device: Assignment) -> MonitorProcess | None:
        """What watches the case's device and processes, where that is asked for. Without it the run goes on."""
        if spec.monitor_interval is None:
            return None
        host = spec.config["host"]
        watch = Watch(
            vendor=spec.vendor,
            vendors_dir=spec.vendors_dir,
            group=self._worker.child.pid,
            devices=None if device.index is None else [device.index],
            path=str(log),
            interval=spec.monitor_interval,
            selected=host["device"],
            wall=host["isolation"] == "wall",
            container=spec.engine_container.name if spec.engine_container else None,
        )
        try:
            return MonitorProcess(watch, environment_of(host))
        except OSError as error:
            self._no_monitor = f"the monitor could not be started: {error}"
            return None

    def run(self, step: str, on_progress: Progress) -> dict[str, Any]:
        """Run one step. Energy counters are read as a round begins and ends: between two readings a second apart nobody
        knows what was used before it began, of an idle device, and what since."""

        def hear(report: dict[str, Any]) -> None:
            if self._monitor and report.get("event", {}).get("event") in EDGES:
                self._monitor.count()
            on_progress(report)

        return self._worker.run(step, self._timeout, hear)

    def close(self) -> Ending:
        """End the case's process, and the monitor meanwhile."""
        self._worker.dismiss()
        failure = self._monitor.stop() if self._monitor else self._no_monitor
        self._monitor = None
        lost = self._worker.close()
        lay_open(self._home)
        remove_handed_over(self._home.parent)
        return Ending(failure, lost)

    def kill(self) -> None:
        """End the case's process now; the monitor goes on until `close`."""
        self._worker.kill()

    def fetch(self, leaves: Sequence[str]) -> str | None:
        """All is here."""
        return None

    def release(self, well: bool) -> None:
        """The job has ended."""
        if self._job is not None:
            self._job = self._job.end("succeeded" if well else "failed")
