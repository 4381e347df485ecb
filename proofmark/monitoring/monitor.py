"""Starting and stopping a case's monitor. Whatever becomes of it, no result is lost."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

from proofmark.monitoring.watch import ENDING, REWRITTEN, Watch
from proofmark.process.child import Child


class MonitorProcess:
    """The parent's end of the monitor's process."""

    def __init__(self, watch: Watch, environment: Mapping[str, str] | None = None) -> None:
        """Start it; its errors go beside its log. `environment` is what it has beside what passes of this process's."""
        log = Path(watch.path).with_name("monitor.err")
        self._samples = Path(watch.path)
        self._told, its = os.pipe()
        os.set_blocking(self._told, False)
        try:
            self._child = Child("proofmark.monitoring.monitor_main", log=log, passed=[its], environment=environment)
        except BaseException:
            os.close(self._told)
            raise
        finally:
            os.close(its)
        self._child.say(json.dumps(asdict(watch)))

    @property
    def pid(self) -> int:
        """Its process."""
        return self._child.pid

    def count(self) -> None:
        """Ask for a reading of energy counters now, beside those that come by themselves."""
        self._child.say("")

    def stop(self, patience: float = ENDING) -> str | None:
        """Ask it to end, and make it after so many seconds; what was wrong with it, or None."""
        ended_by_itself = self._child.has_ended(within=0.02)
        answered = self._child.end(patience)
        if self._rewritten():
            return REWRITTEN
        if not answered:
            return "the monitor did not answer and was killed"
        if ended_by_itself or self._child.returncode:
            how = " by itself" if ended_by_itself else ""
            return f"the monitor ended{how} with code {self._child.returncode}; its errors are in monitor.err"
        return None

    def _rewritten(self) -> bool:
        """Whether the log begins otherwise than was told before the vendor's code ran, if anything was."""
        with os.fdopen(self._told, "rb") as pipe:
            told = pipe.read() or b""
        try:
            with self._samples.open("rb") as log:
                return log.read(len(told)) != told
        except OSError:
            return bool(told)
