"""A model with a dropout, and an audited training of it on several ranks: `-m tests.unit.training.dropping FOLDER`."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import torch
import torch.distributed as dist

from proofmark.training.ranks.model.strategy import Place
from tests.unit.training.tokens import Tokens, trained

if TYPE_CHECKING:
    from proofmark.rules.config import EffectiveConfig


class Dropping(Tokens):
    """With a dropout that no tensor's name tells of."""

    def create_model(self, config: EffectiveConfig) -> torch.nn.Module:
        model = super().create_model(config)
        next(iter(model.children())).register_forward_hook(
            lambda module, _, output: torch.nn.functional.dropout(output, 0.2, module.training)
        )
        return model


if __name__ == "__main__":
    dist.init_process_group("gloo")
    place = Place(dist.get_rank(), dist.get_rank(), dist.get_world_size(), torch.device("cpu"))
    trained(Path(sys.argv[1]), place, audited=True, case=Dropping(), gradient_accumulation_steps=2)
    dist.destroy_process_group()
    os._exit(0)  # the interpreter's own end may abort over threads of torch, as for proofmark.training.ranks.rank
