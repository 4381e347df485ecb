"""The study: one for all trials, which learns, goes on, and is told again what it missed."""

from __future__ import annotations

import os
import resource
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from optuna.samplers import TPESampler

from proofmark.automl.search.state import Trial
from proofmark.automl.search.study import FILE, Study
from proofmark.errors import UsageError
from tests.automl.searches import PER_IMAGE, RANGES

PLAIN = {"kernel_size": 3, "batch_size": 8, "dropout": 0.0}


def begun(study: int, chosen: dict[str, Any] = PLAIN, accuracy: float | None = None, over: bool = True) -> Trial:
    """A trial as the search's journal has it."""
    begin = {"trial": study, "attempt": 1, "round": 0, "parent": None, "study": study, "per_image": PER_IMAGE}
    status = "failed" if accuracy is None else "finished"
    end = {"status": status, "accuracy": accuracy, "epochs": []} if over else None
    return Trial(begin | {"hyperparameters": chosen}, end)


def results(study: Study) -> dict[int, float | None]:
    return {number: trial.value for number, trial in study._estimator.results().items()}


def test_what_is_fixed_is_taken_and_what_is_not_is_chosen(tmp_path: Path) -> None:
    study = Study(tmp_path, RANGES, seed=0)
    assert study.ask(0, PLAIN) == (0, PLAIN)
    number, chosen = study.ask(1, None)
    assert number == 1 and chosen["kernel_size"] in (3, 5)
    assert 8 <= chosen["batch_size"] <= 16 and 0 <= chosen["dropout"] <= 0.2


def test_any_seed_is_one(tmp_path: Path) -> None:
    study = Study(tmp_path, RANGES, seed=5_000_000, startup=1)
    _, chosen = study.ask(7, None)
    assert chosen.keys() == RANGES.keys()


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


@pytest.mark.parametrize("dropout", ["9.0", f"1{'0' * 400}"])
def test_a_study_of_other_hyper_parameters_is_a_line(tmp_path: Path, dropout: str) -> None:
    study = Study(tmp_path, RANGES, seed=0)
    study.tell(study.ask(0, PLAIN)[0], 0.5)
    path = tmp_path / FILE
    path.write_text(path.read_text(encoding="utf-8").replace('"dropout":0.0', f'"dropout":{dropout}'), encoding="utf-8")
    with pytest.raises(UsageError, match="no study can be read from it"):
        Study(tmp_path, RANGES, seed=0)


@pytest.mark.parametrize("value", ["[0.5]", '"0.5"', "NaN"])
def test_a_study_with_a_value_that_is_no_number_is_a_line(tmp_path: Path, value: str) -> None:
    study = Study(tmp_path, RANGES, seed=0)
    study.tell(study.ask(0, PLAIN)[0], 0.5)
    path = tmp_path / FILE
    before = path.read_text(encoding="utf-8")
    path.write_text(before.replace('"values":[0.5]', f'"values":[{value}]'), encoding="utf-8")
    assert path.read_text(encoding="utf-8") != before
    with pytest.raises(UsageError, match="no study can be read from it"):
        Study(tmp_path, RANGES, seed=0)


