"""Says that it is at the target after an epoch, and writes longer trained weights when the clock stands."""

import copy

import torch
from vendors.fake.begins_trained import train
from vendors.fake.replaces_the_metric import Adapter as _Liar

from proofmark.training.ranks import left
from proofmark.training.ranks.model.own import named_weights
from proofmark.training.spec import WEIGHTS
from proofmark.vendor import EffectiveConfig

VERDICT, REASON = "ERROR", "the weights that rank 0 left are not those whose digest it told when training ended"
MAYBE, MAYBE_REASON = "FAIL_HONESTY", "left were others when they were used"


class Adapter(_Liar):
    def convert_model(self, model: torch.nn.Module, config: EffectiveConfig) -> torch.nn.Module:
        trained, honest = copy.deepcopy(model), left.save_file
        train(trained, config)
        others = named_weights(trained)
        vars(left)["save_file"] = lambda kept, path: honest(others if path.name == WEIGHTS else kept, path)
        return model
