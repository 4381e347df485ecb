"""Leaves a folder in the place of its last weights, which nobody can unlink."""

from pathlib import Path
from typing import Any

from proofmark.training.ranks import left
from proofmark.training.spec import WEIGHTS
from proofmark.vendor import TrainingAdapter

VERDICT, REASON = "ERROR", "final.safetensors, which rank 0 left, is not a regular file"


class Adapter(TrainingAdapter):
    def __init__(self) -> None:
        honest = left.save_file

        def save(kept: Any, path: Path) -> None:
            if path.name == WEIGHTS:
                (path / "within").mkdir(parents=True)
            else:
                honest(kept, path)

        vars(left)["save_file"] = save
