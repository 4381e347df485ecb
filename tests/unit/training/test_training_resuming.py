"""What a training may go on from, by the configuration that it was begun with."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from proofmark.folders import RANKS_WRITE
from proofmark.record.events.log import LOG_FILE, EventLog
from proofmark.rules.config import EffectiveConfig
from proofmark.rules.differing import differing
from proofmark.rules.scale import Scale
from proofmark.training.resuming import NOT_TRAINED_BY, checkpoint_of, trained_by
from proofmark.training.run import ScaleRun, TrainingOptions
from suites.training.runs import OPTIONS, _refuse_nothing_to_resume
from tests.fuzz.samples import SESSION

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


RUN = Path("training/net/1x2")


@pytest.mark.parametrize("shares", [False, True])
def test_a_run_that_broke_off_before_a_checkpoint_of_its_own_leads_to_the_one_it_went_on_from(
    tmp_path: Path, shares: bool
) -> None:
    """Of a run that it never began too."""
    first, second, third = (tmp_path / "results" / name for name in ("first", "second", "third"))
    shared = tmp_path / "shared" if shares else None
    begins(first, None)
    begins(second, first)
    begins(third, second)
    kept = [written(first, shared, number, 3000) for number in (1, 2)]
    assert [checkpoint_of(third, RUN / f"round{number}", shared) for number in (1, 2, 3)] == [*kept, None]
    later = written(second, shared, 1, 3100)
    assert checkpoint_of(third, RUN / "round1", shared) == checkpoint_of(second, RUN / "round1", shared) == later
    assert checkpoint_of(first, RUN / "round1", shared) == kept[0]


@pytest.mark.parametrize("shares", [False, True])
def test_a_session_that_broke_off_before_a_run_leads_to_the_one_it_went_on_from(tmp_path: Path, shares: bool) -> None:
    """Wherever both were brought since."""
    first, second = (tmp_path / "before" / name for name in ("first", "second"))
    shared, other = tmp_path / "shared" if shares else None, RUN.with_name("1x4")
    begins(first, None)
    begins(second, first)
    kept = written(first, shared, 1, 3000, other)
    second = first.parent.rename(tmp_path / "results") / "second"
    kept = kept if shares else tmp_path / "results" / kept.relative_to(tmp_path / "before")
    assert checkpoint_of(second, other / "round1", shared) == kept
    options = TrainingOptions(resume=second, checkpoints=shared)
    config: Any = SimpleNamespace(stash={OPTIONS: options}, option=SimpleNamespace(resume="results/second"))
    _refuse_nothing_to_resume(config)


def test_a_session_that_would_have_gone_on_from_itself_is_looked_at_once(tmp_path: Path) -> None:
    begins(tmp_path, tmp_path)
    assert checkpoint_of(tmp_path, RUN / "round1", None) is None


@pytest.mark.parametrize("shares", [False, True])
def test_a_folder_of_shared_checkpoints_says_what_it_is_above_what_ranks_may_write(
    tmp_path: Path, shares: bool
) -> None:
    """Not by the session, whose user may be another than the hosts': they couldn't write into a folder of its."""
    training: Any = object.__new__(ScaleRun)
    training._options = TrainingOptions(checkpoints=tmp_path / "shared" if shares else None)
    vendor = SimpleNamespace(distributed_backend="gloo")
    training._found = SimpleNamespace(name="acme", vendors_dir="vendors", vendor=vendor)
    training._case, training._scale, training.config = ("m", "C"), Scale.parse(RUN.name), CONFIG
    spec = training._spec(tmp_path / "one" / RUN / "round1", 1)
    assert not [*tmp_path.iterdir()]
    for _ in range(2):
        assert spec.made_checkpoint_directory().is_dir()
    assert [*tmp_path.rglob(RANKS_WRITE)] == ([tmp_path / "shared/one" / RANKS_WRITE] if shares else [])


def begins(session: Path, earlier: Path | None) -> None:
    """What a session that goes on from an earlier one writes first."""
    training: Any = object.__new__(ScaleRun)
    training._found = SimpleNamespace(vendor=SimpleNamespace(torch_device=lambda: "cpu"))
    training._scale, training._options = Scale.parse(RUN.name), TrainingOptions(resume=earlier)
    (session / RUN).mkdir(parents=True)
    log = EventLog(session / RUN / LOG_FILE)
    log.write("run_begin", **dict(SESSION)["run_begin"] | training._facts())
    log.close()


def written(session: Path, shared: Path | None, number: int, step: int, run: Path = RUN) -> Path:
    """A checkpoint of one of a session's runs."""
    place = shared / session.name if shared else session
    folder = place / run / f"round{number}" / ("" if shared else "checkpoints") / f"step-{step:09d}"
    folder.mkdir(parents=True)
    return folder
