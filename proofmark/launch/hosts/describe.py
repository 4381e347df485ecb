"""What a host is, in the vendor's words, as JSON.

`python -m proofmark.launch.hosts.describe VENDOR VENDORS PRECISION DEVICE ISOLATION` has the vendor introduce itself,
as a session does, and closed in, if it is to be.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from proofmark.errors import harmless
from proofmark.plain_json import first_of, parse_json
from proofmark.record.provenance import Chip, Host, Known
from proofmark.vendor.hardware.chips import count_alike, describe_chip
from proofmark.vendor.hardware.machine import describe_host
from proofmark.vendor.hardware.provenance import device_software, vendor_package
from proofmark.vendor.introduction.answers import IntroducedVendor
from proofmark.vendor.introduction.asking import introduce


class Description(BaseModel):
    """What is known of a host in a vendor's words, and nothing else."""

    model_config = ConfigDict(extra="forbid")

    chip: Chip
    host: Host
    devices: Annotated[int, Field(ge=0, lt=1 << 16)]
    busy: list[Annotated[str, AfterValidator(harmless)]]
    package: dict[Literal["vendor_version", "vendor_sha256"], Known]


def main() -> None:
    """Chip, devices and host of this machine.

    The vendor's code runs in another process, which has nothing of this one's environment but what is on the list: it
    could say, in this one's place, which package it is of, and on what host.
    """
    name, vendors_dir, precision, device, isolation = sys.argv[1:6]
    found = introduce(name, Path(vendors_dir), device or None, isolation == "wall", busy=True)
    vendor = found.vendor
    assert isinstance(vendor, IntroducedVendor)
    description = {
        "chip": describe_chip(vendor.chip(), vendor.chip_units(), precision, found.chips_file),
        "host": describe_host(device_software(vendor)),
        "devices": count_alike(vendor, found.chips_file)[0],
        "busy": vendor.busy,
        "package": vendor_package(found),
    }
    print(Description.model_validate(description).model_dump_json())


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
