"""A trial's process: `python -m proofmark.automl.trial.main SPEC NODE`. It ends when its standard input closes.

It makes ready what needs no device, then waits for a line that says which one it has, and trains: by itself, or where
it has several by a process on each, under torchrun.
"""

from __future__ import annotations

import contextlib
import faulthandler
import os
import queue
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from proofmark.automl.trial.failing import told
from proofmark.automl.trial.spec import LOG, Begin, TrialSpec
from proofmark.process.environment import let_pass
from proofmark.process.lifetime import end_own_group, leave
from proofmark.process.wall_clock import now
from proofmark.process.warm import split_off
from proofmark.record.events import EventLog
from proofmark.rules.config import EffectiveConfig
from proofmark.vendor.environment import declared_of, environment_of, referee_environment_of

if TYPE_CHECKING:
    from proofmark.automl.trial.work import Prepared


def main() -> int:
    """Run the trial, and leave behind why not, if not."""
    spec = TrialSpec.load(Path(sys.argv[1]))
    host = spec.config["host"]
    # by itself it runs the vendor's code; of several its ranks do
    os.environ |= (given := environment_of(host) if spec.nproc == 1 else referee_environment_of(host))
    let_pass(given)
    if spec.nproc == 1:
        split_off(())  # its monitor needs no imports
    else:
        from proofmark.training.node.agent_forks import fork_ranks

        fork_ranks(declared_of(host))
    parent = Parent()
    faulthandler.enable()
    log = EventLog(spec.folder / LOG)
    log.write("trial_begin", trial=spec.trial, pid=os.getpid())
    with told(log) as outcome:
        if not _run(spec, parent, log):
            return 1
        log.write("trial_end", trial=spec.trial)
    return outcome.code


class Parent(threading.Thread):
    """Standard input: its first line says that the trial may begin; when it closes the driver is gone, or wants it to
    end."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self._lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self.start()

    def run(self) -> None:
        """Until it closes; then everything ends."""
        with contextlib.suppress(OSError):
            self._lines.put(sys.stdin.buffer.readline())
            while os.read(0, 4096):
                pass
        end_own_group()

    def allows(self) -> Begin:
        """Wait for its word."""
        return Begin.of(self._lines.get())


def _run(spec: TrialSpec, parent: Parent, log: EventLog) -> bool:
    """Whether it came to a good end."""
    from proofmark.training.node.node_monitor import NodeMonitor
    from proofmark.training.ranks.heartbeat import HeartbeatWriter

    alone = _prepared(spec) if spec.nproc == 1 else None
    begin = parent.allows()
    os.environ |= begin.environment
    deadline = None if begin.seconds is None else time.perf_counter_ns() + round(begin.seconds * 1e9)
    monitor = NodeMonitor(spec.training(), spec.folder, log)
    begun, good = now(), True
    try:
        if alone is not None:
            heartbeat = HeartbeatWriter(spec.folder / "rank0.heartbeat")
            alone.compute(0, log, heartbeat, deadline)
        else:
            from proofmark.automl.trial.several import run_ranks

            good = run_ranks(spec, deadline, log)
    finally:
        ended = now()
        monitor.stop()
    log.write("energy", **energy_of(spec.folder, (begun, ended), spec.monitor_interval is not None))
    return good


def _prepared(spec: TrialSpec) -> Prepared:
    """All that needs no device, while another trial may train, which goes first; workers that load data would keep a
    low priority."""
    from proofmark.automl.trial.work import Prepared
    from proofmark.process.threads import in_the_background

    forks = EffectiveConfig.from_dict(spec.config).num_workers > 0
    return Prepared.of(spec) if forks else in_the_background(lambda: Prepared.of(spec))


def energy_of(folder: Path, window: tuple[float, float], watched: bool) -> dict[str, Any]:
    """What the devices took in a window, or why nobody knows."""
    from proofmark.monitoring.summary import summarise

    try:
        seen = summarise(folder / "monitor.jsonl", window, 1, ()) if watched else None
    except (ValueError, OverflowError, OSError) as error:
        return {"joules": None, "reason": f"the monitor's log cannot be used: {str(error).splitlines()[0]}"}
    if seen is None or seen.energy_joules is None:
        return {"joules": None, "reason": "nothing read the power" if watched else "there was no monitor"}
    return {"joules": seen.energy_joules, "reason": None, "method": seen.energy_method}


if __name__ == "__main__":
    leave(main())
