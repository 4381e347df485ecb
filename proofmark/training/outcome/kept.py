"""What a training that failed leaves behind, by name."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from proofmark.record.parts import Kept
from proofmark.training.outcome.record import TrainingRecord


def of_training(record: TrainingRecord, run_dir: Path, shared: Path | None) -> tuple[Kept, ...]:
    """What there is of a training at a scale, nothing if it did not fail.

    Args:
        record: what came of it.
        run_dir: its folder.
        shared: the folder of its checkpoints where all hosts share one, otherwise they are in `run_dir`.
    """
    return tuple(_of_training(run_dir, shared)) if record.failed else ()


def last_finished(checkpoints: Path) -> Path | None:
    """The last finished checkpoint in a folder: ranks write there, and call others as they please."""
    found = (path for path in checkpoints.glob("step-*") if re.fullmatch("step-[0-9]{9,18}", path.name))
    return max(found, default=None)


def _of_training(run_dir: Path, shared: Path | None) -> Iterator[Kept]:
    rounds = sorted(run_dir.glob("round*"))
    for folder in rounds:
        checkpoints = shared / folder.name if shared else folder / "checkpoints"
        finished = last_finished(checkpoints)
        if finished is not None:
            path = finished if shared else finished.relative_to(run_dir)
            yield Kept(what="a checkpoint, to go on from with --resume", path=str(path))
    if rounds:
        path = rounds[0].relative_to(run_dir) if len(rounds) == 1 else Path()
        yield Kept(what="losses, evaluations and logs of all ranks", path=str(path))
