"""This machine's processor: its name and its cores, by the kernel's files alone."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from proofmark.process.control_groups import quota_of_processors


def usable_cores(root: Path = Path("/")) -> int:
    """Cores that this process may run on, or as many as it has the time of: a container's may be a part of each."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(cores, max(1, quota_of_processors(root) or cores))


def physical_cores(root: Path = Path("/")) -> int:
    """The physical cores: the threads of one share its arithmetic, and its peak."""
    cpus = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else range(os.cpu_count() or 1)
    topology = (root / f"sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list" for cpu in cpus)
    return min(len({text_at(path) or path for path in topology}), usable_cores(root))


def too_many_loaders(config: Mapping[str, Any], processes: int = 1) -> str:
    """What a run that was too slow is told of a configuration whose `num_workers`, of so many processes here, are more
    than the cores of this machine; empty where they are not."""
    workers, cores = config.get("num_workers"), usable_cores()
    if not isinstance(workers, int) or not workers or workers * processes <= cores:
        return ""
    each = f" in each of {processes} processes" if processes > 1 else ""
    return f"num_workers is {workers}{each}, and there are {cores} cores: try --set num_workers={cores // processes}"


def processor_name(root: Path = Path("/")) -> str:
    """The CPU's name as the kernel gives it, with family and model where x86 has them, and with the designs of its
    cores on ARM, which has no name there."""
    lines = (line.partition(":") for line in (text_at(root / "proc/cpuinfo") or "").splitlines())
    pairs = [(key.strip(), value.strip()) for key, _, value in lines]
    fields = dict(reversed(pairs))  # the first core's
    name = fields.get("model name") or platform.processor() or platform.machine()
    if "cpu family" in fields:
        name += f" (family {fields['cpu family']} model {fields.get('model', '?')})"
    elif "CPU part" in fields:
        parts = dict.fromkeys(value for key, value in pairs if key == "CPU part")
        name += f" (implementer {fields.get('CPU implementer', '?')} part {', '.join(parts)})"
    return name


def microcode(root: Path = Path("/")) -> str | None:
    """The processor's firmware, as x86 has it."""
    text = text_at(root / "proc/cpuinfo") or ""
    found = next((line.partition(":")[2].strip() for line in text.splitlines() if line.startswith("microcode")), None)
    return f"microcode {found}" if found else None


def text_at(path: Path) -> str | None:
    """A file of the kernel's; None where it can't be read."""
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
