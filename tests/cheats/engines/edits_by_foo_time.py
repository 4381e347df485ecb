"""Reports a foo_time whose `__abs__` finds the referee's list of times, and edits it."""

import sys
from typing import Any

from vendors.fake import honest

VERDICT, REASON = "ERROR", "the engine's foo_time is a Reaches; expected a float"


class Reaches(float):
    """Nothing, as long as nobody asks how much."""

    def __abs__(self) -> float:
        times = sys._getframe(1).f_locals["result"].batch_ns
        times[:] = [each // 10 for each in times]
        return 0.0


class InferModel(honest.InferModel):
    """Computes as it should."""

    def __call__(self, inputs: Any) -> Any:
        return super().__call__(inputs)[0], Reaches(0.0)
