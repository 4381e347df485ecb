"""Whether a session that went on with a search searched itself, or only judged what was searched before it."""

from __future__ import annotations

from typing import Any

from proofmark.record.events.log import Event
from proofmark.record.integrity.chain import LINK, digest_of

OF_A_MOMENT = ("time", "clock", LINK)
"""Fields of an event that two sessions under the same conditions differ in."""


def conditions_of(begin: Event) -> str:
    """A digest of all that a session's first event says: what it runs, with which code, on which machine and chip."""
    return digest_of({name: value for name, value in begin.items() if name not in OF_A_MOMENT})


class Drivers:
    """Those that a journal speaks of.

    Attributes:
        contention: what the one that searched last saw beside it, until the search's end; None where it was killed
            before.
    """

    def __init__(self) -> None:
        self._conditions = set[str | None]()
        self._searched, self._searches = 0, False
        self.contention: dict[str, Any] | None = None

    def take(self, event: Event) -> None:
        """The journal's next event."""
        kind = event["event"]
        if kind == "driver_begin":
            self._conditions.add(event.get("conditions"))
            self._searches = False
        elif kind == "trial_begin" and not self._searches:
            self._searched, self._searches, self.contention = self._searched + 1, True, None
        elif kind == "contention" and self._searches:
            self.contention = event

    def are_one(self, begin: Event) -> bool:
        """Whether one of them searched, from its beginning to its end, and all were under the conditions of the session
        that began so: what its record says of them then holds for the search."""
        whole = self._searched == 1 and self.contention is not None
        return whole and self._conditions == {conditions_of(begin)}
