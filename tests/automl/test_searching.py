"""The benchmarks of a search say where its time went, and of one that failed what is missing, in a line."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from benchmarks import placing, searching
from tests.automl.automl_records import record, trial
from tests.automl.searches import search, settings


def test_trials_are_taken_in_the_order_in_which_they_began() -> None:
    """A record has them by number; one that was begun again is later than those that follow it."""
    late = trial(
        0, began=20.0, epochs=tuple(each.model_copy(update={"ended": each.ended + 20}) for each in trial(0).epochs)
    )
    lines = searching.figures(record(late, trial(1), training_share=0.5), 101.0)
    assert "2 trials, 2 epochs" in lines[0] and lines[2].split()[3] == "14.00"
    assert lines[3].split()[3:] == ["5.00", "(most", "5.00)"] and lines[4].split()[3] == "71.00"


@pytest.mark.parametrize(
    ("changes", "trials", "reason"),
    [
        ({"search_seconds": None, "failure": "no disk"}, 2, "lacks its seconds, the share: no disk"),
        ({"training_share": None}, 2, "lacks the share: 2 trials were begun"),
        ({"training_share": 0.5, "end_reason": None}, 1, "lacks two trained trials: nothing says why"),
    ],
)
def test_a_search_that_failed_is_a_line(changes: dict[str, Any], trials: int, reason: str) -> None:
    with pytest.raises(SystemExit, match=reason) as ended:
        searching.figures(record(*map(trial, range(trials)), trial(trials, epochs=()), **changes), 1.0)
    assert "\n" not in str(ended.value)


@pytest.mark.parametrize(
    ("left", "reason"), [({}, "left 0 records .* pytest ended with 3"), ({"one": "{"}, "not a run record")]
)
def test_a_session_that_leaves_no_record_is_a_line(
    monkeypatch: pytest.MonkeyPatch, left: dict[str, str], reason: str
) -> None:
    def session(command: list[str], **options: Any) -> subprocess.CompletedProcess[bytes]:
        for name, text in left.items():
            folder = Path(command[-1]) / "latest" / "automl" / name
            folder.mkdir(parents=True)
            (folder / "record.json").write_text(text, encoding="utf-8")
        return subprocess.CompletedProcess(command, 3)

    monkeypatch.setattr(subprocess, "run", session)
    with pytest.raises(SystemExit, match=reason) as ended:
        searching.main()
    assert "\n" not in str(ended.value)


def test_a_trial_is_placed_when_it_has_said_a_word(tmp_path: Path) -> None:
    state = search(tmp_path / "search", settings(3), {1: "crash"})
    took = placing.placing(tmp_path / "search")
    assert len(took) == 3 == len(state.trials)


def test_a_session_that_begins_no_trial_is_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: subprocess.CompletedProcess([], 4))
    with pytest.raises(SystemExit, match="no trial began: pytest ended with 4$"):
        placing.main()
