"""Finds the referee's own function in every module that has it, and wraps it: none of them is the referee's."""

import sys
import time
from typing import Any

from vendors.fake import honest

VERDICT, REASON, AT_MOST = "PASS", "", 800


class InferModel(honest.InferModel):
    """Takes 20 ms a batch, and would tell of two."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        real = sys.modules["proofmark.measuring.window"].run_window

        def quicker(*asked: Any) -> Any:
            window = real(*asked)
            return window._replace(nanoseconds=max(1, window.nanoseconds // 10))

        for module in [*sys.modules.values()]:
            if getattr(module, "run_window", None) is real:
                module.run_window = quicker  # type: ignore[attr-defined]

    def __call__(self, inputs: Any) -> Any:
        time.sleep(0.02)
        return super().__call__(inputs)
