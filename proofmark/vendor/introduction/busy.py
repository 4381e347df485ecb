"""Which of its devices somebody uses, in the words of a vendor's monitor."""

from __future__ import annotations

from proofmark.vendor.contract import Vendor
from proofmark.vendor.readings import Reading

BUSY = 0.2
"""Share of its time that an idle device may compute."""


def busy_devices(vendor: Vendor) -> list[str]:
    """Devices that somebody computes on, and devices that can't be read, each in a line; none where all processes
    share what there is."""
    monitor = vendor.monitor() if vendor.visible_devices_variable else None
    if monitor is None:
        return []
    own = {device.index for device in vendor.devices()}  # the machine's others may be somebody's
    try:
        return [why for reading in monitor.sample() if reading.device in own and (why := _wrong_with(reading))]
    finally:
        monitor.close()


def _wrong_with(reading: Reading) -> str | None:
    if reading.error:
        return f"device {reading.device} cannot be read: {reading.error}"
    if reading.processes:
        return f"device {reading.device} is used by process {', '.join(map(str, reading.processes))}"
    if reading.utilization is not None and reading.utilization > BUSY:
        return f"device {reading.device} is busy: {reading.utilization:.0%}"
    return None
