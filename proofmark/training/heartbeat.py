"""A rank's sign of life: where it is, in a few bytes of shared memory that cost a step nothing to renew."""

from __future__ import annotations

import math
import mmap
import os
import struct
import time
from dataclasses import dataclass
from pathlib import Path

PHASES = ("start", "init", "data", "recording", "compute", "evaluation", "scoring", "checkpoint", "end")
"""What a rank does, in the order of a step: of two ranks at the same step the earlier phase is the one behind."""

SETUP = PHASES[:2]
"""Those before its first step."""

WITHIN = PHASES[2:5]
"""Those of a step that isn't taken yet: what is evaluated and kept is after the last one that was."""

AWAKE = 3.0
"""Between two looks at a rank's sign, no more time than so many times the usual counts as its silence."""

FACTOR = 3.0
"""A phase may take so many times the longest that it has taken before: a new shape is compiled anew."""

_LAYOUT = struct.Struct("=qqqqd")

_PIDS, _STEPS = 1 << 22, 1 << 48
"""More than Linux has ids for processes, and than a training has steps."""


@dataclass(frozen=True)
class Heartbeat:
    """A rank's process, the steps that it has taken, the phase that it is in, and since when (time.monotonic of its
    host).

    `first` is the step that this process began with: it is above 0 where a training goes on from a checkpoint.
    """

    pid: int
    first: int
    step: int
    phase: str
    since: float

    @property
    def position(self) -> tuple[int, int]:
        """How far it is: of two ranks the lesser one is behind."""
        return self.step + (self.phase in WITHIN), PHASES.index(self.phase)


class HeartbeatWriter:
    """The rank's end."""

    def __init__(self, path: Path) -> None:
        path.write_bytes(bytes(_LAYOUT.size))
        with path.open("r+b") as stream:
            self._memory = mmap.mmap(stream.fileno(), _LAYOUT.size)
        self._pid = os.getpid()
        self.first = 0
        self(0, "start")

    def __call__(self, step: int, phase: str) -> None:
        """Say that `phase` of `step` has begun, or goes on."""
        beat = _LAYOUT.pack(self._pid, self.first, step, PHASES.index(phase), time.monotonic())
        self._memory[:] = beat  # packed there, it would be all zeros for a moment: no sign, to whoever looks then


def read_heartbeat(path: Path) -> Heartbeat | None:
    """The last sign of a rank, None before its first; and of a rank whose code has put there what can be no sign."""
    try:
        pid, first, step, phase, since = _LAYOUT.unpack(path.read_bytes())
    except (OSError, struct.error):
        return None
    whole = 0 < pid <= _PIDS and 0.0 < since < math.inf  # and not half written
    if whole and 0 <= first < _STEPS and 0 <= step < _STEPS and 0 <= phase < len(PHASES):
        return Heartbeat(pid, first, step, PHASES[phase], since)
    return None


class Silence:
    """How long a rank has given no sign, as counted by who looks at its last one now and then.

    Where that one stood still, as in a job that is suspended, the rank may have done so too: that time does not count.

    Args:
        every: seconds between two looks.
        now: by the clock of who looks.
        longest: seconds that each phase has taken so far; added to, and maybe shared with other ranks.

    Attributes:
        last: its last sign, at the last look.
        seconds: of silence since then.
    """

    def __init__(self, every: float, now: float, longest: dict[str, float]) -> None:
        self._every, self._looked, self._longest = every, now, longest
        self.last: Heartbeat | None = None
        self.seconds = 0.0

    def look(self, beat: Heartbeat | None, now: float) -> float:
        """Take its last sign; return the seconds since the look before, as far as they count."""
        awake, self._looked = min(now - self._looked, AWAKE * self._every), now
        self.seconds += awake
        if beat != self.last:
            if (before := self.last) is not None:
                self._longest[before.phase] = max(self._longest.get(before.phase, 0.0), self.seconds)
            self.last, self.seconds = beat, 0.0
        return awake

    def enough(self, phase: str, hang: float) -> float:
        """Seconds of silence that mean a hang in a phase, which are at least `hang`: more than it has taken so far."""
        return max(hang, FACTOR * self._longest.get(phase, 0.0))
