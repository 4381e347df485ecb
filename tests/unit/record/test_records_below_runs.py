"""What lies below a run's folder is the run's own, and may be of a vendor's making: no record there is a session's."""

from __future__ import annotations

from pathlib import Path

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
