"""An earlier session's search: where it lies, and whether it can be gone on with. Nothing is written here."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from proofmark.automl.logs.event_types import SESSION_EVENTS, gave_up
from proofmark.automl.outcome.collect import FOLDER
from proofmark.automl.outcome.record import AutoMLRecord
from proofmark.automl.search.journal import FILE, LOCK, Chain, hold, read_journal
from proofmark.errors import UsageError, harmless
from proofmark.record.events.log import LOG_FILE, Event, read_events
from proofmark.rules.config import EffectiveConfig
from proofmark.rules.differing import differing


def search_of(session: Path, case: str) -> Path | None:
    """Where the search lies that a session began, or went on with; None if there is none.

    Args:
        case: its suite's and its own name.
    """
    folders = [Path(event["folder"]) for event in _events(session, case) if event["event"] == "search"]
    found = [folder for folder in [session / case / FOLDER, *folders] if (folder / FILE).is_file()]
    return found[0] if found else None


def to_be_resumed(session: Path, case: str, config: EffectiveConfig) -> Path:
    """The search's folder, if a session of this configuration has something to do there.

    Raises:
        UsageError: there is no search, another driver has it, its journal was edited, it was begun with another
            configuration, or it has ended and its session has its record; in a line.
    """
    folder = search_of(session, case)
    if folder is None:
        raise UsageError(f"there is no search of {case} there; expected a session's folder under results")
    _try_to_hold(folder)
    best: tuple[float, int] | None = None
    chain, last, hashes, begun = Chain(), dict[str, Event](), list[str](), set[int]()
    for event in read_journal(folder / FILE):
        chain.take(event)
        last[event["event"]] = event
        if event["event"] == "trial_end" and event["status"] == "finished":
            rank = event["accuracy"] or 0.0, -event["trial"]
            best = max(best or rank, rank)
        begun |= {event["trial"]} if event["event"] == "trial_begin" else set()
        if event["event"] == "driver_begin":
            last.pop("search_end", None)
            hashes.append(event["config_hash"])
    if chain.faults:
        raise UsageError(harmless(f"{folder / FILE}: {chain.faults[0]}: a search cannot be resumed from it"))
    if (missing := next(number for number in range(len(begun) + 1) if number not in begun)) < len(begun):
        # who goes on numbers the next one by how many there are, and would wait for it for ever
        raise UsageError(f"{folder / FILE}: trial {missing} has no beginning: a search cannot be resumed from it")
    own = {event["event"]: event for event in _events(session, case)}
    if hashes and hashes[0] != config.hash:
        raise UsageError(harmless(other_configuration(own.get("run_begin", {}).get("config"), config)))
    examined = last.get("examined", {})
    judged = best is None or (examined.get("accuracy") is not None and examined["trial"] == -best[1])
    if "search_end" in last and not gave_up(last["search_end"]["reason"]) and judged and "run_end" in own:
        what = "no trial came to a good end" if best is None else "its best network is judged"
        raise UsageError(f"the search there has ended, and {what}: there is nothing to resume")
    return folder


def may_go_on(record: AutoMLRecord) -> bool:
    """Whether a session's record says that there is something to do for another one; see `to_be_resumed`."""
    best = record.best
    judged = best is None or (record.held_out_accuracy is not None and record.examined == best.number)
    over = record.ended and not gave_up(record.end_reason) and judged
    return not over and not record.faults


def other_configuration(begun: Mapping[str, Any] | None, config: EffectiveConfig) -> str:
    """Why a search does not go on with a configuration that it was not `begun` with, where that is known at all."""
    named = differing(begun, config) if begun else ""
    what = f"another configuration{': ' if named else ''}{named}"
    return f"the search there has {what}; repeat its options, or start another search"


def _events(session: Path, case: str) -> Iterator[Event]:
    return read_events(session / case / LOG_FILE, SESSION_EVENTS)


def _try_to_hold(folder: Path) -> None:
    """See that no driver has it, and let go of it."""
    try:
        lock = os.open(folder / LOCK, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        hold(lock, folder)
        fcntl.flock(lock, fcntl.LOCK_UN)
    finally:
        os.close(lock)
