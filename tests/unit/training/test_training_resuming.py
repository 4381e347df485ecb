"""What a training may go on from, by the configuration that it was begun with."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from proofmark.rules.config import EffectiveConfig
from proofmark.rules.differing import differing
from proofmark.training.resuming import NOT_TRAINED_BY, trained_by

SETTINGS = {"learning_rate": 0.1, "checkpoint_steps": 20}
CONFIG = EffectiveConfig("training", "net", "embedded", "acme", {"seed": 0}, SETTINGS)


def configured(**settings: Any) -> EffectiveConfig:
    return replace(CONFIG, configurations={**SETTINGS, **settings})


def test_how_often_checkpoints_are_written_makes_no_other_training() -> None:
    assert trained_by(configured(checkpoint_steps=None)) == trained_by(CONFIG)
    assert trained_by(configured(learning_rate=0.2)) != trained_by(CONFIG)


def test_settings_that_differ_are_named_with_both_values() -> None:
    begun = configured(learning_rate=0.2, gone=1, checkpoint_steps=None).as_dict()
    assert differing(begun, CONFIG, NOT_TRAINED_BY) == "learning_rate (0.2 there, 0.1 here), gone (1 there, None here)"
    assert differing(CONFIG.as_dict(), CONFIG) == ""
