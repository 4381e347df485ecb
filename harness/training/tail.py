"""Following an event log that is being written."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from harness.events import Event


class Tail:
    """Yields each event once, as it comes."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._position = 0

    def events(self) -> Iterator[Event]:
        """Whole lines written since the last call."""
        if not self._path.exists():
            return
        with self._path.open("rb") as stream:
            stream.seek(self._position)
            for line in stream:
                if not line.endswith(b"\n"):
                    return
                self._position += len(line)
                try:
                    event = json.loads(line)
                except ValueError:
                    continue
                if isinstance(event, dict) and "event" in event:
                    yield event
