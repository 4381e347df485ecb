"""A trial on several devices of a machine: a rank on each, under torchrun, which this process runs."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING

from proofmark.automl.trial.failing import heard
from proofmark.automl.trial.rank import DEADLINE, OWN_EVENTS
from proofmark.automl.trial.spec import LOG, LONGEST_LOG
from proofmark.process.output.dictation import Dictation
from proofmark.training.node.rendezvous import alone
from proofmark.training.spec import AGENT, EVENTS
from proofmark.vendor.hardware.processor import usable_cores

if TYPE_CHECKING:
    from torch.distributed.elastic.multiprocessing.errors import ProcessFailure

    from proofmark.automl.trial.handed_out import HandedOut
    from proofmark.automl.trial.spec import TrialSpec
    from proofmark.record.events.log import EventLog

AT_ONCE = 15
"""Seconds within which ranks that died did so by themselves; torchrun kills the others only after twice as many."""


def run_ranks(spec: TrialSpec, deadline: int | None, log: EventLog, handed: HandedOut) -> bool:
    """Run them to their end; whether all came to a good one. One that raised has said so in the log. What they are
    handed is counted."""
    from torch.distributed import run as torchrun
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError

    folder, ranks = spec.folder, range(spec.nproc)
    trial_events = [Dictation(folder / LOG, LONGEST_LOG) for _ in ranks]
    own_events = [Dictation(folder / f"rank{rank}.jsonl", LONGEST_LOG) for rank in ranks[1:]]
    own_events.insert(0, trial_events[0])
    os.environ |= handed.variable | {
        AGENT: str(os.getpid()),
        EVENTS: ",".join(str(each.descriptor) for each in trial_events),
        OWN_EVENTS: ",".join(str(each.descriptor) for each in own_events),
        DEADLINE: "" if deadline is None else str(deadline),
        "OMP_NUM_THREADS": threads_of_rank(os.environ.get("OMP_NUM_THREADS", ""), usable_cores(), spec.nproc),
    }
    arguments = [*alone(), "--nproc-per-node", str(spec.nproc), "-m", "proofmark.automl.trial.rank", sys.argv[1]]
    try:
        torchrun.run(torchrun.parse_args(arguments))  # type: ignore[no-untyped-call]
    except ChildFailedError as error:
        killed = first_killed(error.failures)
        if killed is not None:
            log.write("trial_failed", reason=f"rank {killed[0]} died of signal {killed[1]}")
        good = False
    else:
        good = True
    return heard((*trial_events, *own_events), log) and good


def threads_of_rank(given: str, cores: int, ranks: int) -> str:
    """Its share of the cores, or fewer if the user or a scheduler says so; theirs may be for the whole trial."""
    share = max(1, cores // ranks)
    return str(min(int(given) or share, share) if given.isdecimal() else share)


def first_killed(failures: Mapping[int, ProcessFailure]) -> tuple[int, int] | None:
    """The rank that a signal ended before torchrun ended any, and that signal; None where the first one raised.

    Ranks that lose another one raise soon, and torchrun, which looks only now and then, may find them dead together:
    then the signal is the cause. Those that it ends itself die of SIGTERM, or of SIGKILL much later.
    """
    in_time = sorted(failures.items(), key=lambda each: each[1].timestamp)
    _, first = in_time[0]
    for rank, failure in in_time:
        own = failure.exitcode != -signal.SIGTERM and failure.timestamp - first.timestamp < AT_ONCE
        if failure.exitcode < 0 and (failure is first or own):
            return rank, -failure.exitcode
    return None
