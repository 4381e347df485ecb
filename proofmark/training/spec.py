"""What a node's agent and its ranks need to know."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

from proofmark.folders import RANKS_WRITE
from proofmark.launch.job import HostLayout
from proofmark.launch.spec import RunSpec

AGENT = "PROOFMARK_AGENT"
"""Variable with the agent's process id, in the environment of its ranks: they end with it."""

OUTPUTS, EVENTS = "PROOFMARK_OUTPUTS", "PROOFMARK_EVENTS"
"""Variables with what a node's ranks print to, and tell events by: the agent's pipes, in the order of local ranks."""


CHANCES = "PROOFMARK_CHANCES"
"""Variable with the numbers that the agent has drawn, by which rank 0 records steps."""

WEIGHTS = "final.safetensors"
"""The weights with which rank 0 says that it reached the target, in its own directory until they were looked at."""

STEP, WHICH = "recorded-{}", "which.json"
BEFORE, GRADIENTS, AFTER = "before.safetensors", "gradients.safetensors", "after.safetensors"
RANDOM, STATE = "random.safetensors", "state.safetensors"
"""The folder of a step that was recorded for the audit, beside those weights, and the files in it."""

RANDOM_OF = "rank{}"
"""The name of a rank's random state in its file: each draws its own dropout."""


@dataclass(frozen=True)
class TrainingSpec(RunSpec):
    """One training run: one case, one scale, one seed.

    Attributes:
        master: address and port of node 0, None on a single node.
        checkpoints: a folder that all nodes share; None is one in `directory`.
        resume_from: a folder of checkpoints to go on from.
        hang_timeout: seconds without a sign of life after which a rank counts as hung.
        monitor_interval: seconds between two readings of each node's monitor, None for no monitor.
        setup_timeout: the same while a rank sets up, and in its first step.
        audited: record some steps, which are done again outside the ranks.
        until_converged: end at the target; otherwise train for as long as the limits allow.
        backend: of the ranks' process group.
    """

    nnodes: int = 1
    nproc: int = 1
    seed: int = 0
    master: tuple[str, int] | None = None
    checkpoints: str | None = None
    resume_from: str | None = None
    hang_timeout: float = 30.0
    monitor_interval: float | None = None
    setup_timeout: float = 1800.0
    until_converged: bool = True
    audited: bool = False
    backend: str = "gloo"

    @property
    def checkpoint_directory(self) -> Path:
        """Where checkpoints go."""
        return Path(self.checkpoints or Path(self.directory) / "checkpoints")

    def made_checkpoint_directory(self) -> Path:
        """The same, made by the hosts' user; of a session's folder where they share one it is said what it is, above
        what a vendor's code may write.

        Raises:
            OSError: it can't be made.
        """
        directory = self.checkpoint_directory
        directory.mkdir(parents=True, exist_ok=True)
        if self.checkpoints:
            (directory.parents[3] / RANKS_WRITE).touch()  # above suite, case, scale and round
        return directory

    def moved(self, layout: HostLayout) -> Self:
        """The same run, for another layout of a host."""
        return replace(super().moved(layout), master=layout.master)
