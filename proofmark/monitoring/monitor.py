"""Starting and stopping a case's monitor. Whatever becomes of it, no result is lost."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Collection, Mapping
from pathlib import Path

from proofmark.process.lifetime import end_group, wait_without_reaping
from proofmark.process.warm import start_module


class MonitorProcess:
    """The parent's end of the monitor's process."""

    def __init__(
        self,
        vendor: str,
        vendors_dir: Path,
        group: int,
        devices: Collection[int] | None,
        path: Path,
        interval: float,
        selected: str | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """Start it.

        Args:
            vendor: whose devices.
            vendors_dir: where vendors are found.
            group: the process group of the case; other groups on a device are foreign.
            devices: those whose readings are kept; None keeps all.
            path: the log that it appends to.
            interval: seconds between samples.
            selected: what --device asked of the vendor.
            environment: beside what this process has.
        """
        orders = {
            "vendor": vendor,
            "vendors_dir": str(vendors_dir),
            "group": group,
            "devices": None if devices is None else list(devices),
            "path": str(path),
            "interval": interval,
            "selected": selected,
        }
        own = {**os.environ, **(environment or {}), "PYTHONPATH": os.pathsep.join(sys.path)}
        with (path.parent / "monitor.err").open("ab") as errors, open(os.devnull, "wb") as nowhere:
            self._process = start_module(
                "proofmark.monitoring.monitor_main", (), (), nowhere.fileno(), own, errors=errors.fileno()
            )
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write((json.dumps(orders) + "\n").encode())
            self._process.stdin.flush()

    @property
    def pid(self) -> int:
        """Its process."""
        return self._process.pid

    def stop(self) -> str | None:
        """Ask it to end, then make it; what was wrong with it, or None."""
        ended_by_itself = wait_without_reaping(self._process.pid, 0.02)
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):
            self._process.stdin.close()
        answered = ended_by_itself or wait_without_reaping(self._process.pid, 5)
        end_group(self._process)
        code = self._process.returncode
        if not answered:
            return "the monitor did not answer and was killed"
        if ended_by_itself:
            return f"the monitor ended by itself with code {code}; its errors are in monitor.err"
        return f"the monitor ended with code {code}; its errors are in monitor.err" if code else None
