"""A trial on several devices of a machine: a rank on each, under torchrun, which this process runs."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from proofmark.training.node.agent_forks import ALONE
from proofmark.training.spec import AGENT
from proofmark.vendor.hardware.machine import usable_cores

if TYPE_CHECKING:
    from proofmark.automl.trial.spec import TrialSpec
    from proofmark.record.events import EventLog

DEADLINE = "PROOFMARK_TRIAL_DEADLINE"
"""Variable with the ranks' deadline, in ns of the machine's monotonic clock; empty for none."""


def run_ranks(spec: TrialSpec, deadline: int | None, log: EventLog) -> bool:
    """Run them to their end; whether all came to a good one. One that raised has said so in the log."""
    from torch.distributed import run as torchrun
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError

    threads = os.environ.get("OMP_NUM_THREADS", str(max(1, usable_cores() // spec.nproc)))
    os.environ |= {
        AGENT: str(os.getpid()),
        DEADLINE: "" if deadline is None else str(deadline),
        "OMP_NUM_THREADS": threads,
    }
    arguments = [*ALONE, "--nproc-per-node", str(spec.nproc), "-m", "proofmark.automl.trial.rank", sys.argv[1]]
    try:
        torchrun.run(torchrun.parse_args(arguments))  # type: ignore[no-untyped-call]
    except ChildFailedError as error:
        rank, failure = error.get_first_failure()
        if failure.exitcode < 0:
            log.write("trial_failed", reason=f"rank {rank} died of signal {-failure.exitcode}")
        return False
    return True
