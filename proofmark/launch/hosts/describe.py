"""What a host is, in the vendor's words, as JSON.

`python -m proofmark.launch.hosts.describe VENDOR VENDORS PRECISION DEVICE ISOLATION` closes itself in, if it is to,
before it asks the vendor.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from proofmark.errors import harmless
from proofmark.plain_json import first_of, parse_json
from proofmark.record.provenance import Chip, Host, Known
from proofmark.vendor.contract import Vendor
from proofmark.vendor.hardware.chips import describe_chip
from proofmark.vendor.hardware.machine import describe_host
from proofmark.vendor.hardware.provenance import device_software, vendor_package
from proofmark.vendor.isolation import VendorPlace
from proofmark.vendor.readings import Reading
from proofmark.vendor.registry import FoundVendor, find_vendor
from proofmark.wall.wall import Wall

BUSY = 0.2
"""Share of its time that an idle device may compute."""


class Description(BaseModel):
    """What is known of a host in a vendor's words, and nothing else."""

    model_config = ConfigDict(extra="forbid")

    chip: Chip
    host: Host
    devices: Annotated[int, Field(ge=0, lt=1 << 16)]
    busy: list[Annotated[str, AfterValidator(harmless)]]
    package: dict[Literal["vendor_version", "vendor_sha256"], Known]


def main() -> None:
    """Chip, devices and host of this machine."""
    name, vendors_dir, precision, device, isolation = sys.argv[1:6]
    host = describe_host()  # the vendor can't see all of that
    with tempfile.TemporaryDirectory() as own:
        os.environ |= {"HOME": own, "TMPDIR": own}
        tempfile.tempdir = None
        if isolation == "wall":
            VendorPlace.of(name, Path(vendors_dir)).enter(Wall(writable=(Path(own),)))
        described = _in_its_words(find_vendor(name, Path(vendors_dir), device or None), precision, host)
    print(json.dumps(described))


def _in_its_words(found: FoundVendor, precision: str, host: Host) -> dict[str, Any]:
    vendor = found.vendor
    chip = describe_chip(vendor.chip(), vendor.chip_units(), precision, found.chips_file)
    return {
        "chip": chip.model_dump(),
        "host": host.model_copy(update=device_software(vendor)).model_dump(),
        "devices": len(vendor.devices()),
        "busy": busy(vendor),
        "package": {name: known.model_dump() for name, known in vendor_package(found).items()},
    }


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
    """Read what `main` printed, after whatever libraries printed. Vendor's code may have printed it.

    Raises:
        ValueError: it is not there; the text is one line.
    """
    try:
        lines = output.strip().splitlines() or ["nothing"]
        return Description.model_validate(parse_json(lines[-1])).model_dump(mode="json")
    except ValidationError as error:
        raise ValueError(f"it sent an invalid description: {first_of(error)}") from None
    except (ValueError, RecursionError):
        raise ValueError(f"it sent an invalid description: {harmless(lines[-1][:200])}") from None


if __name__ == "__main__":
    main()
