"""Which files under /dev may be an accelerator's."""

from __future__ import annotations

import posixpath
import re

DRIVERS = ("/usr/", "/opt/", "/lib/", "/lib64/")
"""Where drivers and runtimes are, and no user's files."""

SETTINGS = ("/etc/", "/run/", "/var/run/")
"""Where a system's administrator and its daemons write what libraries read."""

_DEVICE_FILE = re.compile(r"/dev/[\w.-]+(/[\w.-]+)*")
_HOSTS_OWN = re.compile(
    r"/dev/((k?mem|port|kmsg|console|kvm|fuse|uinput|snapshot|(tty|vcs)\w*|loop-control|(x?v|s|h)d[a-z]{1,2}\d*"
    r"|iommu|ptp\d+|tun|zfs|xpmem|knem|vmci|ublk-control|ublk[bc]\d+|snd(/.*)?|std(in|out|err)|fd(/.*)?"
    r"|cuse|ptmx|userfaultfd|autofs|btrfs-control|v?hci|u?hid(raw\d+)?|vsock|nvram|hpet|cpu_dma_latency"
    r"|(nbd|loop|nvme|ng|mmcblk|dm-|md|zd|sr|sg|n?st|vhost|watchdog|rbd|drbd|bcache|pmem)(\d[\w.-]*|-[\w-]+)?"
    r"|(mtd|ubi|tpm|tpmrm|rtc|i2c-|dax|uio|usbmon|video|media|hwrng|mei|hvc|xvc|fb|gpiochip)\d[\w.-]*"
    r"|(megaraid|mpt)[\w-]*|ipmi(dev)?(\d+|/.*)?"
    r"|(raw|mapper|disk|block|zvol|md|rbd|drbd|bcache|bsg|pts|shm|mqueue|hugepages|input|bus|net|cpu|dma_heap)(/.*)?))"
)
"""The host's memory, disks, terminals and the like."""


def is_drivers(path: str) -> bool:
    """Whether it lies where drivers and runtimes are, by a path that leads nowhere else."""
    return path.startswith(DRIVERS) and path.isprintable() and posixpath.normpath(path) == path


def is_setting(path: str) -> bool:
    """Whether it lies where a system's settings are, by a path that leads nowhere else."""
    return path.startswith(SETTINGS) and path.isprintable() and posixpath.normpath(path) == path


def is_device_file(path: str) -> bool:
    """Whether it has the form of a file under /dev."""
    return bool(_DEVICE_FILE.fullmatch(path)) and posixpath.normpath(path) == path


def is_networks(path: str) -> bool:
    """Whether it is by its name an adapter to other machines, which needs no socket."""
    return path.startswith("/dev/infiniband/")


def is_hosts_own(path: str) -> bool:
    """Whether it is by its name the host's memory, a disk, a terminal or the like, and no accelerator."""
    return bool(_HOSTS_OWN.fullmatch(path))
