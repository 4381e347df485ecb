"""What a node's agent and its ranks need to know. Plain values, handed over as a file."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from proofmark.launch.job import HostLayout

AGENT = "PROOFMARK_AGENT"
"""Variable with the agent's process id, in the environment of its ranks: they end with it."""

OUTPUTS = "PROOFMARK_OUTPUTS"
"""Variable with what a node's ranks print to, by local rank: descriptors of the agent's pipes."""


@dataclass(frozen=True)
class TrainingSpec:
    """One training run: one case, one scale, one seed.

    Attributes:
        case: module and class of the case.
        vendor: whose devices, found under `vendors_dir` or as an installed package.
        config: an EffectiveConfig as `as_dict` gives it.
        directory: where the run leaves its files, on each node its own.
        master: address and port of node 0, None on a single node.
        checkpoints: a folder that all nodes share; None is one in `directory`.
        resume_from: a folder of checkpoints to go on from.
        hang_timeout: seconds without a sign of life after which a rank counts as hung.
        monitor_interval: seconds between two readings of each node's monitor, None for no monitor.
        setup_timeout: the same while a rank sets up, and in its first step.
        until_converged: end at the target; otherwise train for as long as the limits allow.
    """

    case: tuple[str, str]
    vendor: str
    vendors_dir: str
    config: dict[str, Any]
    directory: str
    sys_path: tuple[str, ...]
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

    def node_directory(self, node: int) -> Path:
        """Where the ranks of a node leave their logs."""
        return Path(self.directory) / f"noderank{node}"

    @property
    def checkpoint_directory(self) -> Path:
        """Where checkpoints go."""
        return Path(self.checkpoints or Path(self.directory) / "checkpoints")

    def save(self, path: Path) -> None:
        """Write it down.

        Raises:
            OSError: no space, no permission.
        """
        path.write_text(self.text(), encoding="utf-8")

    def text(self) -> str:
        """What `save` writes."""
        return json.dumps(asdict(self))

    def moved(self, layout: HostLayout) -> TrainingSpec:
        """The same run where things lie elsewhere; data and weights are the user's, at the same place on all hosts."""
        host = {**self.config["host"], "cache_dir": layout.cache_dir}
        return replace(
            self,
            vendors_dir=f"{layout.code}/vendors",
            config={**self.config, "host": host},
            directory=layout.directory,
            sys_path=(layout.code,),
            master=layout.master,
        )

    @classmethod
    def load(cls, path: Path) -> TrainingSpec:
        """Read what `save` wrote."""
        values = json.loads(path.read_text(encoding="utf-8"))
        for key in ("case", "sys_path", "master"):
            values[key] = tuple(values[key]) if values[key] is not None else None
        return cls(**values)
