"""What a trial's ranks tell, held to what they were given: epochs by the driver, images by who loads them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from proofmark.automl.logs.event_types import HANDED_EVENTS, Outcome
from proofmark.automl.trial.spec import HANDED_OUT
from proofmark.plain_json import first_of
from proofmark.record.events.log import LONGEST, Event, read_events
from proofmark.record.parts import Check
from proofmark.training.outcome.checks import DEVIATIONS, metric_bound

EVALUATIONS = "evaluated as often as it may be"
TRAINED = "trains on what it is handed"
EVALUATED = "evaluated on what it is handed"
CHOSEN = "as good as it was chosen for"

_OUTCOME = TypeAdapter(Outcome).validator

MOST = LONGEST // 2
"""Bytes of what a trial may come to in a search's journal, whose own reader takes twice as many in a line."""


def handed_out(folder: Path) -> Event | None:
    """What a trial's ranks were handed; None where its process was ended before it could tell."""
    events = [event for event in read_events(folder / HANDED_OUT, HANDED_EVENTS) if event["event"] == "handed_out"]
    return events[-1] if events else None


def checks(told: Sequence[Mapping[str, Any]], asked: int, handed: Event | None) -> Iterator[Check]:
    """Hold the evaluations that ranks tell of, and the images of each, to what they were given."""
    yield _no_more(EVALUATIONS, len(told), asked + 1, "evaluations, of which there may be")
    if handed is not None:
        trained, evaluated = (sum(epoch[what] for epoch in told) for what in ("images", "evaluated"))
        yield _no_more(TRAINED, trained, handed["trained"], "images to train on, and was handed")
        yield _no_more(EVALUATED, evaluated, handed["evaluated"], "images to be evaluated on, and was handed")


def _no_more(name: str, said: int, given: int, what: str) -> Check:
    return Check(name, said <= given, float(said), float(given), f"it tells of {said} {what} {given}")


def as_an_end(end: dict[str, Any]) -> dict[str, Any]:
    """Fields of a `trial_end` that the journal has room for, and its reader takes: others' code said most of them."""
    if (reason := _too_long(end) or _unfit(end)) is None:
        return end
    kept = [check for check in end["checks"] if check["name"] in (EVALUATIONS, TRAINED, EVALUATED)]
    energy = {"joules": None, "reason": reason}
    nothing = dict.fromkeys(("accuracy", "stopped_early", "isolation", "host"))
    lists = {"epochs": [], "dtypes": [], "adapted": [], "checks": kept}
    return {**end, **nothing, **lists, "status": "failed", "reason": reason, "energy": energy}


def _too_long(end: Mapping[str, Any]) -> str | None:
    said = len(json.dumps(end))
    return f"what came of it would be {said} bytes in the journal, of which {MOST} may be" if said > MOST else None


def _unfit(end: Mapping[str, Any]) -> str | None:
    try:
        _OUTCOME.validate_python(end)
    except ValidationError as error:
        return f"what it tells can't be: {first_of(error)}"
    return None


def as_good_as_told(metric: str, claimed: float, found: Mapping[str, Any], precision: str) -> Check:
    """Hold what a trial was chosen by to the same weights' metric on the same data, in a process without a vendor's
    code. To be better than one says gains nothing.

    Args:
        metric: its name.
        claimed: by the trial.
        found: `accuracy` of so many `images`, and `of_all`, how many there are.
        precision: that of the trial.
    """
    value, images = found["accuracy"], found["images"]
    error = (max(value * (1 - value), 0.0) / images) ** 0.5 if images < found["of_all"] else 0.0
    bound = metric_bound(value, images, images, precision) + DEVIATIONS * error
    what = f"its {metric} is said to be {claimed:.5g}; its weights have {value:.5g} in a process without vendor's code"
    return Check(CHOSEN, claimed - value <= bound, max(0.0, claimed - value), bound, what)
