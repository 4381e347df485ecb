"""torchrun, as a node's agent runs it, of forked ranks: `-m tests.unit.training.torchrun NPROC MODULE ARGUMENTS...`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from proofmark.process.lifetime import leave
from proofmark.process.scratch.temporary import temporary_directory
from proofmark.training.node.agent_forks import fork_ranks
from proofmark.training.node.rendezvous import alone

ROOT = Path(__file__).parents[3]


def ran_on(nproc: int, module: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A module on so many ranks of a thread each, to its end."""
    with temporary_directory() as temporary:  # ranks don't tidy up: who starts them does
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "TMPDIR": temporary}
        command = [sys.executable, "-m", __name__, str(nproc), module, *arguments]
        return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300)


def main() -> None:
    """Run torchrun."""
    fork_ranks({})
    from torch.distributed import run

    run.main([*alone(), "--nproc-per-node", sys.argv[1], "-m", *sys.argv[2:]])  # type: ignore[no-untyped-call]


if __name__ == "__main__":
    main()
    leave(0)
