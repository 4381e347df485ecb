"""What machine this is, and which versions of what run on it."""

from __future__ import annotations

import os
import platform
import socket
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import psutil

from proofmark import __version__
from proofmark.process.control_groups import quota_of_processors
from proofmark.process.versions import version_of
from proofmark.record.provenance import Host, Known
from proofmark.vendor.hardware.container import container_image


def usable_cores(root: Path = Path("/")) -> int:
    """Cores that this process may run on, or as many as it has the time of: a container's may be a part of each."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(cores, max(1, quota_of_processors(root) or cores))


def physical_cores(root: Path = Path("/")) -> int:
    """The physical cores: the threads of one share its arithmetic, and its peak."""
    cpus = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else range(os.cpu_count() or 1)
    topology = (root / f"sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list" for cpu in cpus)
    return min(len({_read(path) or path for path in topology}), usable_cores(root))


def too_many_loaders(config: Mapping[str, Any], processes: int = 1) -> str:
    """What a run that was too slow is told of a configuration whose `num_workers`, of so many processes here, are more
    than the cores of this machine; empty where they are not."""
    workers, cores = config.get("num_workers"), usable_cores()
    if not isinstance(workers, int) or not workers or workers * processes <= cores:
        return ""
    each = f" in each of {processes} processes" if processes > 1 else ""
    return f"num_workers is {workers}{each}, and there are {cores} cores: try --set num_workers={cores // processes}"


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


def microcode(root: Path = Path("/")) -> str | None:
    """The processor's firmware, as x86 has it."""
    text = _read(root / "proc/cpuinfo") or ""
    found = next((line.partition(":")[2].strip() for line in text.splitlines() if line.startswith("microcode")), None)
    return f"microcode {found}" if found else None


def governor(root: Path = Path("/")) -> Known:
    """What sets the clock of the CPU's cores; where they differ, each with how many have it."""
    files = (root / "sys/devices/system/cpu").glob("cpu[0-9]*/cpufreq/scaling_governor")
    found = Counter(text.strip() for file in files if (text := _read(file)))
    if not found:
        return Known(reason="the kernel shows none (no cpufreq): as in most virtual machines")
    if len(found) == 1:
        return Known(value=next(iter(found)))
    return Known(value=", ".join(f"{name} ({count} cores)" for name, count in sorted(found.items())))


def kernel() -> Known:
    """Release and build."""
    found = platform.uname()
    return Known(value=f"{found.system} {found.release} {found.version}".strip())


def _read(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None


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
