"""What can be known of a case's own methods before a rank has made anything ready: two samples of its data tell."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import torch

from proofmark.errors import StepError
from proofmark.measuring.rehearsal import SAMPLES, description, rehearse_scoring, taking
from proofmark.metric import Mean
from proofmark.training.ranks.model.evaluation import answers, as_scored

if TYPE_CHECKING:
    from proofmark.rules.config import EffectiveConfig
    from proofmark.training.case import TrainingCase
    from proofmark.training.feeding.loading import OnDemand
    from proofmark.training.ranks.model.strategy import Place

MAKER = "build_dataset"


def rehearse_evaluation(
    case: TrainingCase, config: EffectiveConfig, model: torch.nn.Module, validation: OnDemand, place: Place
) -> None:
    """See that the case's fresh model answers samples of the validation data, and that the metric can score that.

    Chance is afterwards as it was before, and the model as it was but in evaluation mode.

    Raises:
        StepError: it doesn't, or can't; which method is to be mended.
    """
    count = min(SAMPLES, validation.items, config.eval_batch_size)
    for inputs, targets in validation.load([list(range(count))] if count else []):
        with chance_kept(place.device), torch.no_grad():
            with taking(inputs, MAKER, f"rank{place.rank}.log"):
                output = model.eval()(*inputs)
            found = answers(output)
            if not found or not all(isinstance(each, torch.Tensor) for each in found):
                expected = "a tensor or a tuple of tensors"
                raise StepError(f"create_model: the model returns {description(output)}; expected {expected}")
            mean = isinstance(case.metric(config), Mean)
            device = place.device if mean else torch.device("cpu")  # where an evaluation has them
            scored = [each.to(device) for each in as_scored(output)]
            rehearse_scoring(case, config, scored, targets.to(device), among_ranks=True)


@contextmanager
def chance_kept(device: torch.device) -> Iterator[None]:
    """What is drawn within changes nothing that is drawn later, on the processor or on the device."""
    module = None if device.type == "cpu" else torch.get_device_module(device)
    state = module.get_rng_state() if module else None
    with torch.random.fork_rng(devices=[]):
        try:
            yield
        finally:
            if module:
                module.set_rng_state(state)
