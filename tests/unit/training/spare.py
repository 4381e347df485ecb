"""A training whose model has a layer that it doesn't use: `python -m tests.unit.training.spare DIRECTORY`, by torchrun.

Each rank writes to a file what it ended with.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import torch
import torch.distributed as dist

from proofmark.errors import StepError
from proofmark.rules.config import EffectiveConfig
from proofmark.training.ranks.model.strategy import Place
from tests.unit.training.tokens import Tokens, trained


class Spare(Tokens):
    """One of its layers is a spare one."""

    def create_model(self, config: EffectiveConfig) -> torch.nn.Module:
        model = super().create_model(config)
        model[0].spare = torch.nn.Linear(2, 2)  # type: ignore[index, operator]
        return model


if __name__ == "__main__":
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    dist.init_process_group("gloo")
    try:
        trained(Path(sys.argv[1]), Place(rank, rank, world, torch.device("cpu")), case=Spare())
    except StepError as error:
        (Path(sys.argv[1]) / f"ended{rank}").write_text(str(error))
    os._exit(0)
