"""An earlier session's training, and whether another configuration can go on from its checkpoints."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from proofmark.record.events.log import LOG_FILE, Event, read_events
from proofmark.rules.config import EffectiveConfig
from proofmark.rules.differing import differing
from proofmark.training.outcome.event_types import SESSION_EVENTS
from proofmark.training.outcome.kept import last_finished

NOT_TRAINED_BY = frozenset({"checkpoint_steps", "num_workers", "log_freq", "repeat"})
"""Settings of which no weight depends: a run may go on with others."""


def trained_by(config: EffectiveConfig) -> str:
    """A hash of all else: a run goes on from checkpoints of the same."""
    settings = {key: value for key, value in config.configurations.items() if key not in NOT_TRAINED_BY}
    return replace(config, configurations=settings).hash


def begun_otherwise(folder: Path, config: EffectiveConfig) -> str:
    """Other settings with which the run in a folder was begun, in part of a line; empty where nothing says so.

    Raises:
        OSError: its log can't be read.
    """
    begun = _begun(folder)
    return differing(begun["config"], config, NOT_TRAINED_BY) if begun else ""


def checkpoint_of(session: Path, run: Path, shared: Path | None) -> Path | None:
    """The last finished checkpoint of a run in an earlier session; where that broke off before it had one, or
    before it began the run, in the session that it went on from itself, and so on.

    Args:
        session: the earlier session's folder.
        run: the run's folder in it.
        shared: the folder of sessions' checkpoints where all hosts share one, otherwise they are in the run's.

    Raises:
        OSError: a session's log can't be read.
    """
    places = (shared / each.name / run if shared else each / run / "checkpoints" for each in went_on_from(session))
    return next(filter(None, map(last_finished, places)), None)


def went_on_from(session: Path) -> Iterator[Path]:
    """The folder of a session, of the one that it went on from, and so on: where that was, or beside it, if both were
    brought elsewhere since.

    Raises:
        OSError: a session's log can't be read.
    """
    looked = list[Path]()
    while session not in looked:
        looked.append(session)
        yield session
        begins = (_begun(log.parent) for log in sorted(session.glob(f"*/*/*/{LOG_FILE}")))
        said = next((Path(begun["resume"]) for begun in begins if begun and begun.get("resume")), session)
        session = said if said.is_dir() else session.parent / said.name


def _begun(folder: Path) -> Event | None:
    begins = (event for event in read_events(folder / LOG_FILE, SESSION_EVENTS) if event["event"] == "run_begin")
    return next(begins, None)
