"""What of a record is not what its logs say is named, value by value, however many parts it has."""

from __future__ import annotations

from pathlib import Path

import pytest

from proofmark import __version__
from proofmark.automl.outcome.record import AutoMLRecord, TrialRecord
from proofmark.record.provenance import Known, Provenance
from proofmark.verdict.engine import judge
from proofmark.verification import again
from proofmark.verification.again import NAMED, faults
from suites.automl import AutoMLSuite
from tests.automl.automl_records import record, trial

TRIALS = tuple(map(trial, range(20)))


class Made(AutoMLSuite):
    """Whose logs say what it is told."""

    def __init__(self, made: AutoMLRecord) -> None:
        self._made = made

    def collect(self, run_dir: Path, record: AutoMLRecord) -> AutoMLRecord:
        return self._made


def faults_of(said: AutoMLRecord, made: AutoMLRecord, folder: Path) -> list[str]:
    suite = Made(made)
    said = said.with_figures(suite.figures(said))
    return [fault for fault in faults(suite, said, folder) if "verdict" not in fault]


def test_what_follows_from_its_logs_is_not_complained_of(tmp_path: Path) -> None:
    assert faults_of(record(*TRIALS), record(*TRIALS), tmp_path) == []


def test_a_value_is_named_by_its_place_and_a_type_is_a_value(tmp_path: Path) -> None:
    said = record(*TRIALS, config={"min_seconds": 60.0, "fused": 1})
    changed = tuple(each.model_copy(update={"device": "1"}) if each.number == 17 else each for each in TRIALS)
    made = record(*changed, config={"min_seconds": 60.0, "fused": True})
    assert sorted(faults_of(said, made, tmp_path)) == [
        "config.fused is 1, its logs say true",
        "trials[17].device is '0', its logs say '1'",
    ]


def test_a_record_of_before_lacks_fields_and_is_judged_by_what_its_logs_say(tmp_path: Path) -> None:
    before = tuple(TrialRecord.model_validate(each.model_dump(exclude={"asked"})) for each in TRIALS)
    assert faults_of(record(*before), record(*TRIALS), tmp_path) == []
    given = (*TRIALS[:17], trial(17, asked=0), *TRIALS[18:])
    suite, said = Made(record(*given)), record(*before)
    said = said.model_copy(update={"verdict": judge(said, suite.stages(said))})
    found = list(faults(suite, said.with_figures(suite.figures(said)), tmp_path))
    assert len(found) == 1 and "trial 17 says that it did 1 epochs, of which it was given 0" in found[0]
    other = (trial(0, asked=2), *TRIALS[1:])
    assert faults_of(record(*other), record(*TRIALS), tmp_path) == ["trials[0].asked is 2, its logs say 1"]


def test_a_record_from_before_parameters_were_named_is_judged_by_its_logs(tmp_path: Path) -> None:
    made = record(*TRIALS, parameters=("min_seconds",))
    assert faults_of(record(*TRIALS), made, tmp_path) == []
    other = record(*TRIALS, parameters=())
    assert faults_of(other, made, tmp_path) == ["parameters is 0 of them, its logs say 1 of them"]


@pytest.mark.parametrize(
    "versions, commit, hint",
    [
        ({}, "a" * 40, " (it was made in commit aaaaaaaaaaaa, this is bbbbbbbbbbbb)"),
        ({}, "b" * 40, ""),
        ({}, None, ""),
        ({"proofmark": "99"}, "a" * 40, f" (it was made by Proofmark 99, this is {__version__})"),
        ({"proofmark": __version__}, "a" * 40, " (it was made in commit aaaaaaaaaaaa, this is bbbbbbbbbbbb)"),
    ],
)
def test_what_another_version_or_commit_made_is_told_with_that(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, versions: dict[str, str], commit: str | None, hint: str
) -> None:
    monkeypatch.setattr(again, "commit_of", lambda tree: (Known(value="b" * 40), True))
    known = Known(value=commit) if commit else Known(reason="nobody knows")
    provenance = Provenance(commit=known, clean=True, vendor_version=known, vendor_sha256=known)
    said, made = (record(*TRIALS, seed=seed, versions=versions, provenance=provenance) for seed in (1, 2))
    assert faults_of(said, made, tmp_path) == [f"seed is 1, its logs say 2{hint}"]


def test_of_many_the_first_are_named_and_the_others_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One part after the other: all at once as plain values would not fit into memory."""

    def whole(*_: object, **__: object) -> None:
        raise AssertionError("the whole record as plain values")

    monkeypatch.setattr(AutoMLRecord, "model_dump", whole)
    changed = tuple(each.model_copy(update={"host": "there"}) for each in TRIALS)
    found = faults_of(record(*TRIALS), record(*changed), tmp_path)
    assert found[0] == "trials[0].host is 'here', its logs say 'there'" and len(found) == NAMED + 1
    assert found[-1] == f"and {len(TRIALS) - NAMED} more values are not what its logs say"
