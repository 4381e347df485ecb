"""What a training may go on from, by the configuration that it was begun with."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from proofmark.rules.config import EffectiveConfig
from proofmark.rules.differing import differing
from proofmark.training.resuming import NOT_TRAINED_BY, trained_by
from proofmark.training.run import TrainingOptions
from suites.training.runs import OPTIONS, _refuse_nothing_to_resume

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


@pytest.mark.parametrize("shares", [False, True])
def test_a_session_that_has_no_checkpoints_is_refused_wherever_they_would_be(tmp_path: Path, shares: bool) -> None:
    results, shared = tmp_path / "results", tmp_path / "shared"
    kept = shared / "one/training/net/2x8/round1" if shares else results / "one/training/net/2x8/round1/checkpoints"
    kept.mkdir(parents=True)
    for name, refused in (("one", False), ("0ne", True)):
        options = TrainingOptions(resume=results / name, checkpoints=shared if shares else None)
        config: Any = SimpleNamespace(stash={OPTIONS: options}, option=SimpleNamespace(resume=f"results/{name}"))
        if not refused:
            _refuse_nothing_to_resume(config)
            continue
        where = f" in {shared / name}" if shares else ""
        with pytest.raises(pytest.UsageError) as told:
            _refuse_nothing_to_resume(config)
        expected = f"there are no checkpoints{where}; expected a session's folder under results"
        assert str(told.value) == f"--resume results/0ne: {expected}"
