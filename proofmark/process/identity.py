"""A process by more than its number, which another may have tomorrow: when it was started, and in which boot."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from proofmark.process.wall_clock import boot


@dataclass(frozen=True)
class ProcessIdentity:
    """A process of this machine.

    Attributes:
        pid: its number.
        ticks: when it was started, in the kernel's ticks since boot; None where nobody knows, and then it is taken for
            gone.
        boot: of which start of the machine.
    """

    pid: int
    ticks: int | None
    boot: str

    @classmethod
    def of(cls, pid: int) -> ProcessIdentity:
        """The one that has this number now."""
        return cls(pid, _ticks(pid), boot())

    def lives(self) -> bool:
        """Whether it runs still."""
        return self.ticks is not None and self == ProcessIdentity.of(self.pid)

    def is_anothers(self) -> bool:
        """Whether its number belongs to another process now."""
        return not self.lives() and _ticks(self.pid) is not None


def _ticks(pid: int) -> int | None:
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return None
    state, *fields = stat.rpartition(b")")[2].split()  # a process may call itself ") R 1"
    return None if state in (b"Z", b"X") else int(fields[18])
