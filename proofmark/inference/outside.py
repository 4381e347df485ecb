"""Timed rounds by the session's clock, which no code of a vendor's reaches: what the case's process says must fit.

The session hears when a round begins and when it is over. It may hear late where the machine is busy, so a target is
held by the round in which it fits best: a clock that runs slow does so in all of them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from proofmark.record.events.log import Event
from proofmark.record.parts import Check

Round = tuple[str | int, int, int]
"""Of what, its number, and of which attempt at measuring."""

Clocks = defaultdict[Round, list[int]]

LONGER, GRACE = 1.1, 0.25
"""By how much a round may take longer outside, as a factor, and in seconds: for the way of what is told."""


def timed_outside(begun: Sequence[Event], ended: Sequence[Event], rounds: Sequence[Event]) -> Iterator[Check]:
    """A check of each target whose rounds were heard to begin and to end.

    Args:
        begun: `round_begin` events.
        ended: `round_end` events.
        rounds: `round` events.
    """
    begins, ends = _clocks(begun), _clocks(ended)
    for of in dict.fromkeys(event["of"] for event in rounds):
        ratios = [
            max(0.0, seconds - GRACE) / max(_inside(event), 1e-9)
            for event in rounds
            if event["of"] == of and (seconds := _seconds(begins, ends, event)) is not None
        ]
        if ratios:
            name = "keeps the session's time" + ("" if of == "engine" else f" ({of})")
            meaning = "its rounds took longer by the session's clock than by that of the case's process"
            yield Check(name, min(ratios) <= LONGER, min(ratios), LONGER, meaning)


def _inside(event: Event) -> float:
    """What it took by the case's process, the referee's own work, which isn't in its whole, among it."""
    return float(event["whole_ns"] + event.get("spent_ns", 0)) / 1e9


def _seconds(begins: Clocks, ends: Clocks, event: Event) -> float | None:
    """From when the session heard that a round begins to when it heard that it was over."""
    end = _last(ends, event, event["clock"])
    begin = None if end is None else _last(begins, event, end)
    return None if end is None or begin is None else (end - begin) / 1e9


def _clocks(heard: Sequence[Event]) -> Clocks:
    """When something was heard of each round."""
    clocks: Clocks = defaultdict(list)
    for event in heard:
        clocks[_round(event)].append(event["clock"])
    return clocks


def _last(heard: Clocks, event: Event, until: int) -> int | None:
    """The clock of the last that was heard of the same round up to a moment: one that was too short is run again."""
    return max((clock for clock in heard[_round(event)] if clock <= until), default=None)


def _round(event: Event) -> Round:
    return event.get("of", 0), event.get("number", 0), event.get("attempt", 0)
