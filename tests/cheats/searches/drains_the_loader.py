"""Trains for some epochs, then asks for the images of all others, computes nothing of them, and says that it did."""

from typing import Any

from proofmark.training.ranks import trainer
from proofmark.vendor import TrainingAdapter

VERDICT, REASON = "FAIL_HONESTY", "images to train on"
STILL = (
    "who asks for images and says that it trained on them has been handed them: what is computed of them nobody sees"
)
CONFIG = "{warmup_1: 40, warmup_2: 40, patience: null, max_trials: 2}"

HONEST = 12
"""Epochs of a network without a parent."""


class Adapter(TrainingAdapter):
    def __init__(self) -> None:
        step, evaluate, found = trainer.Trainer._step, trainer.evaluate, list[Any]()

        def said_step(training: Any, shares: Any, loader: Any) -> None:
            goal, at = training.goal, training.position
            if goal._trial.parent is None and at.epoch < HONEST:
                step(training, shares, loader)
                return
            for _ in shares:
                next(loader)
            goal._dtypes.add("float32")
            at.samples += training._batches.size(at.batch)
            at.steps += 1
            at.batch += 1

        def said_evaluation(model: Any, case: Any, config: Any, validation: Any, *others: Any) -> Any:
            if len(found) <= HONEST:
                found.append(evaluate(model, case, config, validation, *others))
                return found[-1]
            for _ in validation.load(
                [[*range(start, min(start + 2, validation.items))] for start in range(0, validation.items, 2)]
            ):
                pass
            return found[-1]

        trainer.Trainer._step = said_step  # type: ignore[method-assign]
        trainer.evaluate = said_evaluation
