"""Where a search's trials run: in each place one at a time, on the devices of that place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from proofmark.errors import UsageError
from proofmark.launch.job import Launcher, LocalLauncher
from proofmark.launch.launchers import TaskCluster
from proofmark.vendor.hardware.chips import count_alike
from proofmark.vendor.hardware.devices import usable_devices
from proofmark.vendor.registry import FoundVendor


@dataclass(frozen=True)
class Places:
    """All of them.

    Attributes:
        launcher: what starts a trial's process.
        environments: variables that give a trial its devices, for each place.
        devices: in all places.
        here: whether they are this machine's: a trial's process may then make itself ready before a place is free.
        ours: whether trials descend from the session: what others take of its machine has theirs in it otherwise.
    """

    launcher: Launcher
    environments: tuple[Mapping[str, str], ...]
    devices: int
    here: bool = True
    ours: bool = True


def places_here(found: FoundVendor, each: int) -> Places:
    """This machine's devices, `each` to a place. All of a processor's cores are one device, whatever shares them. Where
    no variable tells trials which devices are theirs there is one place: each takes the first ones.

    Raises:
        UsageError: there are not so many, or they are not one chip.
    """
    vendor = found.vendor
    variable = vendor.visible_devices_variable
    if vendor.torch_device() == "cpu":
        return Places(LocalLauncher(), ({},), 1)
    names, (alike, then) = usable_devices(vendor), count_alike(vendor, found.chips_file)
    if alike < len(names) and (variable or alike < each):
        raise UsageError(f"a search runs on devices of one chip; vendor {found.name} has {alike} here{then}")
    groups = [names[start : start + each] for start in range(0, len(names) - each + 1, each)][: None if variable else 1]
    if not groups:
        what = f"expected at most the {len(names)} devices that vendor {found.name} has here, found {each}"
        raise UsageError(f"devices_per_trial: {what}")
    environments = tuple({variable: ",".join(group)} if variable else {} for group in groups)
    return Places(LocalLauncher(), environments, len(groups) * each)


def places_of_tasks(cluster: TaskCluster, found: FoundVendor, each: int) -> Places:
    """What others place trials on, and give them their devices: of a node's processor all cores are one.

    Raises:
        UsageError: there is no room for a trial, or nothing gives each its own devices.
    """
    variable = found.vendor.visible_devices_variable
    count = cluster.places(each, variable)
    devices = count if found.vendor.torch_device() == "cpu" else count * each
    return Places(cluster.launcher(each, variable), ({},) * count, devices, here=False, ours=cluster.ours)
