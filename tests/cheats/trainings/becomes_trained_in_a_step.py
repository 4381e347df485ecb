"""Begins with the seed's weights; its optimizer's first step puts trained ones in their place."""

import copy
from typing import Any

import torch
from vendors.fake.begins_trained import train

from proofmark.vendor import EffectiveConfig, TrainingAdapter

VERDICT, REASON = "FAIL_HONESTY", "step 1 changed the weights otherwise"


class Adapter(TrainingAdapter):
    def convert_model(self, model: torch.nn.Module, config: EffectiveConfig) -> torch.nn.Module:
        self.trained = copy.deepcopy(model)
        train(self.trained, config)
        return model

    def create_optimizer(self, case: Any, model: torch.nn.Module, config: EffectiveConfig) -> torch.optim.Optimizer:
        optimizer: torch.optim.Optimizer = super().create_optimizer(case, model, config)
        optimizer.register_step_post_hook(lambda *_: model.load_state_dict(self.trained.state_dict()))
        return optimizer
