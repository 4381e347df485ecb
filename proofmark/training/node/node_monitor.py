"""A node's monitor, as the node's agent runs it."""

from __future__ import annotations

import contextlib
import os
import threading
from pathlib import Path

from proofmark.monitoring.monitor import MonitorProcess
from proofmark.monitoring.watch import ENDING, Watch
from proofmark.record.events.log import EventLog
from proofmark.training.outcome.event_types import MONITOR_FAILED
from proofmark.training.spec import TrainingSpec
from proofmark.vendor.environment import environment_of


class NodeMonitor:
    """Watches the host and the devices that the node's ranks have. Whatever becomes of it, the training goes on."""

    def __init__(self, spec: TrainingSpec, directory: Path, log: EventLog) -> None:
        """Start it, where the spec asks for one; it leaves `monitor.jsonl` and `monitor.err` in `directory`."""
        self._log, self._lock = log, threading.Lock()
        self._process: MonitorProcess | None = None
        if spec.monitor_interval is None:
            return
        try:
            self._process = _start(spec, spec.monitor_interval, directory)
        except Exception as error:  # noqa: BLE001 (whatever it is, the training goes on)
            self._tell(f"the monitor could not be started: {type(error).__name__}: {error}")

    def stop(self, patience: float = ENDING) -> None:
        """End it, by force after so many seconds, and write down what was wrong with it. Any thread may ask, any number
        of times."""
        with self._lock:
            process, self._process = self._process, None
            trouble = process.stop(patience) if process else None
            if trouble:
                self._tell(trouble)

    def _tell(self, trouble: str) -> None:
        with contextlib.suppress(OSError):  # a full disk; the training has something to say of that itself
            self._log.write(MONITOR_FAILED, reason=trouble)


def _start(spec: TrainingSpec, interval: float, directory: Path) -> MonitorProcess:
    """Start it. Its group is this process's, from which everything of the training on this node descends."""
    host = spec.config["host"]
    watch = Watch(
        vendor=spec.vendor,
        vendors_dir=spec.vendors_dir,
        group=os.getpid(),
        devices=spec.nproc,
        path=str(directory / "monitor.jsonl"),
        interval=interval,
        selected=host["device"],
        wall=host["isolation"] == "wall",
    )
    return MonitorProcess(watch, environment_of(host))
