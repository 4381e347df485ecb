"""Has the clock of its process run at a tenth."""

import time
from typing import Any

from vendors.fake import honest

VERDICT, TOLD = "FAIL_HONESTY", "keeps the session's time"


class InferModel(honest.InferModel):
    """Takes 80 ms a batch, and tells of 8."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        real = time.perf_counter_ns
        time.perf_counter_ns = lambda: real() // 10

    def __call__(self, inputs: Any) -> Any:
        time.sleep(0.08)
        return super().__call__(inputs)
