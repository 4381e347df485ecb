"""A checkpoint is what a rank has finished, under the name that those have: it may lay others beside it."""

from __future__ import annotations

import os
from pathlib import Path

from proofmark.training.outcome.kept import last_finished


def test_names_that_a_rank_made_up_are_no_checkpoints(tmp_path: Path) -> None:
    assert last_finished(tmp_path / "none") is None
    for name in (b"step-000000008", b"step-000000012", b"step-000000020.draft"):
        (tmp_path / os.fsdecode(name)).mkdir()
    for name in (b"step-\xff9", b"step-zz\nPASS  training x9", b"step-zz9", "step-\u0669".encode() * 9):
        (tmp_path / os.fsdecode(name)).mkdir()
    found = last_finished(tmp_path)
    assert found is not None and found.name == "step-000000012"
