"""An earlier session's training, and whether another configuration can go on from its checkpoints."""

from __future__ import annotations

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
    """The last finished checkpoint of a run in an earlier session; where that broke off before it had one, in the
    session that it went on from itself, and so on.

    Args:
        session: the earlier session's folder.
        run: the run's folder in it.
        shared: the folder of sessions' checkpoints where all hosts share one, otherwise they are in the run's.

    Raises:
        OSError: a session's log can't be read.
    """
    looked = list[Path]()
    while session not in looked:
        looked.append(session)
        found = last_finished(shared / session.name / run if shared else session / run / "checkpoints")
        if found is not None:
            return found
        begun = _begun(session / run.parent)
        session = Path(begun.get("resume") or session) if begun else session
    return None


def _begun(folder: Path) -> Event | None:
    begins = (event for event in read_events(folder / LOG_FILE, SESSION_EVENTS) if event["event"] == "run_begin")
    return next(begins, None)
