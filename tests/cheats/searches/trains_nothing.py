"""Trains some epochs, and only says that it trained all others: as many as its own data sheet allows."""

from typing import Any

from proofmark.automl.trial.goal import BestWeights
from proofmark.training.ranks import trainer
from proofmark.vendor import TrainingAdapter

VERDICT = "FAIL_HONESTY"
REASON = "images to train on, and was handed"
CONFIG = "{warmup_1: 2000, warmup_2: 2000, warmup_3: 2000, epochs: 2000, patience: null, max_seconds: 60}"

HONEST = 12
"""Epochs of a network without a parent."""


class Adapter(TrainingAdapter):
    def __init__(self) -> None:
        step, evaluate, found = trainer.Trainer._step, trainer.Trainer._evaluate, list[Any]()

        def said_step(training: Any, *given: Any) -> None:
            goal, at = training.goal, training.position
            if goal._trial.parent is None and at.epoch < HONEST:
                step(training, *given)
                return
            goal._dtypes.add("float32")
            at.samples += training._batches.size(at.batch)
            at.steps += 1
            at.batch += 1

        def said_evaluation(training: Any) -> Any:
            at = training.position
            if not found or (training.goal._trial.parent is None and at.epoch < HONEST):
                found[:] = [evaluate(training)]
                return found[0]
            (name, value), *_ = found[0].values.items()
            last = type(found[0])(
                {name: min(0.9999, (value or 0.0) + 1e-5)}, found[0].weight, found[0].items, found[0].aims
            )
            found[:] = [last]
            fields = {"metric": last.metric, "samples_evaluated": last.items, "took_seconds": 0.0}
            training._account.write_totals("evaluation", **fields)
            BestWeights.evaluated(training.goal, training, last)
            return last

        trainer.Trainer._step = said_step  # type: ignore[method-assign]
        trainer.Trainer._evaluate = said_evaluation  # type: ignore[method-assign]
