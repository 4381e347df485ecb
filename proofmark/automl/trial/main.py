"""A trial's process: `python -m proofmark.automl.trial.main SPEC NODE`. It ends when its standard input closes.

It runs none of the vendor's code. Its rank makes ready what needs no device, and trains when a line says which one it
has; where it has several, a rank on each does, under torchrun.
"""

from __future__ import annotations

import contextlib
import faulthandler
import os
import queue
import socket
import sys
import threading
import time
from pathlib import Path
from typing import Any, NoReturn

from proofmark.automl.trial.failing import failures_logged
from proofmark.automl.trial.spec import LOG, MOMENTUM, WEIGHTS, Begin, TrialSpec
from proofmark.errors import reason
from proofmark.launch.spec import temporary_of
from proofmark.process.environment import let_pass
from proofmark.process.lifetime import adopt_orphans, end_own_group, end_started, leave, tidy_at_exit
from proofmark.process.scratch.own_directory import remove
from proofmark.process.scratch.quota import EVERY, Quota
from proofmark.process.threads import threads_of_quota
from proofmark.process.wall_clock import now
from proofmark.process.warm.modules import split_off
from proofmark.record.events.log import EventLog
from proofmark.vendor.environment import declared_of, referee_environment_of


def main() -> int:
    """Run the trial, and leave behind why not, if not."""
    spec = TrialSpec.load(Path(sys.argv[1]))
    host = spec.config["host"]
    os.environ |= (given := referee_environment_of(host))
    let_pass(given)
    adopt_orphans()  # who loads a rank's data ends with the rank
    if spec.nproc == 1:
        split_off(())  # this process has what its rank and its monitor import
        os.environ |= threads_of_quota()
    else:
        from proofmark.training.node.agent_forks import fork_ranks

        fork_ranks(declared_of(host))
    instructions = Instructions(spec)
    tidy_at_exit(leaves_results=True)
    faulthandler.enable()
    log = EventLog(spec.folder / LOG)
    log.write("trial_begin", trial=spec.trial, pid=os.getpid(), host=socket.gethostname())
    threading.Thread(target=_watch_over, args=(spec, log), daemon=True).start()
    with failures_logged(log) as outcome:
        if not _run(spec, instructions, log):
            return 1
        log.write("trial_end", trial=spec.trial)
    return outcome.code


class Instructions(threading.Thread):
    """Standard input: its first line says that the trial may begin; when it closes the driver is gone, or wants it to
    end."""

    def __init__(self, spec: TrialSpec) -> None:
        super().__init__(daemon=True)
        self._spec, self._lines = spec, queue.SimpleQueue[tuple[bytes, int]]()
        self.start()

    def run(self) -> None:
        """Until it closes; then everything ends."""
        with contextlib.suppress(OSError):
            self._lines.put((sys.stdin.buffer.readline(), time.perf_counter_ns()))
            while os.read(0, 4096):
                pass
        _end_all(self._spec)

    def begin(self) -> Begin:
        """Wait for its word."""
        return Begin.of(*self._lines.get())


def _watch_over(spec: TrialSpec, log: EventLog) -> None:
    """End all of it where a rank keeps more than it may."""
    kept = [*spec.own_directories, *map(temporary_of, spec.own_directories)]
    quota = Quota(kept, spec.config["host"]["scratch_limit"] * (1 << 30))
    while not (full := quota.exceeded()):
        time.sleep(EVERY)
    log.write("trial_failed", reason=f"it {full}, and was ended")
    _end_all(spec)


def _end_all(spec: TrialSpec) -> NoReturn:
    """End this process and all that it has started; nothing of a rank's own stays."""
    end_started()
    _clear(spec)
    end_own_group()


def _run(spec: TrialSpec, instructions: Instructions, log: EventLog) -> bool:
    """Whether it came to a good end."""
    from proofmark.automl.trial.alone import RankAlone
    from proofmark.automl.trial.handed_out import HandedOut
    from proofmark.training.node.node_monitor import NodeMonitor

    handed = HandedOut(spec)
    alone = RankAlone(spec, sys.argv[1], handed) if spec.nproc == 1 else None
    begin = instructions.begin()
    os.environ |= begin.environment
    begun, good = now(), True
    if alone is not None:
        alone.begin(begin)  # it does not wait for the monitor
    monitor = NodeMonitor(spec.training(), spec.folder, log)
    try:
        if alone is not None:
            good = alone.wait(log)
        else:
            from proofmark.automl.trial.several import run_ranks

            good = run_ranks(spec, begin.deadline(), log, handed)
    finally:
        ended = now()
        monitor.stop()
        _take(spec)
        handed.tell()
    log.write("energy", **energy_of(spec.folder, (begun, ended), spec.monitor_interval is not None))
    return good


def _take(spec: TrialSpec) -> None:
    """What the trial leaves its children, out of its rank's own directory, of which nothing stays."""
    for path in (spec.own_directory(0, 0) / name for name in (WEIGHTS, MOMENTUM)):
        if path.is_file() and not path.is_symlink():
            path.replace(spec.folder / path.name)
    _clear(spec)


def _clear(spec: TrialSpec) -> None:
    for directory in spec.own_directories:
        remove(directory)


def energy_of(folder: Path, window: tuple[float, float], watched: bool) -> dict[str, Any]:
    """What the devices took in a window, or why nobody knows. A rank begins before its monitor has read for the first
    time, and prepares itself for longer than that takes: it is what they took from then on.
    """
    from proofmark.monitoring.summary import summarise

    try:
        seen = summarise(folder / "monitor.jsonl", window, 1, (), from_first=True) if watched else None
    except (ValueError, OverflowError, OSError) as error:
        return {"joules": None, "reason": f"the monitor's log cannot be used: {reason(error)}"}
    if seen is None or seen.energy_joules is None:
        return {
            "joules": None,
            "reason": "nothing read the power from its beginning on" if watched else "there was no monitor",
        }
    return {"joules": seen.energy_joules, "reason": None, "method": seen.energy_method}


if __name__ == "__main__":
    leave(main())
