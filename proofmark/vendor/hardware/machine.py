"""What machine this is, and which versions of what run on it."""

from __future__ import annotations

import platform
import socket
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

import psutil

from proofmark import __version__
from proofmark.process.versions import version_of
from proofmark.record.provenance import Host, Known
from proofmark.vendor.hardware.container import container_image
from proofmark.vendor.hardware.processor import processor_name, text_at, usable_cores


def governor(root: Path = Path("/")) -> Known:
    """What sets the clock of the CPU's cores; where they differ, each with how many have it."""
    files = (root / "sys/devices/system/cpu").glob("cpu[0-9]*/cpufreq/scaling_governor")
    found = Counter(text.strip() for file in files if (text := text_at(file)))
    if not found:
        return Known(reason="the kernel shows none (no cpufreq): as in most virtual machines")
    if len(found) == 1:
        return Known(value=next(iter(found)))
    return Known(value=", ".join(f"{name} ({count} cores)" for name, count in sorted(found.items())))


def kernel() -> Known:
    """Release and build."""
    found = platform.uname()
    return Known(value=f"{found.system} {found.release} {found.version}".strip())


def describe_host(software: Mapping[str, Known] | None = None) -> Host:
    """The machine for the record, with driver, runtime and firmware of its devices where they were asked for."""
    return Host(
        name=socket.gethostname(),
        system=f"{platform.system()} {platform.release()}",
        processor=processor_name(),
        cores=usable_cores(),
        memory_bytes=psutil.virtual_memory().total,
        kernel=kernel(),
        governor=governor(),
        container=container_image(),
        **(software or {}),
    )


def installed_versions(packages: Iterable[str]) -> dict[str, str]:
    """Versions of Proofmark, Python and those of `packages` that are installed. Imports none of them."""
    found = {package: version_of(package) for package in packages}
    known = {package: version for package, version in found.items() if version is not None}
    return {"proofmark": __version__, "python": platform.python_version(), **known}
