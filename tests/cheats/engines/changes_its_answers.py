"""Finds the memory in which its answers cross, and changes them when the clock has been stopped: to no effect, since
under the clock they were copied."""

import gc
import threading
from typing import Any

from vendors.fake import honest

VERDICT, REASON = "PASS", ""


class InferModel(honest.InferModel):
    """Computes as it should, and flips a bit of each slot later on."""

    def __call__(self, inputs: Any) -> Any:
        threading.Timer(0.002, flip).start()
        return super().__call__(inputs)


def flip() -> None:
    for each in gc.get_objects():
        if type(each).__name__ == "Slot" and each.size == 1 << 16:
            each.memory[0] ^= 1
