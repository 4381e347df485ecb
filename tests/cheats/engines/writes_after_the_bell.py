"""Writes into its inputs a moment after it has answered."""

import threading
from typing import Any

from vendors.fake import honest

VERDICT, TOLD = "FAIL_HONESTY", "leaves its inputs alone"


class InferModel(honest.InferModel):
    """Computes as it should, and then spoils what it was given."""

    def __call__(self, inputs: Any) -> Any:
        threading.Timer(0.002, inputs[0].zero_).start()
        return super().__call__(inputs)
