"""A trial's own log, read by its driver: the trial's outcome and its epochs."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from proofmark.automl.logs import held
from proofmark.automl.logs.event_types import TRIAL_EVENTS
from proofmark.automl.trial.spec import LOG
from proofmark.errors import in_a_line
from proofmark.record.events.log import CORRUPT, Event, read_events
from proofmark.record.parts import Check
from proofmark.training.logs.ranks.rank_log import ISOLATED
from proofmark.wall.isolation import Isolation, weakest


def outcome(folder: Path, asked: int, succeeded: bool, hung: str | None, ahead: float = 0.0) -> dict[str, Any]:
    """Fields of a `trial_end`, from what a trial left.

    Args:
        folder: where.
        asked: epochs that it was given.
        succeeded: whether its process did.
        hung: how it hung.
        ahead: seconds by which the monotonic clock there is ahead of this machine's.

    Raises:
        OSError: its files can't be read.
    """
    read = list(read_events(folder / LOG, TRIAL_EVENTS))
    told = list(epochs_of([event for event in read if event["event"] != CORRUPT], ahead))
    own = [*held.checks(told, asked, handed := held.handed_out(folder))]
    reason = hung or _failure(folder, succeeded, read) or _unfounded(own, handed)
    end = _came_to(read, reason, told[: asked + 1], own)
    return held.as_an_end(end | {"log_sha256": digest_of_log(folder)})


def unreadable(error: OSError) -> dict[str, Any]:
    """The same of a trial whose files can't be read: it has failed, whatever it came to."""
    return _came_to([], f"what it left cannot be read: {in_a_line(error)}", [], [])


def _came_to(
    read: Sequence[Event], reason: str | None, epochs: Sequence[Mapping[str, Any]], own: Sequence[Check]
) -> dict[str, Any]:
    events = [event for event in read if event["event"] != CORRUPT]
    last = {event["event"]: event for event in events}
    checks = [
        _only(event, ("name", "passed", "figure", "bound", "meaning")) for event in events if event["event"] == "check"
    ]
    adapted = dict.fromkeys(step for event in events if event["event"] == "adapted" for step in event["steps"])
    data = [event for event in events if event["event"] == "data"]  # said once, before there is a vendor's code
    isolation = weakest(Isolation.model_validate(event["isolation"]) for event in events if event["event"] == ISOLATED)
    chosen = last.get("chosen", {})
    energy = last.get("energy", {"joules": None, "reason": "the trial left no reading"})
    return {
        "status": "failed" if reason else "finished",
        "reason": reason,
        "accuracy": None if reason else chosen.get("metric"),
        "best_epoch": chosen.get("epoch"),
        "stopped_early": last.get("stopped_early", {}).get("reason"),
        "epochs": list(epochs),
        "counted": _only(last.get("counted"), ("forward", "training")),
        "dtypes": last.get("computed", {}).get("dtypes", []),
        "adapted": list(adapted),
        "checks": [*checks, *map(asdict, own)],
        "isolation": isolation.model_dump(mode="json") if isolation else None,
        "energy": {key: energy.get(key) for key in ("joules", "reason", "method")},
        "host": next((event.get("host") for event in events if event["event"] == "trial_begin"), None),
        "log_sha256": None,
        "data": _only(data[0], ("train", "evaluated")) if len(data) == 1 else None,
        "train_seconds": max((event.get("train_seconds", 0.0) for event in events), default=0.0),
    }


def digest_of_log(folder: Path) -> str | None:
    """SHA-256 of a trial's own log, None where there is none.

    Raises:
        OSError: it can't be read.
    """
    try:
        with (folder / LOG).open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except FileNotFoundError:
        return None


def epochs_of(events: Sequence[Event], ahead: float) -> Iterator[dict[str, Any]]:
    """Each evaluation, by this machine's clock, with what was trained on since the one before."""
    samples, seconds, loss = 0, 0.0, None
    for event in events:
        if event["event"] == "steps":
            loss = event["losses"][-1]
        elif event["event"] == "evaluation":
            yield {
                "clock": max(0, event["clock"] - round(ahead * 1e9)),
                "images": event["samples"] - samples,
                "evaluated": int(event.get("samples_evaluated", 0)),
                "accuracy": event["metric"],
                "loss": loss,
                "seconds": _took(event, seconds),
            }
            samples, seconds = event["samples"], event["train_seconds"]


def _took(event: Event, before: float) -> float:
    """Seconds of a training up to an evaluation, since the one `before`; the first one is no part of its time."""
    if not event["samples"]:
        return float(event.get("took_seconds", 0.0))
    return max(0.0, float(event["train_seconds"]) - before)


def events_of(folder: Path) -> Iterator[Event]:
    """The whole events of a trial's own log."""
    return (event for event in read_events(folder / LOG, TRIAL_EVENTS) if event["event"] != CORRUPT)


def _failure(folder: Path, succeeded: bool, read: Sequence[Event]) -> str | None:
    """Why a trial counts for nothing, None for one that does."""
    last = {event["event"]: event for event in read}
    damaged = [event["what"] for event in read if event["event"] == CORRUPT]
    failed = [event for event in read if event["event"] == "trial_failed"]
    if failed:  # of several processes the first one has the cause; what runs them knows which one was killed
        first = next((event for event in failed if "rank" not in event), failed[0])
        return f"rank {first['rank']}: {first['reason']}" if "rank" in first else str(first["reason"])
    if damaged:
        return f"its log is damaged: {damaged[0]}"
    if not succeeded or "trial_end" not in last:
        said = _last_words(folder)
        return f"its process died{f': {said}' if said else ' without a word: it was killed, or crashed'}"
    if "dishonest" in last:
        wrong = [event["meaning"] for event in read if event["event"] == "check" and not event["passed"]]
        return f"it was not the case's network that was trained: {'; '.join(wrong)}"
    return None if last.get("chosen", {}).get("metric") is not None else "no evaluation gave a number"


def _unfounded(checks: Sequence[Check], handed: Event | None) -> str | None:
    """Why what it tells of counts for nothing, though it came to its end."""
    if handed is None:
        return "nobody says how many images it was handed"
    return next((check.meaning for check in checks if not check.passed), None)


def _last_words(folder: Path) -> str:
    try:
        lines = (folder / "agent.log").read_text(encoding="utf-8", errors="replace").split("\n")
    except OSError:
        return ""
    said = [line.strip() for line in lines if line.strip()]
    return "".join(c if c.isprintable() else "?" for c in said[-1])[:300] if said else ""


def _only(event: dict[str, Any] | None, names: Sequence[str]) -> dict[str, Any] | None:
    return {name: event[name] for name in names} if event is not None else None
