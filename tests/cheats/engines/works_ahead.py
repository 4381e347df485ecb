"""Computes batches as soon as they lie in shared memory, before it is asked about them: forty milliseconds each."""

import gc
import threading
import time
from typing import Any

import torch
from vendors.fake import honest

VERDICT, REASON, HONEST = (
    "FAIL_HONESTY",
    "fails 'no ",
    505,
)  # 112 items in seven batches of forty milliseconds, by TIMED_PACE


class InferModel(honest.InferModel):
    """Four threads look into all slots."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self._ready: dict[bytes, float] = {}
        for _ in range(4):
            threading.Thread(target=self._look, daemon=True).start()

    def _look(self) -> None:
        slots, searched = [], 0.0
        while True:
            time.sleep(0.001)
            if time.monotonic() - searched > 0.25:  # all objects are many: a slow machine would do nothing else
                slots = [each for each in gc.get_objects() if type(each).__name__ == "Slot"]
                searched = time.monotonic()
            for slot in slots:
                content = slot.memory[:512]
                if content not in self._ready:
                    self._ready[content] = float("inf")
                    time.sleep(0.04)
                    self._ready[content] = 0.0

    def __call__(self, inputs: Any) -> Any:
        content = inputs[0].numpy().tobytes()[:512]
        if self._ready.setdefault(content, 1.0) != 0.0:
            time.sleep(0.04)
        self._ready.pop(content, None)
        with torch.inference_mode():
            return super().__call__(inputs)
