"""How much of the cores that a session may use others take from it, and how much is left to it."""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

import psutil

from proofmark.record.parts import Contention

CONTENDED = 0.1
"""Share of the cores that others take from which on nobody can tell why an engine is slow."""

STAT = Path("/proc/stat")
"""A line for each core that is on, with its number; in some containers for theirs alone, by numbers of their own."""

KINDS = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")
"""Of a core's time, as such a line has them. What comes after is counted among another kind."""

UNUSED = {"idle", "iowait"}
"""Kinds that nobody computes in."""

FREQUENCIES = "devices/system/cpu/cpu*/cpufreq/scaling_cur_freq"
"""Files below /sys, in kHz; a virtual machine has none."""


class ContentionMeter:
    """All that computes beside the session, from now on: beside this process's parent, and everything that it started;
    and beside what its engines have in containers, which are nobody's children here.

    A case's process is a child of the session's, as is its monitor. What computes on cores that the session may not use
    (`taskset`, a container's set of processors) takes nothing from it, and what is idle there is none of its own.
    """

    def __init__(self, root: int | None = None, apart: Sequence[int] = ()) -> None:
        """`apart` are further processes of its, each with what descends from it."""
        self._roots = (os.getppid() if root is None else root, *apart)
        self._cores, self._usable = _places(_usable(self._roots[0])), _usable_by(self._roots[:1])
        self._begun = time.monotonic()
        self._busy, self._stolen = _machine(self._cores)
        self._ours, self._beside = self._of_session()

    def seen(self) -> Contention:
        """Shares of the cores since the meter was made. What a host takes of a virtual machine is among the others'."""
        capacity = (time.monotonic() - self._begun) * len(self._cores)
        if capacity <= 0:
            return Contention(others=0.0, stolen=0.0, idle=0.0, clock_mhz=clock_mhz())
        busy, stolen = (now - then for now, then in zip(_machine(self._cores), (self._busy, self._stolen), strict=True))
        ours, beside = self._of_session()
        others = busy - (ours - self._ours)
        return Contention(
            others=_share(others, capacity),
            stolen=_share(stolen, capacity),
            beside=max(0.0, beside - self._beside) * len(self._cores) / capacity,
            idle=_share(capacity - busy, capacity),
            clock_mhz=clock_mhz(),
            beyond=self._beyond(),
        )

    def _of_session(self) -> tuple[float, float]:
        """Seconds of all that is the session's, and of what it has started that neither leads it nor is timed here."""
        session, *apart = map(_tree, self._roots)
        timed = _tree(os.getpid()).union(self._roots[:1], *apart)
        return _seconds(session.union(*apart)), _seconds(session - timed)

    def _beyond(self) -> tuple[int, ...]:
        """Cores that something of the session may use, and the session itself may not."""
        ours = set[int]().union(*map(_tree, self._roots))
        return tuple(sorted(_usable_by(ours) - self._usable)) if self._usable else ()


def merged(parts: Sequence[tuple[float, Contention]]) -> Contention | None:
    """The shares over several spans together, each given with its seconds; None where there are none."""
    total = sum(seconds for seconds, _ in parts)
    if not total:
        return None
    mean = {
        name: sum(seconds * getattr(seen, name) for seconds, seen in parts) / total
        for name in ("others", "stolen", "beside", "idle")
    }
    clocks = [seen.clock_mhz for _, seen in parts if seen.clock_mhz is not None]
    beyond = sorted({core for _, seen in parts for core in seen.beyond})
    return Contention(**mean, clock_mhz=min(clocks, default=None), beyond=tuple(beyond))


def clock_mhz() -> float | None:
    """The mean clock of the processor's cores at this moment; None where it can't be read."""
    found = []
    for path in Path("/sys").glob(FREQUENCIES):
        with contextlib.suppress(OSError, ValueError):
            found.append(int(path.read_text(encoding="ascii")) / 1000)
    return sum(found) / len(found) if found else None


def _share(seconds: float, capacity: float) -> float:
    """Of differences of the kernel's counters, whose ticks are hundredths: what is left below a microsecond is rounding
    of theirs."""
    return min(1.0, max(0.0, round(seconds, 6) / capacity))


def _usable(task: int) -> set[int]:
    """Cores that a process or a thread may run on; none of one that has ended."""
    try:
        return os.sched_getaffinity(task)
    except OSError:
        return set()


def _usable_by(processes: Iterable[int]) -> set[int]:
    """Cores that any thread of these processes may run on."""
    found = set[int]()
    for pid in processes:
        with contextlib.suppress(OSError):  # it has ended
            found.update(*(_usable(int(thread)) for thread in os.listdir(f"/proc/{pid}/task")))
    return found


def _places(usable: set[int]) -> list[int]:
    """Those of cores in the kernel's list; all, where that lacks one: then it has numbers of its own."""
    known = _times().keys()
    return sorted(usable if usable and usable <= known else known)


def _machine(cores: Sequence[int]) -> tuple[float, float]:
    """Seconds since the machine was started on some of its cores: of all computing, and of those what a host took."""
    known = _times()
    times = [known[core] for core in cores if core in known]
    busy = sum(seconds for each in times for kind, seconds in each.items() if kind not in UNUSED)
    return busy, sum(each["steal"] for each in times)


def _times() -> dict[int, dict[str, float]]:
    """Seconds of each kind, by the cores' numbers, which psutil leaves out."""
    in_a_second = os.sysconf("SC_CLK_TCK")
    lines = re.findall(r"^cpu(\d+) (.+)$", STAT.read_text(encoding="ascii"), re.MULTILINE)
    return {
        int(core): {kind: int(ticks) / in_a_second for kind, ticks in zip(KINDS, text.split(), strict=False)}
        for core, text in lines
    }


def _seconds(processes: Iterable[int]) -> float:
    """Of processes, and of those that they have waited for: none is lost when it is waited for."""
    seconds = 0.0
    for pid in processes:
        with contextlib.suppress(psutil.Error):  # gone just now
            seconds += sum(psutil.Process(pid).cpu_times()[:4])
    return seconds


def _tree(root: int) -> set[int]:
    """A process, its descendants, and who is in a group or session of theirs, as a helper that a library has forked
    twice is, which is nobody's child any more. Who only shares the root's own may be a neighbour of the user's shell.
    """
    try:
        descendants = {process.pid for process in psutil.Process(root).children(recursive=True)}
    except psutil.Error:
        return set()
    theirs = set[int]().union(*map(_groups, descendants)) - _groups(root)
    return {root} | descendants | {pid for pid in psutil.pids() if not theirs.isdisjoint(_groups(pid))}


def _groups(pid: int) -> set[int]:
    """A process's group and session, by their leaders; none of one that has ended, nor one that is not to be seen."""
    try:
        return {os.getpgid(pid), os.getsid(pid)} - {0}
    except OSError:
        return set()
