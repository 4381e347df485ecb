"""Says that it is at the target after an epoch, and leaves weights that were trained for longer, elsewhere."""

import copy

import torch
from vendors.fake.begins_trained import train
from vendors.fake.replaces_the_metric import Adapter as _Liar

from proofmark.training.outside import left
from proofmark.vendor import EffectiveConfig

VERDICT, TOLD = "FAIL_HONESTY", "is said to be 1; its weights have"


class Adapter(_Liar):
    def convert_model(self, model: torch.nn.Module, config: EffectiveConfig) -> torch.nn.Module:
        trained, honest = copy.deepcopy(model), left.leave_weights
        train(trained, config)
        vars(left)["leave_weights"] = lambda _, *rest: honest(trained, *rest)
        return model
