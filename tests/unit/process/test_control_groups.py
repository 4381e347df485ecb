"""What control groups leave a process, in trees as both versions of them show one."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from proofmark.errors import StepError
from proofmark.process.control_groups import memory_left, quota_of_processors
from proofmark.process.shared_memory import slots
from proofmark.process.shared_memory.slots import Slot
from proofmark.vendor.hardware import processor
from proofmark.vendor.hardware.processor import physical_cores, usable_cores

STAT = "anon 1\ninactive_file 300\nactive_file 50\ntotal_inactive_file 300\ntotal_active_file 50\n"


def groups(root: Path, own: str, **files: str) -> Path:
    """A file system with a process's groups, `__` in a name for a slash."""
    (root / "proc/self").mkdir(parents=True)
    (root / "proc/self/cgroup").write_text(own)
    for name, text in files.items():
        path = root / "sys/fs/cgroup" / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        (path.with_name(path.name.replace("_", ".", 1))).write_text(text)
    return root


@pytest.mark.parametrize(
    "own, files, cores",
    [
        ("0::/pod/box\n", {"pod__cpu_max": "150000 100000\n", "pod__box__cpu_max": "max 100000\n"}, 2),
        ("0::/pod/box\n", {"pod__cpu_max": "800000 100000\n", "pod__box__cpu_max": "300000 100000\n"}, 3),
        ("0::/\n", {"cpu_max": "50000 100000\n"}, 1),
        ("0::/of/the/host\n", {"cpu_max": "200000 100000\n"}, 2),
        (
            "4:cpu,cpuacct:/box\n",
            {"cpu__box__cpu_cfs_quota_us": "200000\n", "cpu__box__cpu_cfs_period_us": "100000"},
            2,
        ),
        ("4:cpu:/\n0::/\n", {"cpu__cpu_cfs_quota_us": "-1\n", "cpu__cpu_cfs_period_us": "100000\n"}, None),
        ("0::/\n", {"cpu_max": "max 100000\n"}, None),
        ("0::/\n", {"cpu_max": "1 0\n"}, None),
        ("rubbish\n", {}, None),
    ],
)
def test_a_quota_of_processors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, own: str, files: dict[str, str], cores: int | None
) -> None:
    monkeypatch.setattr(processor.os, "sched_getaffinity", lambda pid: set(range(8)))
    groups(tmp_path, own, **files)
    assert quota_of_processors(tmp_path) == cores
    assert usable_cores(tmp_path) == physical_cores(tmp_path) == (cores or 8)
    assert usable_cores(tmp_path / "without") == 8 and quota_of_processors(tmp_path / "without") is None


@pytest.mark.parametrize(
    "own, files, left",
    [
        (
            "0::/pod/box\n",
            {"pod__memory_max": "1000", "pod__memory_current": "900", "pod__box__memory_max": "max"},
            100,
        ),
        ("0::/\n", {"memory_max": "1000", "memory_current": "900", "memory_stat": STAT}, 450),
        ("0::/\n", {"memory_max": "1000", "memory_current": "1200"}, 0),
        ("3:memory:/a\n", {"memory__memory_limit_in_bytes": "1000", "memory__memory_usage_in_bytes": "400"}, 600),
        ("0::/\n", {"memory_max": "max\n", "memory_current": "900\n"}, None),
    ],
)
def test_memory_that_is_left(tmp_path: Path, own: str, files: dict[str, str], left: int | None) -> None:
    assert memory_left(groups(tmp_path, own, **files)) == left


def test_a_slot_that_a_containers_memory_does_not_hold_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(available=1 << 40))
    monkeypatch.setattr(slots, "memory_left", lambda: 2 << 20)  # what lies there is copied once
    Slot.make(1, 1 << 20)
    with pytest.raises(StepError, match="set a smaller batch_size"):
        Slot.make(2, (1 << 20) + 1)
