"""Following an event log that is being written."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from proofmark.record.events import LONGEST, Event
from proofmark.training.event_types import RANK_EVENTS


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
            while line := stream.readline(LONGEST):
                if len(line) < LONGEST and not line.endswith(b"\n"):
                    return
                self._position += len(line)
                with contextlib.suppress(ValueError):  # the record will say which line is damaged
                    yield RANK_EVENTS.read(line)