def test_what_is_not_told_yet_counts_as_bad_in_any_optuna(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before Optuna 5 that had to be asked for."""
    monkeypatch.setattr("optuna.samplers.TPESampler", partial(TPESampler, constant_liar=False))
    study = Study(tmp_path, RANGES, seed=0)
    study.ask(0, None)
    sampler = study._estimator._sampler
    assert sampler is not None and sampler._constant_liar


def test_it_beats_chance_and_loses_with_its_sign_turned(tmp_path: Path) -> None:
    """A planted objective: the mean over 20 seeds of the last results, of 14 each."""
    means = {}
    for name, startup, sign in (("tpe", 4, 1), ("random", 1000, 1), ("turned", 4, -1)):
        results = []
        for seed in range(20):
            folder = tmp_path / f"{name}{seed}"
            folder.mkdir()
            study = Study(folder, RANGES, seed, startup)
            for trial in range(14):
                number, chosen = study.ask(trial, None)
                good = 1 - 5 * abs(chosen["dropout"] - 0.05) - 0.05 * abs(chosen["batch_size"] - 14)
                study.tell(number, sign * (good - 0.2 * (chosen["kernel_size"] == 3)))
                results += [good] if trial >= 8 else []
        means[name] = sum(results) / len(results)
    assert means["tpe"] > means["random"] + 0.05 and means["turned"] < means["random"] - 0.05


def test_a_study_knows_the_best_and_the_last_of_many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it rests on is bounded, and what is told by another driver is not forgotten."""
    monkeypatch.setattr("proofmark.automl.search.estimator.MOST", 6)
    first = Study(tmp_path, RANGES, seed=0)
    for trial, accuracy in enumerate((0.9, 0.1, 0.8, 0.7, 0.2, None, 0.3, 0.4)):
        first.ask(trial, PLAIN)
        first.tell(trial, accuracy)
    for study in (first, Study(tmp_path, RANGES, seed=0)):
        results = study._estimator.results()
        assert {number: trial.value for number, trial in results.items()} == {
            0: 0.9,
            2: 0.8,
            3: 0.7,
            4: 0.2,
            6: 0.3,
            7: 0.4,
        }
    for _ in range(50):  # more than it holds in memory: what is open is told in the end all the same
        first.ask(8, PLAIN)
    for number in range(8, 58):
        first.tell(number, 0.95)
    assert len(first._estimator.results()) == 6 and not first._estimator.open


def test_a_study_of_many_trials_has_several_files_and_holds_no_more_than_it_writes_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another driver goes on with all of them, and tells each what it missed."""
    monkeypatch.setattr("proofmark.automl.search.study.MOST", 4)
    first = Study(tmp_path, RANGES, seed=0)
    assert [first.ask(trial, PLAIN)[0] for trial in range(10)] == list(range(10))
    assert {path.name for path in tmp_path.glob("study*")} == {FILE, "study.1.jsonl", "study.2.jsonl"}
    for number in (0, 1, 2, 3, 5, 6, 8):
        first.tell(number, number / 10)
    assert first._files.keys() == {1, 2}
    second = Study(tmp_path, RANGES, seed=0)
    assert second._files.keys() == {1, 2} and second._estimator.open.keys() == {4, 7, 9}
    for number in (4, 7, 9, 9):
        second.tell(number, number / 10)
    assert second._files.keys() == {2} and second.ask(10, PLAIN)[0] == 10
    third = Study(tmp_path, RANGES, seed=0)
    results = third._estimator.results()
    assert {number: trial.value for number, trial in results.items()} == {each: each / 10 for each in range(10)}
    (tmp_path / "study.1.jsonl").write_text("no JSON\nat all\n", encoding="utf-8")
    with pytest.raises(UsageError, match=r"study\.1\.jsonl: no study can be read from it"):
        Study(tmp_path, RANGES, seed=0)


def test_a_line_that_did_not_fit_on_the_disk_is_no_damage(tmp_path: Path) -> None:
    Study(tmp_path, RANGES, seed=0).ask(0, PLAIN)
    whole = (tmp_path / FILE).read_bytes()
    (tmp_path / FILE).write_bytes(whole + b'{"op_code": 4, "wor')
    (tmp_path / f"{FILE}.lock").touch()  # of a driver that was killed while it wrote
    assert Study(tmp_path, RANGES, seed=0).ask(1, PLAIN)[0] == 1


def test_what_is_written_after_a_disk_was_full_follows_whole_lines(tmp_path: Path) -> None:
    """As what was ready and is let go when a search breaks off."""
    study = Study(tmp_path, RANGES, seed=0)
    first, _ = study.ask(0, PLAIN)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, ((tmp_path / FILE).stat().st_size + 20, limits[1]))
    try:
        with pytest.raises(OSError):
            study.ask(1, PLAIN)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    study.tell(first, 0.5)
    assert results(Study(tmp_path, RANGES, seed=0)) == {first: 0.5}


def test_what_the_disk_lost_of_a_study_is_brought_back_from_the_journal(tmp_path: Path) -> None:
    """New trials have new numbers, and each result is its own trial's, whatever end of the file is gone."""
    first = Study(tmp_path, RANGES, seed=0)
    chosen = []
    for number in range(6):
        chosen.append(first.ask(number, None)[1])
        if number < 4:
            first.tell(number, number / 10)
    trials = [begun(number, chosen[number], number / 10, over=number < 4) for number in (0, 1, 3, 4)]
    lines = (tmp_path / FILE).read_bytes().splitlines(keepends=True)
    for kept in range(len(lines) + 1):
        (tmp_path / FILE).write_bytes(b"".join(lines[:kept]))
        for _ in range(2):  # the second time there is nothing to bring back
            study = Study(tmp_path, RANGES, seed=0)
            study.restore(trials)
            known = {trial.study: trial.accuracy for trial in trials if trial.over}
            assert {number: value for number, value in results(study).items() if number in known} == known
            assert study._estimator.open.keys() == {4} and study._estimator.open[4].params == chosen[4]
        number, _ = study.ask(5, PLAIN)
        assert number in (5, 6)
        study.tell(3, 0.99)
        study.tell(number, 0.9)
        study.tell(4, 0.4)
        assert results(Study(tmp_path, RANGES, seed=0)).items() >= (known | {4: 0.4, number: 0.9}).items()


def test_a_lost_end_goes_over_several_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("proofmark.automl.search.study.MOST", 2)
    study = Study(tmp_path, RANGES, seed=0)
    study.ask(0, PLAIN)
    study.restore([begun(number, accuracy=number / 10) for number in (5, 4, 2, 0)])
    for _ in range(2):
        assert results(study) == {0: 0.0, 2: 0.2, 4: 0.4, 5: 0.5} and not study._estimator.open
        study = Study(tmp_path, RANGES, seed=0)
    assert study.ask(6, PLAIN)[0] == 6


def test_what_was_asked_for_and_never_began_is_not_kept_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of drivers that were killed while a network was ready."""
    monkeypatch.setattr("proofmark.automl.search.study.MOST", 2)
    first = Study(tmp_path, RANGES, seed=0)
    for number in range(5):
        first.ask(number, PLAIN)
    second = Study(tmp_path, RANGES, seed=0)
    assert second._files.keys() == {0, 1, 2}
    second.restore([begun(0, accuracy=0.1), begun(3, accuracy=None), begun(4, over=False)])
    for study in (second, Study(tmp_path, RANGES, seed=0)):
        assert study._files.keys() == {2} and study._estimator.open.keys() == {4} and results(study) == {0: 0.1}


@pytest.mark.parametrize(("trials", "reason"), [(1, "it has 1 trials, and must have 2"), (3, "it has 3 trials")])
def test_a_file_with_another_number_of_trials_than_it_was_left_with_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trials: int, reason: str
) -> None:
    """Numbers of all that follow would be others'."""
    study = Study(tmp_path, RANGES, seed=0)
    for number in range(trials):
        study.ask(number, PLAIN)
    monkeypatch.setattr("proofmark.automl.search.study.MOST", 2)
    (tmp_path / "study.1.jsonl").touch()
    with pytest.raises(UsageError, match=rf"study\.jsonl: {reason}.* restore it") as refused:
        Study(tmp_path, RANGES, seed=0)
    assert "\n" not in str(refused.value)


def test_a_file_is_on_the_disk_before_the_next_is_begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("proofmark.automl.search.study.MOST", 2)
    synced = list[tuple[str, bool]]()

    def sync(file: int) -> None:
        path = Path(os.readlink(f"/proc/self/fd/{file}"))
        synced.append((path.name, (tmp_path / f"study.{len(synced) + 1}.jsonl").exists()))

    monkeypatch.setattr("os.fsync", sync)
    study = Study(tmp_path, RANGES, seed=0)
    for number in range(5):
        study.ask(number, PLAIN)
    assert synced == [(FILE, False), ("study.1.jsonl", False)]
