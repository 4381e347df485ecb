"""Starting and stopping a case's monitor. Whatever becomes of it, no result is lost."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from pathlib import Path

from proofmark.process.child import Child


class MonitorProcess:
    """The parent's end of the monitor's process."""

    def __init__(
        self,
        vendor: str,
        vendors_dir: Path,
        group: int,
        devices: Collection[int] | int | None,
        path: Path,
        interval: float,
        selected: str | None = None,
        environment: Mapping[str, str] | None = None,
        wall: bool = True,
        container: str | None = None,
    ) -> None:
        """Start it.

        Args:
            vendor: whose devices.
            vendors_dir: where vendors are found.
            group: the process group of the case; other groups on a device are foreign.
            devices: those whose readings are kept, or how many of those that the vendor finds usable; None keeps all.
            path: the log that it appends to.
            interval: seconds between samples.
            selected: what --device asked of the vendor.
            environment: beside what passes of this process's.
            wall: whether it puts one on.
            container: how the names of those begin that the case's engines are in, which is the case's secret.
        """
        orders = {
            "vendor": vendor,
            "vendors_dir": str(vendors_dir),
            "group": group,
            "devices": devices if devices is None or isinstance(devices, int) else list(devices),
            "path": str(path),
            "interval": interval,
            "selected": selected,
            "wall": wall,
            "container": container,
        }
        log = path.parent / "monitor.err"
        self._child = Child("proofmark.monitoring.monitor_main", log=log, environment=environment)
        self._child.say(json.dumps(orders))

    @property
    def pid(self) -> int:
        """Its process."""
        return self._child.pid

    def stop(self) -> str | None:
        """Ask it to end, then make it; what was wrong with it, or None."""
        ended_by_itself = self._child.has_ended(within=0.02)
        answered = self._child.end(patience=5)
        if not answered:
            return "the monitor did not answer and was killed"
        if ended_by_itself or self._child.returncode:
            how = " by itself" if ended_by_itself else ""
            return f"the monitor ended{how} with code {self._child.returncode}; its errors are in monitor.err"
        return None
