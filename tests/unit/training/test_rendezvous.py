"""torchrun on a machine by itself."""

from __future__ import annotations

from pathlib import Path

from tests.unit.training.torchrun import ran_on


def test_an_agent_reads_nothing_that_its_ranks_could_have_written(tmp_path: Path) -> None:
    done = ran_on(1, "tests.unit.training.poisoned_store", str(tmp_path / "made"))
    assert done.returncode == 0, done.stderr
    assert not (tmp_path / "made").exists()
