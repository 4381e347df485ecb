"""A node's ranks as processes: which they are, whether they live, and their end."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Mapping
from pathlib import Path

import psutil

from proofmark.process.lifetime import DYING, wait_without_reaping
from proofmark.training.heartbeat import Heartbeat, read_heartbeat


class RankProcesses:
    """Those of this process's ranks.

    Args:
        directory: in which their heartbeats are.
        ranks: their numbers.
        started: the process of each, as far as it was this one that started it.
    """

    def __init__(self, directory: Path, ranks: range, started: Mapping[int, int]) -> None:
        self._directory, self._ranks, self._started = directory, ranks, started

    def of(self, rank: int) -> int | None:
        """A rank's process, which leads its group. Only where torchrun has started it its own way is that the rank's
        word."""
        pid = self._started.get(rank) or ((heartbeat := self.heartbeat(rank)) and heartbeat.pid)
        return pid if pid and _is_ours(pid) else None

    def heartbeat(self, rank: int) -> Heartbeat | None:
        """The sign of life that a rank has given last."""
        return read_heartbeat(self._directory / f"rank{rank}.heartbeat")

    def lives(self, rank: int) -> bool:
        """Whether a rank has not ended."""
        pid = self.of(rank)
        try:
            return pid is not None and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
        except psutil.NoSuchProcess:
            return False

    def has_died(self, rank: int) -> bool:
        """Whether a rank that this process has started has ended, and torchrun has not looked yet."""
        with contextlib.suppress(psutil.NoSuchProcess):
            if pid := self._started.get(rank):
                return bool(psutil.Process(pid).status() == psutil.STATUS_ZOMBIE)
        return False

    def end(self) -> None:
        """Kill each rank's process group: its loader workers are in it."""
        for rank in self._ranks:
            if pid := self.of(rank):
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(pid, signal.SIGKILL)

    def outlived(self) -> dict[int, int]:
        """By rank, the processes that go on `DYING` seconds from now, after they were killed."""
        deadline, pids = time.monotonic() + DYING, {rank: pid for rank in self._ranks if (pid := self.of(rank))}
        return {rank: pid for rank, pid in pids.items() if not wait_without_reaping(pid, deadline - time.monotonic())}


def _is_ours(pid: int) -> bool:
    """Whether a rank's id still means that rank. While a group lives its id is not given to another process."""
    try:
        return bool(psutil.Process(pid).ppid() == os.getpid())
    except psutil.NoSuchProcess:
        return True
