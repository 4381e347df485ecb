"""Which device a case gets."""

from __future__ import annotations

import os
from dataclasses import dataclass

from harness.vendor import Vendor


@dataclass(frozen=True)
class Assignment:
    """A device for one case: what to set in its process's environment, and whose readings are its own.

    `index` is None where it can't be known, because the user chose devices by another name than their number.
    """

    environment: dict[str, str]
    index: int | None


def usable_devices(vendor: Vendor) -> list[str]:
    """Names of the devices that this session may use, as the vendor's visible-devices variable takes them.

    What the user has put into that variable limits them.
    """
    variable = vendor.visible_devices_variable
    chosen = os.environ.get(variable) if variable else None
    if chosen is not None:
        return [name.strip() for name in chosen.split(",") if name.strip()]
    return [str(device.index) for device in vendor.devices()]


def assign(vendor: Vendor, worker: int) -> Assignment:
    """The device of the session's `worker`-th process, from 0. Without devices there is nothing to assign."""
    names = usable_devices(vendor)
    if worker >= len(names):
        return Assignment({}, None)
    name, variable = names[worker], vendor.visible_devices_variable
    return Assignment({variable: name} if variable else {}, int(name) if name.isdecimal() else None)
