"""The log of who ends others: a full disk keeps nobody from that."""

from __future__ import annotations

import contextlib
import threading
from pathlib import Path

from proofmark.record.events.log import EventLog


class AgentLog(EventLog):
    """Keeps what a full disk does not take until there is room; the rest of a line that it took in part, too."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._waiting, self._lock = b"", threading.Lock()

    def finish(self) -> None:
        """Write down what waits.

        Raises:
            OSError: there is still no room.
        """
        with self._lock:
            while self._waiting:
                self._waiting = self._waiting[self._stream.write(self._waiting) :]

    def _put(self, line: bytes) -> None:
        with self._lock:
            self._waiting += line
        with contextlib.suppress(OSError):
            self.finish()
