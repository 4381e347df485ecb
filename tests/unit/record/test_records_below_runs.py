"""What lies below a run's folder is the run's own, and may be of a vendor's making: no record there is a session's."""

from __future__ import annotations

from pathlib import Path

import pytest

from proofmark.verification.plain_files import records_in
from reports.site.discover import discover


def test_a_record_that_a_rank_laid_beside_its_checkpoints_is_none(tmp_path: Path) -> None:
    made = [tmp_path / "training" / name / "1x1" / "record.json" for name in ("one", "two")]
    laid = made[0].parent / "round1" / "checkpoints" / "1x1" / "record.json"
    for path in (*made, laid):
        path.parent.mkdir(parents=True)
        path.touch()
    (tmp_path / "manifest.json").touch()
    assert sorted(records_in(tmp_path)) == made
    (session,) = discover([tmp_path])
    assert sorted(session.records) == made


@pytest.mark.parametrize("own", ["inference/one/engine-1", "training/one/1x1/round1/noderank0/own0"])
def test_a_session_that_a_vendor_laid_below_a_run_without_a_record_is_none(tmp_path: Path, own: str) -> None:
    """As long as a session goes on, and for good where it was killed, nothing says that all below is its own."""
    for name in ("manifest.json", "inference/one/record.json"):
        path = tmp_path / "20260101-000000" / own / "archive" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    run = tmp_path / "20260101-000000" / own.partition("/engine-")[0].partition("/round")[0]
    (run / "events.jsonl").touch()
    assert list(discover([tmp_path])) == []
    (run / "record.json").touch()
    assert [session.folder for session in discover([tmp_path])] == [run]
