"""What a host is, in the vendor's words, as JSON: `python -m proofmark.launch.hosts.describe VENDOR VENDORS DEVICE`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from proofmark.vendor.contract import Vendor
from proofmark.vendor.hardware.chips import describe_chip
from proofmark.vendor.hardware.machine import describe_host
from proofmark.vendor.hardware.provenance import device_software, vendor_package
from proofmark.vendor.readings import Reading
from proofmark.vendor.registry import find_vendor

BUSY = 0.2
"""Share of its time that an idle device may compute."""


def main() -> None:
    """Chip, devices and host of this machine."""
    name, vendors_dir, precision, device = sys.argv[1:5]
    found = find_vendor(name, Path(vendors_dir), device or None)
    vendor = found.vendor
    chip = describe_chip(vendor.chip(), vendor.chip_units(), precision, found.chips_file)
    facts_here = {
        "chip": chip.model_dump(),
        "host": describe_host(device_software(vendor)).model_dump(),
        "devices": len(vendor.devices()),
        "busy": busy(vendor),
        "package": {name: known.model_dump() for name, known in vendor_package(found).items()},
    }
    print(json.dumps(facts_here))


def busy(vendor: Vendor) -> list[str]:
    """Devices that somebody computes on, and devices that can't be read."""
    monitor = vendor.monitor() if vendor.visible_devices_variable else None
    if monitor is None:
        return []
    try:
        return [problem for reading in monitor.sample() if (problem := _wrong_with(reading))]
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


def facts(output: str) -> dict[str, Any]:
    """Read what `main` printed, after whatever libraries printed.

    Raises:
        ValueError: it is not there.
    """
    return dict(json.loads(output.strip().splitlines()[-1]))


if __name__ == "__main__":
    main()
