"""What the file of a search may ask for; what else it does is refused in a line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import TypeAdapter

from proofmark.automl.search.settings import around
from proofmark.automl.trial.spec import Begin
from proofmark.errors import ConfigurationError
from proofmark.record.events.types import Positive
from proofmark.rules.case_file import load_case_file
from suites.automl import test_image_search
from suites.automl.contract import AutoMLContract

CASE = Path(test_image_search.__file__).with_name("image_search.yaml")


@pytest.mark.parametrize("instead", [True, False])
def test_several_values_are_refused(tmp_path: Path, instead: bool) -> None:
    """Whether they stand beside the one value or in its place."""
    case = yaml.safe_load(CASE.read_text(encoding="utf-8"))
    task = case["profiles"]["embedded"]["parameters"]
    task["metrics"] = {"top1": {"target": 0.9}, "top5": {}}
    if instead:
        del task["target"]
    what = "`metrics`: a search is scored by one value; give it as `metric` and `target`"
    assert refusal(tmp_path, case) == f"parameters: {what}"


@pytest.mark.parametrize(("name", "value"), [("kernel_size", 7), ("dropout", 0.5)])
def test_what_a_search_begins_with_is_what_the_study_may_choose(tmp_path: Path, name: str, value: float) -> None:
    case = yaml.safe_load(CASE.read_text(encoding="utf-8"))
    case["profiles"]["embedded"]["parameters"][name] = value
    what = "hyperparameters: expected kernel_size and dropout, as they are at first, among theirs"
    assert refusal(tmp_path, case) == f"parameters: {what}"


def refusal(folder: Path, case: dict[str, Any]) -> str:
    """The one problem of a case's file."""
    path = folder / CASE.name
    path.write_text(yaml.safe_dump(case), encoding="utf-8")
    with pytest.raises(ConfigurationError) as refused:
        load_case_file(path, "automl", "embedded", AutoMLContract.common_file, AutoMLContract.parameters_type)
    (problem,) = refused.value.problems
    return str(problem).removeprefix(f"{path}: ")


@pytest.mark.parametrize(
    ("name", "bounds", "expected"),
    [
        ("kernel_size", [3, 4], "kernel_size: expected odd numbers to 15, found [3.0, 4.0]"),
        ("kernel_size", [3, 17], "kernel_size: expected odd numbers to 15, found [3.0, 17.0]"),
        ("dropout", [0.0, 1.0], "expected dropout below 1 and batch_size from 1"),
        ("batch_size", [0, 128], "expected dropout below 1 and batch_size from 1"),
    ],
)
def test_what_no_network_can_have_is_no_choice(tmp_path: Path, name: str, bounds: list[float], expected: str) -> None:
    case = yaml.safe_load(CASE.read_text(encoding="utf-8"))
    case["profiles"]["embedded"]["parameters"]["hyperparameters"][name] = bounds
    assert refusal(tmp_path, case) == f"parameters: hyperparameters: {expected}"


def test_whatever_may_be_set_can_be_written_to_a_log_and_read_again() -> None:
    file = load_case_file(CASE, "automl", "standard", AutoMLContract.common_file, AutoMLContract.parameters_type)
    counts = ("max_trials", "warmup_1", "warmup_2", "warmup_3", "epochs", "patience", "batch_size", "eval_batch_size")
    positive = TypeAdapter(Positive)
    for name in counts:
        most = file.settings[name].max
        assert most is not None and positive.validate_python(int(most)), name
    assert Begin.of(Begin({}, file.settings["max_seconds"].max).line.encode()).seconds == 1e9


def test_a_trials_time_counts_from_when_it_was_told() -> None:
    """Its rank hears of it later, when it has made itself ready."""
    heard = Begin.of(Begin({}, 2.0).line.encode(), heard=5)
    assert heard.deadline() == 2_000_000_005 == Begin.of(heard.line.encode(), heard=7).deadline()
    assert Begin.of(Begin({}, None).line.encode(), heard=5).deadline() is None


@pytest.mark.parametrize(
    ("batch_size", "bounds"),
    [(384, (384, 448)), (448, (384, 448)), (64, (55, 64)), (896, (768, 896)), (1, (1, 1)), (400, (384, 448))],
)
def test_the_bounds_of_batches_follow_one_that_is_set(batch_size: int, bounds: tuple[int, int]) -> None:
    assert around(batch_size, 384, 448) == bounds
