"""A case's event log: the session alone writes it, and looks at what the case's process tells of."""

from __future__ import annotations

import json
from typing import Any

from proofmark.inference.outcome.event_types import CASE_EVENTS
from proofmark.process.wall_clock import now
from proofmark.record.events.log import LONGEST, Event
from proofmark.record.integrity.chain import LINK, ChainedLog

SESSIONS_OWN = frozenset(
    "run_begin launched caches validated interrupted partial stopped monitor_failed step_begin step_end".split()
)
"""Events that are the session's to tell."""

STAMPED = frozenset({"time", "clock", LINK})
"""Fields that are the log's."""


class CaseLog(ChainedLog):
    """The log of one case run."""

    def take(self, event: Event) -> Event:
        """Write down an event of the case's process, at the moment at which it is heard of.

        Raises:
            ValueError: it is none that such a process may tell of; the text is one line.
            OSError: the disk is full or gone.
        """
        fields: dict[str, Any] = {name: value for name, value in event.items() if name != "event"}
        kind = str(event.get("event"))
        if kind in SESSIONS_OWN or kind not in CASE_EVENTS.kinds:
            raise ValueError(f"{kind:.40} is not an event of a case's process")
        if stamped := sorted(STAMPED & fields.keys()):
            raise ValueError(f"{kind} with a {stamped[0]} of its own")
        line = json.dumps({"event": kind, "time": now(), "clock": 0, **fields}).encode()
        if len(line) > LONGEST:
            raise ValueError(f"{kind} of {len(line) >> 20} MiB: a line of the log has {LONGEST >> 20} at most")
        CASE_EVENTS.read(line)
        return self.write(kind, **fields)
