"""Timed rounds by the session's clock, which no code of a vendor's reaches: what the case's process says must fit.

The session hears when a round begins and when it is over. It may hear late where the machine is busy, so a target is
held by the round in which it fits best: a clock that runs slow does so in all of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from proofmark.record.events import Event
from proofmark.record.parts import Check

LONGER, GRACE = 1.1, 0.25
"""By how much a round may take longer outside, as a factor, and in seconds: for the way of what is told."""


def timed_outside(begun: Sequence[Event], ended: Sequence[Event], rounds: Sequence[Event]) -> Iterator[Check]:
    """A check of each target whose rounds were heard to begin and to end.

    Args:
        begun: `round_begin` events.
        ended: `round_end` events.
        rounds: `round` events.
    """
    for of in dict.fromkeys(event["of"] for event in rounds):
        ratios = [
            max(0.0, seconds - GRACE) / max(_inside(event), 1e-9)
            for event in rounds
            if event["of"] == of and (seconds := _seconds(begun, ended, event)) is not None
        ]
        if ratios:
            name = "keeps the session's time" + ("" if of == "engine" else f" ({of})")
            meaning = "its rounds took longer by the session's clock than by that of the case's process"
            yield Check(name, min(ratios) <= LONGER, min(ratios), LONGER, meaning)


def _inside(event: Event) -> float:
    """What it took by the case's process, the referee's own work, which isn't in its whole, among it."""
    return float(event["whole_ns"] + event.get("spent_ns", 0)) / 1e9


def _seconds(begun: Sequence[Event], ended: Sequence[Event], event: Event) -> float | None:
    """From when the session heard that a round begins to when it heard that it was over."""
    end = _last(ended, event, event["clock"])
    begin = None if end is None else _last(begun, event, end)
    return None if end is None or begin is None else (end - begin) / 1e9


def _last(heard: Sequence[Event], event: Event, until: int) -> int | None:
    """The clock of the last that was heard of the same round up to a moment: one that was too short is run again."""
    same = (each for each in heard if all(each.get(key, 0) == event.get(key, 0) for key in ("of", "number", "attempt")))
    return max((each["clock"] for each in same if each["clock"] <= until), default=None)
