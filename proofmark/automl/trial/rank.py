"""One rank of a trial: `python -m proofmark.automl.trial.rank SPEC`.

The only one is started by the trial's own process: it makes itself ready, and begins when a line on standard input says
on which device. Several are started by torchrun when they may begin.
"""

from __future__ import annotations

import faulthandler
import importlib
import os
import socket
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from proofmark.automl.trial.failing import failures_logged
from proofmark.automl.trial.spec import MOMENTUM, WEIGHTS, Begin, TrialSpec
from proofmark.process.lifetime import end_with
from proofmark.process.memory import keep_freed
from proofmark.record.events.log import EventLog
from proofmark.rules.config import EffectiveConfig
from proofmark.training.heartbeat import HeartbeatWriter
from proofmark.training.logs.ranks.rank_log import ISOLATED
from proofmark.training.ranks.walled import close_in, dictated, wall_of_rank
from proofmark.training.spec import AGENT, EVENTS
from proofmark.vendor import torch_extensions
from proofmark.wall.isolation import Isolation
from proofmark.wall.wall import Wall

if TYPE_CHECKING:
    from proofmark.automl.trial.work import Prepared
    from proofmark.training.case import TrainingData

OWN_EVENTS = "PROOFMARK_OWN_EVENTS"
"""Variable with descriptors of the pipes to the ranks' own logs; EVENTS has those to the trial's."""

DEADLINE = "PROOFMARK_TRIAL_DEADLINE"
"""Variable with the deadline of several ranks, in ns of the machine's monotonic clock; empty for none."""


def main() -> int:
    """Train; what a rank has to say of a failure stands in the trial's own log."""
    end_with(int(os.environ[AGENT]))
    keep_freed()
    faulthandler.enable()
    spec, rank = TrialSpec.load(Path(sys.argv[1])), int(os.environ.get("RANK", "0"))
    ends = _loaded_beside(spec, rank)
    trial_log = EventLog(dictated(EVENTS, rank))
    log = EventLog(dictated(OWN_EVENTS, rank)) if rank else trial_log
    with failures_logged(trial_log, rank if spec.nproc > 1 else None) as outcome:
        heartbeat = HeartbeatWriter(spec.folder / f"rank{rank}.heartbeat")
        heartbeat(0, "init")
        trial_log.write(ISOLATED, isolation=_close_in(spec, rank).model_dump(mode="json"))
        prepared = _prepared(spec, rank, ends)
        if rank == 0:
            prepared.identify(trial_log)
        prepared.compute(rank, log, heartbeat, _deadline() if spec.nproc > 1 else _wait_for_start())
    return outcome.code


def _loaded_beside(spec: TrialSpec, rank: int) -> list[socket.socket]:
    """Where to ask for what it trains on, and is evaluated on: others load that, who count what they hand out. Beside
    files that one trains on there may lie what the search is judged by."""
    from proofmark.automl.trial.handed_out import Counters
    from proofmark.training.feeding.on_request import fork_server

    config, counters = EffectiveConfig.from_dict(spec.training().config), Counters(rank)

    def of(split: str) -> TrainingData:
        import torch

        torch.set_num_threads(1)  # as a feeder: the cores are its rank's, and threads that wait for work keep them busy
        data: TrainingData = getattr(importlib.import_module(spec.case[0]), spec.case[1])().build_dataset(config, split)
        return data

    torch_extensions.import_without()
    ends, largest = [], max(2, config.global_batch_size, config.eval_batch_size)
    for split, counted in (("train", counters.trained), *((each, counters.evaluated) for each in spec.looks_at)):
        served, end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ends.append(end)
        fork_server(served, partial(of, split), config.num_workers, largest, "batch_size", ends, counted)
    counters.close()
    return ends


def _close_in(spec: TrialSpec, rank: int) -> Isolation:
    """A rank alone has no process group. Data is seen by one that only evaluates, which looks at all of it and runs no
    vendor's code."""
    wall = wall_of_rank(spec.backend, spec.nproc, spec.nproc) if spec.nproc > 1 else Wall()
    inherited = [Path(spec.parent.folder) / name for name in (WEIGHTS, MOMENTUM)] if spec.parent else []
    data_dir, trains = spec.config["host"]["data_dir"], bool(spec.epochs)
    data = [Path(data_dir)] if data_dir and not trains else []
    return close_in(spec, spec.own_directory(0, rank), replace(wall, readable=(*inherited, *data)), extensions=trains)


def _prepared(spec: TrialSpec, rank: int, ends: Sequence[socket.socket]) -> Prepared:
    """All that needs no device: of a rank alone, while another trial may train, which goes first."""
    from proofmark.automl.trial.work import Prepared
    from proofmark.process.threads import in_the_background

    yields = spec.ahead and spec.nproc == 1
    return in_the_background(lambda: Prepared.of(spec, rank, ends)) if yields else Prepared.of(spec, rank, ends)


def _deadline() -> int | None:
    return int(os.environ[DEADLINE]) if os.environ[DEADLINE] else None


def _wait_for_start() -> int | None:
    """Wait for the word, with a device; the deadline that it sets."""
    begin = Begin.of(sys.stdin.buffer.readline(), time.perf_counter_ns())
    os.environ |= begin.environment
    return begin.deadline()


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)  # the interpreter's own end would wait for an exchange that never comes
