"""Following a rank's event log that is being written."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from proofmark.record.events import tail
from proofmark.record.events.log import Event
from proofmark.training.outcome.rank_event_types import RANK_EVENTS


class Tail(tail.Tail):
    """Yields each event once, as it comes."""

    def events(self, *kinds: str) -> Iterator[Event]:
        """Events of the lines written since the last call. With `kinds` only events of those; other lines are skipped
        without being parsed."""
        named = [kind.encode() for kind in kinds]
        for line in self.lines():
            if named and not any(kind in line for kind in named):
                continue
            with contextlib.suppress(ValueError):  # the record will say which line is damaged
                event = RANK_EVENTS.read(line)
                if not kinds or event["event"] in kinds:
                    yield event
