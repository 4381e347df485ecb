"""Following a rank's event log that is being written."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from proofmark.record import tail
from proofmark.record.events import Event
from proofmark.training.event_types import RANK_EVENTS


class Tail(tail.Tail):
    """Yields each event once, as it comes."""

    def events(self) -> Iterator[Event]:
        """Those of the lines written since the last call."""
        for line in self.lines():
            with contextlib.suppress(ValueError):  # the record will say which line is damaged
                yield RANK_EVENTS.read(line)
