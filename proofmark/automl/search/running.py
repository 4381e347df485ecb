"""One trial's process: prepared, begun, watched, and ended."""

from __future__ import annotations

import contextlib
import itertools
import math
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from proofmark.automl.logs.trial_log import epochs_of, events_of, outcome, unreadable
from proofmark.automl.trial.spec import HANDED_OUT, LOG, MOMENTUM, WEIGHTS, Begin, TrialSpec
from proofmark.errors import ProofmarkError
from proofmark.launch.job import SPEC, Handle, Job, Launcher
from proofmark.launch.job_file import FILE, index_in, read_job
from proofmark.launch.reattach import reattached
from proofmark.process.scratch.own_directory import remove
from proofmark.training.heartbeat import SETUP, Heartbeat, Silence, read_heartbeat
from proofmark.vendor.environment import referee_environment_of

HEARTBEAT = ".heartbeat"
BEAT = f"rank0{HEARTBEAT}"

LEAVES = ("agent.log", LOG, HANDED_OUT, "rank[0-9]*.jsonl", "monitor.jsonl", "monitor.err")

MODULE = "proofmark.automl.trial.main"

IMPORTED = (
    "torch.utils.data",
    "torch.utils.flop_counter",
    "torch._dynamo",  # an optimizer's first step imports it
    "safetensors.torch",
    "proofmark.automl.trial.alone",
    "proofmark.automl.trial.work",
    "proofmark.monitoring.summary",
    "proofmark.training.ranks.walled",
    "proofmark.vendor.hardware.devices",
    "proofmark.vendor.readings",
    "proofmark.vendor.registry",
)
"""What a trial's process, its rank and its monitor import, beside what its case does."""


EPOCHS = 4
"""Times a trial's longest epoch that its last one may take after the search's time."""

EVERY = 1.0
"""Seconds between two looks at a trial's sign of life: a driver has thousands of them."""

SAVES = 10.0
"""Seconds of silence in which a trial that has finished computing saves its results, if nothing stalls."""

AGAIN = "it was run again, and nothing is left of the reading before"
"""Why the energy is not known of a trial whose node was lost, or killed it for its memory."""

READINGS = 5
"""Times, each so long after the one before, that what a trial left is read in vain: a network's file system may lose
hold of a file, and find it again."""


