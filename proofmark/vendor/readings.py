"""What a vendor's monitor reads of its devices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class Reading:
    """One device at one moment. None is a sensor that can't be read: never 0 in its place.

    Attributes:
        device: its index.
        temperature_c: degrees Celsius.
        power_w: watts.
        energy_j: joules since some moment, from a cumulative counter.
        memory_used_bytes: used on the device, by whomever.
        memory_total_bytes: what the device has.
        utilization: share of time in which it computed, 0 to 1.
        clock_mhz: of its compute units.
        throttled: why it runs slower than it could (heat, power, ...); empty if it doesn't.
        processes: ids of the processes that use it, as this host counts them.
        error: why the device could not be read, in a sentence; the others are read all the same.
    """

    device: int
    temperature_c: float | None = None
    power_w: float | None = None
    energy_j: float | None = None
    memory_used_bytes: int | None = None
    memory_total_bytes: int | None = None
    utilization: float | None = None
    clock_mhz: float | None = None
    throttled: tuple[str, ...] | None = None
    processes: tuple[int, ...] | None = None
    error: str | None = None


class Monitor(Protocol):
    """Reads a vendor's devices. Lives in a process of its own, which samples it once a second, and where it tells of an
    energy counter, when a timed round of an inference begins and ends."""

    def sample(self) -> list[Reading]:
        """One reading of each device, with an `error` in that of one that does not answer.

        What it raises is recorded; the next sample is tried all the same.
        """

    def close(self) -> None:
        """Let go of the devices."""
