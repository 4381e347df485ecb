"""--weights in sessions of cases that begin with given weights, and of such that begin with fresh ones."""

from __future__ import annotations

import pytest
import yaml

from proofmark.training.outcome.record import TrainingRecord
from tests.e2e.conftest import House, one_line_answer

STANDARD = ("--profile", "standard", "--data-dir", "data")
WITH = (*STANDARD, "--weights", "weights")


@pytest.fixture
def several(house: House) -> House:
    """Two trainings with a standard profile: `tiny` takes no weights, `given` may begin with the user's."""
    suite = house.root / "suites/training"
    text = "from suites.training import test_tiny\n\n\nclass TestGiven(test_tiny.TestTiny):\n    pass\n"
    (suite / "test_given.py").write_text(text)
    content = yaml.safe_load((suite / "tiny.yaml").read_text())
    embedded = content["profiles"]["embedded"]
    for case, given in (("tiny", False), ("given", True)):
        own = embedded | {"parameters": embedded["parameters"] | {"initial_weights": given}}
        (suite / f"{case}.yaml").write_text(yaml.safe_dump(content | {"profiles": {"standard": own}}))
    for folder in ("data", "weights/given"):
        (house.root / folder).mkdir(parents=True)
        (house.root / folder / "file").touch()
    return house


def test_weights_are_for_the_cases_that_take_them(several: House) -> None:
    ran = several.run(*WITH, "-k", "1x1", vendor="cpu", suite="training")
    expected = "--weights: case tiny, profile standard, starts with fresh weights and ignores them"
    assert ran.output.count(expected) == 1, ran.output
    for case, origin in (("given", str(several.root / "weights/given")), ("tiny", None)):
        record = TrainingRecord.load(ran.run_dir / "training" / case / "1x1" / "record.json")
        assert record.verdict and record.verdict.kind == "PASS", record.verdict
        assert record.weights_given == (origin is not None)
        assert (record.weights and record.weights.origin) == origin


def test_weights_that_no_case_takes_are_refused(several: House) -> None:
    expected = "--weights: case tiny, profile standard, starts with fresh weights: remove it"
    one_line_answer(several.run(*WITH, "-k", "Tiny and 1x1", vendor="cpu", suite="training"), expected)
