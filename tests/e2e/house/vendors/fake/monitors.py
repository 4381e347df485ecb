"""Monitors that misbehave, by the environment variable FAKE_MONITOR."""

from __future__ import annotations

import os
import sys
import time

from proofmark.vendor import Reading


class Monitor:
    """Reads a device that isn't there."""

    def __init__(self, mood: str) -> None:
        self.mood = mood
        self.samples = 0

    def sample(self) -> list[Reading]:
        self.samples += 1
        if self.mood == "raises":
            raise RuntimeError("the sensor bus is gone")
        if self.mood == "dies" and self.samples > 1:  # there are two in the shortest run
            os._exit(7)
        if self.mood == "hangs" and self.samples > 1:
            time.sleep(3600)
        if self.mood == "babbles":
            sys.stdout.write("noise" * 100_000)
            os.write(2, b"noise" * 100_000)
        if self.mood == "lies":
            return [Reading(0, power_w="hot", temperature_c=float("nan"))]  # type: ignore[arg-type]
        if self.mood == "loses":
            return [Reading(0, error="fell off the bus"), Reading(1, power_w=100.0)]
        throttled = ("heat",) if self.mood == "throttles" else ()
        processes = (1,) if self.mood == "shares" else ()
        return [Reading(0, power_w=100.0, temperature_c=50.0, throttled=throttled, processes=processes)]

    def close(self) -> None:
        pass


def chosen() -> Monitor | None:
    mood = os.environ.get("FAKE_MONITOR")
    if mood == "absent":
        raise FileNotFoundError("no driver library")
    return Monitor(mood) if mood else None
