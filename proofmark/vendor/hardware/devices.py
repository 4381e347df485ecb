"""Which device a case gets, and where one was looked for that is not there."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from proofmark.errors import UsageError
from proofmark.vendor.contract import Vendor
from proofmark.vendor.hardware.container import container_kind
from proofmark.wall.isolation import Isolation


@dataclass(frozen=True)
class Assignment:
    """A device for one case: what to set in its process's environment, and whose readings are its own.

    `index` is None where it can't be known: see `usable_indices`.
    """

    environment: dict[str, str]
    index: int | None


def usable_devices(vendor: Vendor) -> list[str]:
    """Names of the devices that this session may use, as the vendor's visible-devices variable takes them.

    What the user has put into that variable limits them.

    Raises:
        UsageError: a range is among them, which would be one case's as if it were one device.
    """
    variable = vendor.visible_devices_variable
    chosen = os.environ.get(variable) if variable else None
    if chosen is None:
        return [str(device.index) for device in vendor.devices()]
    names = [name.strip() for name in chosen.split(",") if name.strip()]
    if ranges := [name for name in names if re.fullmatch(r"\d+-\d+", name)]:
        what = f"{ranges[0]} is a range; expected each device by itself, as in 0,1,2,3"
        raise UsageError(f"{variable}={chosen}: {what}")
    return names


def usable_indices(vendor: Vendor) -> list[int | None]:
    """The numbers of the same devices, as a monitor counts them.

    The user may have chosen them by another name: then they are those of the devices that the vendor finds, in that
    order; None where those are not as many.
    """
    names = usable_devices(vendor)
    if not all(map(str.isdecimal, names)):
        devices = vendor.devices()
        if len(devices) == len(names):
            return [device.index for device in devices]
    return [int(name) if name.isdecimal() else None for name in names]


def assign(vendor: Vendor, worker: int) -> Assignment:
    """The device of the session's `worker`-th process, from 0. Without devices there is nothing to assign."""
    names = usable_devices(vendor)
    if worker >= len(names):
        return Assignment({}, None)
    name, variable = names[worker], vendor.visible_devices_variable
    return Assignment({variable: name} if variable else {}, usable_indices(vendor)[worker])


def limits_to_all(vendor: Vendor) -> dict[str, str]:
    """What has a process see all of the vendor's devices, and no others: one that is divided, or does not answer, may
    be counted by the runtime and not by the vendor.

    Nothing where the user has said which, and the vendor finds as many or none, or there is no such variable.
    """
    variable = vendor.visible_devices_variable
    if variable is None:
        return {}
    names = usable_devices(vendor)
    if variable not in os.environ:
        return {variable: ",".join(names)}
    found = len(vendor.devices())
    return {variable: ",".join(names[:found])} if 0 < found < len(names) else {}


def no_device(name: str, vendor: Vendor, file: Path, isolation: Isolation | None = None) -> str:
    """Say that a vendor has no device here, and what was looked for and found, a line each.

    Args:
        name: the vendor's.
        vendor: whose devices were looked for.
        file: of its package, beside which its isolation.yaml lies.
        isolation: how it was kept from the rest meanwhile.
    """
    looked_for = vendor.devices_sought() or ["the vendor does not say (devices_sought())"]
    sought = [*looked_for, _variable_note(vendor), _wall_note(name, file, isolation), _container_note(vendor)]
    first = f"vendor {name} finds no device on this machine ({file}: devices()). What was looked for:"
    lines = [first, *filter(None, sought)]
    return "\n  ".join(" ".join(line.split()) for line in lines)


def _variable_note(vendor: Vendor) -> str | None:
    variable = vendor.visible_devices_variable
    if variable is None:
        return None
    chosen = os.environ.get(variable)
    if chosen is None:
        return f"{variable}: not set, so it hides none"
    return f"{variable}: set to {chosen!r}, so that no other device is seen; unset it to see all"


def _wall_note(name: str, file: Path, isolation: Isolation | None) -> str | None:
    if isolation is None or isolation.kind != "wall":
        return None
    shown = ", ".join(isolation.devices) or "none"
    named = f"{file.with_name('isolation.yaml')} must name others, as devices: [/dev/{name}*]"
    return (
        f"wall: the device files that its code could open: {shown}; {named}; --isolation process looks without a wall"
    )


def _container_note(vendor: Vendor) -> str | None:
    kind = container_kind()
    if kind is None:
        return "container: none detected"
    options = " ".join(vendor.container_options)
    hint = (
        f"it has the devices if it was started with {options}" if options else "it may not have been given the devices"
    )
    return f"container: running in one ({kind}); {hint}"
