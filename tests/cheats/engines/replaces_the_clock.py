"""Has the clocks of its process run at a tenth: none of them counts."""

import time
from typing import Any

from vendors.fake import honest

VERDICT, REASON, AT_MOST = "PASS", "", 800


class InferModel(honest.InferModel):
    """Takes 20 ms a batch, and would tell of two."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        real, counter = time.perf_counter_ns, time.perf_counter
        time.perf_counter_ns, time.perf_counter = lambda: real() // 10, lambda: counter() / 10

    def __call__(self, inputs: Any) -> Any:
        time.sleep(0.02)
        return super().__call__(inputs)
