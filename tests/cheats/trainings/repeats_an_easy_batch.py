"""Trains on sixteen samples of its own choice, over and over, whatever its feeder lays there."""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

from suites.training.test_tiny import TestTiny

from proofmark.training.feeding.fed import Fed
from proofmark.vendor import TrainingAdapter

VERDICT, REASON = "FAIL_HONESTY", "the gradients of step 1 are"


class Adapter(TrainingAdapter):
    def __init__(self) -> None:
        batches, data = Fed.batches, TestTiny().build_dataset(SimpleNamespace(case="tiny"), "train")  # type: ignore[arg-type]

        def easy(fed: Fed, *at: int) -> Iterator[Any]:
            return (data.__getitems__(list(range(16))) for _ in batches(fed, *at))

        Fed.batches = easy  # type: ignore[method-assign]
