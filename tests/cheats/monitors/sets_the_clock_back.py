"""Replaces the clock of its process: samples of the timed rounds would lie before them, and others among them."""

import itertools
import sys

from proofmark.vendor import Reading

REASON = "its time is before that of the line before"


class Monitor:
    def __init__(self) -> None:
        backwards, frame = itertools.count(1_700_000_000, -60), sys._getframe()
        while frame.f_back is not None:
            frame = frame.f_back
            if "now" in frame.f_globals:
                frame.f_globals["now"] = lambda: float(next(backwards))

    def sample(self) -> list[Reading]:
        return [Reading(0, power_w=1.0)]

    def close(self) -> None:
        pass
