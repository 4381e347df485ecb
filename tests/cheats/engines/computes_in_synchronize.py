"""Puts its work off until the vendor's `synchronize` is called."""

import time
from typing import Any

import vendors.fake
from vendors.fake import honest

VERDICT, REASON, AT_MOST = "PASS", "", 800


class InferModel(honest.InferModel):
    """Takes 20 ms a batch."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        vendors.fake.vendor.synchronize = lambda: time.sleep(0.02)  # type: ignore[method-assign]
