"""Writes into its inputs a moment after it has answered."""

import threading
from typing import Any

from vendors.fake import honest

VERDICT, REASON = "FAIL_HONESTY", "leaves its inputs alone"


class InferModel(honest.InferModel):
    """Computes as it should, and then changes what it was given, by so little that its answers stay right."""

    def __call__(self, inputs: Any) -> Any:
        threading.Timer(0.002, inputs[0].add_, [1e-5]).start()
        return super().__call__(inputs)
