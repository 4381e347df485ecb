"""Was trained before the clock ran; takes all its steps as the case does, and swaps trained weights in after them."""

import copy
from typing import Any

import torch
from vendors.fake.begins_trained import train

from proofmark.training.ranks.trainer import Trainer
from proofmark.vendor import EffectiveConfig, TrainingAdapter

CONFIG = "{global_batch_size: 64}"
VERDICT, REASON = "FAIL_HONESTY", "left were others when they were used"


class Adapter(TrainingAdapter):
    def convert_model(self, model: torch.nn.Module, config: EffectiveConfig) -> torch.nn.Module:
        trained = copy.deepcopy(model)
        train(trained, config)
        honest = Trainer._evaluate

        def evaluate(trainer: Trainer) -> Any:
            if trainer.position.steps:
                trainer.model.load_state_dict(trained.state_dict())
            return honest(trainer)

        Trainer._evaluate = evaluate  # type: ignore[method-assign]
        return model
