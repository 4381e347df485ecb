"""What machine this is, and which versions of what run on it."""

from __future__ import annotations

import os
import platform
import socket
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import psutil

from harness import __version__
from harness.record import Host


def usable_cores() -> int:
    """Cores that this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def processor_name() -> str:
    """The CPU's name as the kernel gives it, with family and model where x86 has them."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    fields: dict[str, str] = {}
    for line in lines:
        key, _, value = line.partition(":")
        fields.setdefault(key.strip(), value.strip())
    name = fields.get("model name") or platform.processor() or platform.machine()
    if "cpu family" in fields:
        name += f" (family {fields['cpu family']} model {fields.get('model', '?')})"
    return name


def describe_host() -> Host:
    """The machine for the record."""
    return Host(
        name=socket.gethostname(),
        system=f"{platform.system()} {platform.release()}",
        processor=processor_name(),
        cores=usable_cores(),
        memory_bytes=psutil.virtual_memory().total,
    )


def installed_versions(packages: Iterable[str]) -> dict[str, str]:
    """Versions of Proofmark, Python and those of `packages` that are installed. Imports none of them."""
    versions = {"proofmark": __version__, "python": platform.python_version()}
    for package in packages:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            continue
    return versions
