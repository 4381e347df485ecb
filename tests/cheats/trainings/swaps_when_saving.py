"""Says that it is at the target after an epoch; as its last weights it has others, trained for longer elsewhere."""

import copy

import torch
from vendors.fake.begins_trained import train
from vendors.fake.replaces_the_metric import Adapter as _Liar

from proofmark.training.ranks import trainer
from proofmark.vendor import EffectiveConfig

VERDICT, REASON = "FAIL_HONESTY", "is said to be 1; its weights have"


class Adapter(_Liar):
    def convert_model(self, model: torch.nn.Module, config: EffectiveConfig) -> torch.nn.Module:
        trained, honest = copy.deepcopy(model), trainer.last_weights
        train(trained, config)
        vars(trainer)["last_weights"] = lambda _, *rest: honest(trained, *rest)
        return model
