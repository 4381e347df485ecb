"""Remembers parts of samples, as the first layers of a network see them, and computes only those that it has not met:
of a sample that is put together from parts of two others it knows all.
"""

import time
from typing import Any

from vendors.fake import honest

VERDICT, REASON = "FAIL_HONESTY", "fails 'no "


class InferModel(honest.InferModel):
    """A millisecond a sample, of which each feature that was met before saves an eighth."""

    known: set[tuple[int, float]] = set()

    def __call__(self, inputs: Any) -> Any:
        met = {part for row in inputs[0].tolist() for part in enumerate(row)}
        new = met - self.known
        time.sleep(0.001 / 8 * len(new))
        self.known |= new
        return super().__call__(inputs)
