"""Going on from a checkpoint: the same losses and weights, or one line that says why not."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.e2e.conftest import House, Ran, one_line_answer

CHECKPOINTED = "--vendor cpu --set checkpoint_steps=10 --set num_workers=1 --set learning_rate=0.002".split()
"""A training that takes some epochs."""


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory, trained: Path) -> Ran:
    """An unbroken training at 1x1."""
    house = House(tmp_path_factory.mktemp("finished") / "house", trained)
    ran = house.end(house.start(*CHECKPOINTED, "-k", "1x1", suite="training"))
    assert ran.training("1x1").runs[0].checkpoints, ran.output
    assert house.becomes_empty()
    return ran


@pytest.mark.parametrize("scale", ["1x1", "1x2"])
def test_resumes_to_the_very_same_weights(house: House, finished: Ran, scale: str) -> None:
    whole = finished if scale == "1x1" else house.end(house.start(*CHECKPOINTED, "-k", scale, suite="training"))
    killed = house.start(*CHECKPOINTED, "-k", scale, suite="training", trouble="tiny.rank0.step35=sleep")
    house.wait_for_trouble(killed)
    killed.kill()
    broken = house.end(killed)
    assert house.becomes_empty()
    assert whole.run_dir != broken.run_dir
    house.mark.unlink()
    again = house.end(house.start(*CHECKPOINTED, "-k", scale, "--resume", str(broken.run_dir), suite="training"))
    assert again.code == whole.code, again.output
    one, other = whole.training(scale).runs[0], again.training(scale).runs[0]
    # the one of step 30 may still have been under way
    assert other.resumed_from in (20, 30) and again.training(scale).resumed
    assert [e.metric for e in other.evaluations][1:] == [e.metric for e in one.evaluations][
        -len(other.evaluations) + 1 :
    ]
    assert dict(one.losses) | dict(other.losses) == dict(one.losses), "the same losses from the same samples"
    assert one.metric == other.metric and one.samples == other.samples


@pytest.mark.parametrize("damage", ["cut", "foreign"])
def test_a_corrupt_checkpoint_is_refused(house: House, finished: Ran, tmp_path: Path, damage: str) -> None:
    run_dir = Path(shutil.copytree(finished.run_dir, tmp_path / "finished"))
    (newest, *_) = sorted((run_dir / "training/tiny/1x1/round1/checkpoints").iterdir(), reverse=True)
    if damage == "cut":
        shard = next(newest.glob("*.safetensors"))
        shard.write_bytes(shard.read_bytes()[:-1])
    else:
        shutil.copy(newest / "progress.json", newest / "extra.json")
    again = house.end(house.start(*CHECKPOINTED, "-k", "1x1", "--resume", str(run_dir), suite="training"))
    record = again.training("1x1")
    assert again.code == 17, again.output
    assert record.verdict is not None and f"checkpoint {newest.name} is corrupt" in record.verdict.reasons[0]
    assert "Traceback" not in again.output


def test_a_checkpoint_of_other_data_is_refused(house: House, finished: Ran) -> None:
    resumed = (*CHECKPOINTED, "-k", "1x1", "--resume", str(finished.run_dir))
    again = house.end(house.start(*resumed, suite="training", trouble="tiny.train_data=other"))
    record = again.training("1x1")
    assert again.code == 17 and record.verdict is not None, again.output
    assert "is of another run: train data is" in record.verdict.reasons[0]
    assert "config" not in record.verdict.reasons[0] and "validation" not in record.verdict.reasons[0]


def test_a_training_begun_with_other_settings_is_refused_by_their_names(house: House, finished: Ran) -> None:
    asked = ("--set", "learning_rate=0.003", "--set", "num_workers=1", "-k", "1x1", "--resume", str(finished.run_dir))
    ran = house.run(*asked, vendor="cpu", suite="training")
    expected = (
        "training/tiny/1x1 was started with another configuration: learning_rate (0.002 there, 0.003 here); repeat"
    )
    one_line_answer(ran, f"--resume {finished.run_dir}: {expected}")
    (advice,) = [line for line in finished.output.splitlines() if line.startswith("to resume: ")]
    assert "--set learning_rate=0.002" in advice and advice.endswith(f"--resume results/{finished.run_dir.name}")


def test_one_may_go_on_without_further_checkpoints(house: House, finished: Ran) -> None:
    asked = " ".join(CHECKPOINTED).replace("--set checkpoint_steps=10", "").split()
    again = house.end(house.start(*asked, "-k", "1x1", "--resume", str(finished.run_dir), suite="training"))
    run = again.training("1x1").runs[0]
    assert again.code == finished.code and run.resumed_from is not None and not run.checkpoints, again.output


def test_nothing_to_resume_is_one_line(house: House) -> None:
    ran = house.run("--resume", "nowhere", vendor="cpu", suite="training")
    assert ran.code == 4 and "--resume nowhere: there are no checkpoints" in ran.output
    assert not [line for line in ran.output.splitlines() if "Traceback" in line]


def test_a_scale_that_is_none_is_told_with_its_option(house: House) -> None:
    ran = house.run("--scale", "1x", vendor="cpu", suite="training")
    assert ran.code == 4 and "--scale: '1x' is not a scale: expected <nodes>x<processes>" in ran.output


@pytest.mark.parametrize(
    "option, suite, other",
    [
        ("--resume results/none", "inference", "training"),
        ("--scale 1x2", "inference", "training"),
        ("--scenario latency", "training", "inference"),
    ],
)
def test_an_option_that_means_nothing_for_the_selected_cases_is_refused(
    house: House, option: str, suite: str, other: str
) -> None:
    expected = f"{option}: has no effect on cases of {suite}; it is for cases of {other}"
    one_line_answer(house.run(*option.split(), suite=suite), expected)
