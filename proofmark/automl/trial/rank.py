"""One rank of a trial on several devices: `python -m proofmark.automl.trial.rank SPEC`, started by torchrun."""

from __future__ import annotations

import faulthandler
import os
import sys
from pathlib import Path

from proofmark.automl.trial.failing import told
from proofmark.automl.trial.several import DEADLINE
from proofmark.automl.trial.spec import LOG, TrialSpec
from proofmark.process.lifetime import end_with
from proofmark.record.events import EventLog
from proofmark.training.spec import AGENT


def main() -> int:
    """Train; what a rank has to say of a failure stands in the trial's own log."""
    end_with(int(os.environ[AGENT]))
    faulthandler.enable()
    spec, rank = TrialSpec.load(Path(sys.argv[1])), int(os.environ["RANK"])
    trial_log = EventLog(spec.folder / LOG)
    with told(trial_log, rank) as outcome:
        from proofmark.automl.trial.work import Prepared
        from proofmark.training.ranks.heartbeat import HeartbeatWriter

        heartbeat = HeartbeatWriter(spec.folder / f"rank{rank}.heartbeat")
        heartbeat(0, "init")
        log = EventLog(spec.folder / f"rank{rank}.jsonl") if rank else trial_log
        deadline = os.environ[DEADLINE]
        Prepared.of(spec).compute(rank, log, heartbeat, int(deadline) if deadline else None)
    return outcome.code


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)  # the interpreter's own end would wait for an exchange that never comes
