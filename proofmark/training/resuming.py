"""An earlier session's training, and whether another configuration can go on from its checkpoints."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from proofmark.record.events.log import LOG_FILE, read_events
from proofmark.rules.config import EffectiveConfig
from proofmark.rules.differing import differing
from proofmark.training.outcome.event_types import SESSION_EVENTS

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
    begins = (event for event in read_events(folder / LOG_FILE, SESSION_EVENTS) if event["event"] == "run_begin")
    begun = next(begins, None)
    return differing(begun["config"], config, NOT_TRAINED_BY) if begun else ""
