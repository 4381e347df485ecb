"""The study: one for all trials, which learns, goes on, and is told again what it missed."""

from __future__ import annotations

from pathlib import Path

import pytest

from proofmark.automl.search.study import FILE, Study
from proofmark.errors import UsageError
from tests.automl.searches import RANGES

PLAIN = {"kernel_size": 3, "batch_size": 8, "dropout": 0.0}


def test_what_is_fixed_is_taken_and_what_is_not_is_chosen(tmp_path: Path) -> None:
    study = Study(tmp_path, RANGES, seed=0)
    assert study.ask(0, PLAIN) == (0, PLAIN)
    number, chosen = study.ask(1, None)
    assert number == 1 and chosen["kernel_size"] in (3, 5)
    assert 8 <= chosen["batch_size"] <= 16 and 0 <= chosen["dropout"] <= 0.2


def test_another_driver_goes_on_with_it(tmp_path: Path) -> None:
    first = Study(tmp_path, RANGES, seed=0)
    first.ask(0, PLAIN)
    first.tell(0, 0.5)
    second = Study(tmp_path, RANGES, seed=0)
    second.tell(0, 0.9)  # said twice, the first counts
    assert second.ask(1, PLAIN)[0] == 1
    second.tell(1, None)


def test_a_damaged_study_is_a_line(tmp_path: Path) -> None:
    Study(tmp_path, RANGES, seed=0)
    (tmp_path / FILE).write_text('{"op_code": 999}\nno JSON\n', encoding="utf-8")
    with pytest.raises(UsageError, match="no study can be read from it"):
        Study(tmp_path, RANGES, seed=0)


def test_it_beats_chance_and_loses_with_its_sign_turned(tmp_path: Path) -> None:
    """A planted objective: the mean over 5 seeds of the last results, of 25 each."""
    means = {}
    for name, startup, sign in (("tpe", 5, 1), ("random", 1000, 1), ("turned", 5, -1)):
        results = []
        for seed in range(5):
            folder = tmp_path / f"{name}{seed}"
            folder.mkdir()
            study = Study(folder, RANGES, seed, startup, sign)
            for trial in range(25):
                number, chosen = study.ask(trial, None)
                good = 1 - 5 * abs(chosen["dropout"] - 0.05) - 0.05 * abs(chosen["batch_size"] - 14)
                study.tell(number, good - 0.2 * (chosen["kernel_size"] == 3))
                results += [good] if trial >= 15 else []
        means[name] = sum(results) / len(results)
    assert means["tpe"] > means["random"] > means["turned"]