class TrialProcess:
    """A trial's job: it makes itself ready, and computes nothing before it is begun.

    Args:
        hang: seconds without a sign of life that mean a hang.
        setup: the same before its first step, after its last one, and where no node runs it. Once the search's time is
            over a trial that has not come to its first step computes none any more: from then on it has `hang`.
        imports: large modules that its case needs.

    Attributes:
        unplaced: whether it was ended since no node ran it.
    """

    def __init__(
        self, spec: TrialSpec, launcher: Launcher, hang: float, setup: float, module: str, imports: Sequence[str] = ()
    ) -> None:
        self.spec = spec
        self._hang, self._setup = hang, setup
        self._since = time.monotonic()
        self._silence = Silence(EVERY, self._since, {})
        self._waiting: Silence | None = None
        self._until = self._seconds = math.inf
        self._late = self._usual = 0.0
        self.unplaced = False
        self._look_at, self._unread = 0.0, 0
        self._why: str | None = None
        cache, parent = spec.config["host"]["cache_dir"], spec.parent
        kept = [Path(parent.folder) / name for name in (WEIGHTS, MOMENTUM)] if parent is not None else []
        self._handle: Handle = launcher.submit(
            Job(
                name=f"{spec.config['suite']}/{spec.config['case']}/trial {spec.trial}",
                module=module,
                spec=spec,
                directory=Path(spec.directory),
                leaves=LEAVES,
                results=(WEIGHTS, MOMENTUM),
                beats=(BEAT,),
                brings={path.name: path for path in kept if path.exists()},
                index=index_in(cache),
                sys_path=spec.sys_path,
                begins="the trial starts",
                imports=imports,
                environment=referee_environment_of(spec.config["host"]),
            )
        )

    def begin(
        self, environment: Mapping[str, str], seconds: float | None, here: bool = False, usual: float = 0.0
    ) -> None:
        """A device is free.

        Args:
            environment: variables that give the trial that device.
            seconds: after which it begins no epoch; None for never.
            here: whether it runs on this machine, by whose clock they count from now, however late it hears of them.
            usual: seconds of the longest epoch before it; its own first one may be as long.
        """
        self._usual = usual
        self._since = time.monotonic()
        self._silence = Silence(EVERY, self._since, {})
        self._seconds = math.inf if seconds is None else seconds
        self._until = self._since + self._seconds
        self._handle.tell(Begin(dict(environment), seconds, time.perf_counter_ns() if here else None).line)

    @property
    def waits(self) -> bool:
        """Whether no node runs it at the moment."""
        return self._handle.waits

    @property
    def has_let_go(self) -> bool:
        """Whether it has finished computing, and only saves its results."""
        beat = read_heartbeat(self.spec.folder / BEAT)
        return beat is not None and beat.phase == "end"

    @property
    def ends(self) -> bool:
        """Whether its end is a matter of seconds: what saves its results for longer may be waiting for a disk."""
        last = self._silence.last
        stalls = last is not None and last.phase == "end" and self._silence.seconds > SAVES
        return self.has_let_go and not stalls

    def poll(self) -> dict[str, Any] | None:
        """Its outcome, as fields of the journal's `trial_end`; None while it runs. A trial that hangs is ended, and so
        is one whose files can't be read."""
        if self._unread and time.monotonic() < self._look_at:
            return None
        try:
            ended = self._ended()
        except OSError as error:
            self._unread, self._look_at = self._unread + 1, time.monotonic() + EVERY
            if self._unread < READINGS:
                return None
            with contextlib.suppress(OSError):
                self.stop()
            return unreadable(error)
        self._unread = 0
        return ended

    @property
    def left(self) -> str:
        """What is to be said of it where some of it goes on though it was killed: its device is nobody else's."""
        return self._handle.left

    def _ended(self) -> dict[str, Any] | None:
        status = self._handle.status()
        if status == "running" and self._is_due():
            self._why = self._why or self._hung()
        if status == "running" and self._why is None:
            return None
        self.stop()
        spec, well = self.spec, status == "succeeded"
        ended = outcome(spec.folder, spec.epochs, well, self._why, self._handle.clock_ahead)
        if self._handle.anew:
            ended["energy"] = {"joules": None, "reason": AGAIN, "method": None}
        return ended | ({"reason": f"{ended['reason']}{self.left}"} if ended["reason"] else {})

    def epochs(self) -> list[dict[str, Any]]:
        """The epochs that it has reported so far.

        Raises:
            OSError: its log can't be read.
        """
        return list(epochs_of(list(events_of(self.spec.folder)), self._handle.clock_ahead))

    def stop(self) -> None:
        """End it, and remove what only its processes had use for: a search may have very many trials."""
        self._handle.stop()
        tidy_up(self.spec)

    def _is_due(self) -> bool:
        """Whether its sign of life is to be looked at."""
        now = time.monotonic()
        if now < self._look_at:
            return False
        self._look_at = now + EVERY
        return True

    def _hung(self) -> str | None:
        """Why it is to be ended. Time in which this process stood still does not count: the trial may have done so too,
        as in a job that was suspended."""
        now = time.monotonic()
        if self._handle.waits:
            return self._unplaced(now)
        self._waiting = None
        beat = read_heartbeat(self.spec.folder / BEAT)
        awake = self._silence.look(beat, now)
        if overdue := self._overdue(awake if now > self._since + self._seconds else 0.0):
            return overdue
        silent, patience = self._silence.seconds, self._patience_in(beat)
        where = f"in {beat.phase}, step {beat.step}" if beat else "before it said anything"
        return f"it hung: no sign of life for {silent:.0f} s, {where}" if silent > patience else None

    def _overdue(self, more: float) -> str | None:
        """Why it is waited for no longer, whatever signs of life it gives: it has had time to end its last epoch, as
        long as its epochs are by its own word, or others' before it has one.

        Args:
            more: seconds by which it is later than at the look before.
        """
        self._late = late = self._late + more
        if late <= self._setup:
            return None
        longest = max(0.0, min(longest_of(self.epochs()), self._seconds)) or self._usual
        allowed = self._setup + EPOCHS * longest
        return f"it goes on {late:.0f} s after the search's time" if late > allowed else None

    def _patience_in(self, beat: Heartbeat | None) -> float:
        if beat is None or beat.phase in SETUP:
            return self._before_steps
        slow = beat.step == beat.first or beat.phase == "end"  # it compiles, or saves its weights
        return self._setup if slow else self._silence.enough(beat.phase, self._hang)

    @property
    def _before_steps(self) -> float:
        return self._hang if time.monotonic() > self._until else self._setup

    def _unplaced(self, now: float) -> str | None:
        """Why it is waited for no longer, where no node runs it."""
        self._since, self._late = now, 0.0
        self._silence = Silence(EVERY, now, {})
        self._waiting = self._waiting or Silence(EVERY, now, {})
        self._waiting.look(None, now)
        waited = self._waiting.seconds
        self.unplaced = waited > self._before_steps
        return f"no node has run it for {waited:.0f} s" if self.unplaced else None


def longest_of(epochs: Sequence[Mapping[str, Any]]) -> float:
    """Seconds of the longest of a trial's epochs, by its own word; 0 before it has one."""
    clocks = [float(epoch["clock"] / 1e9) for epoch in epochs]
    return max((0.0, *(later - earlier for earlier, later in itertools.pairwise(clocks))))


def make_anew(directory: Path) -> None:
    """Make a trial's directory. Where that of an earlier driver lies there, which was killed, what it has started is
    ended before: it may see only later that nobody speaks to it, and would write there, and remove what it finds.

    Raises:
        OSError: it can't be made.
    """
    with contextlib.suppress(ProofmarkError, OSError):  # there is none, or nothing that says what it started
        if (left := read_job(directory / FILE)).state() == "lost":
            reattached(left).stop()
    remove(directory)
    directory.mkdir(parents=True)


def tidy_up(spec: TrialSpec) -> None:
    """Remove what a trial's processes, maybe killed, have left, other than logs and results."""
    for directory in spec.own_directories:
        remove(directory)
    Path(spec.directory, SPEC).unlink(missing_ok=True)
    for path in spec.folder.glob("*"):
        with contextlib.suppress(FileNotFoundError):  # somebody else removed it first
            if not path.is_dir() and (path.suffix == HEARTBEAT or not path.lstat().st_size):
                path.unlink()
