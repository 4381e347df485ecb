"""What a training may go on from, by the configuration that it was begun with."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from proofmark.rules.config import EffectiveConfig
from proofmark.rules.differing import differing
from proofmark.training.resuming import NOT_TRAINED_BY, trained_by

SETTINGS = {"learning_rate": 0.1, "checkpoint_steps": 20, "num_workers": 16}
CONFIG = EffectiveConfig("training", "net", "embedded", "acme", {"seed": 0}, SETTINGS)


def configured(**settings: Any) -> EffectiveConfig:
    return replace(CONFIG, configurations={**SETTINGS, **settings})


@pytest.mark.parametrize("key", ["checkpoint_steps", "num_workers", "log_freq", "repeat"])
def test_what_no_weight_depends_on_makes_no_other_training(key: str) -> None:
    """A training that hung with too many loaders goes on with fewer."""
    assert trained_by(configured(**{key: 7})) == trained_by(CONFIG)
    assert not differing(configured(**{key: 7}).as_dict(), CONFIG, NOT_TRAINED_BY)
    assert trained_by(configured(learning_rate=0.2)) != trained_by(CONFIG)


def test_settings_that_differ_are_named_with_both_values() -> None:
    begun = configured(learning_rate=0.2, gone=1, checkpoint_steps=None).as_dict()
    assert differing(begun, CONFIG, NOT_TRAINED_BY) == "learning_rate (0.2 there, 0.1 here), gone (1 there, None here)"
    assert differing(CONFIG.as_dict(), CONFIG) == ""
