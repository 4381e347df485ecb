"""What a node's agent and its ranks need to know. Plain values, handed over as a file."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

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
        directory: where the run leaves its files; the same on all nodes.
        master: address and port of node 0, None on a single node.
        resume_from: a folder of checkpoints to go on from.
        hang_timeout: seconds without a sign of life after which a rank counts as hung.
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
    resume_from: str | None = None
    hang_timeout: float = 30.0
    setup_timeout: float = 1800.0
    until_converged: bool = True

    def node_directory(self, node: int) -> Path:
        """Where the ranks of a node leave their logs."""
        return Path(self.directory) / f"noderank{node}"

    def save(self, path: Path) -> None:
        """Write it down.

        Raises:
            OSError: no space, no permission.
        """
        path.write_text(json.dumps(asdict(self)), encoding="utf-8")

    @classmethod
    def load(cls, path: Path) -> TrainingSpec:
        """Read what `save` wrote."""
        values = json.loads(path.read_text(encoding="utf-8"))
        for key in ("case", "sys_path", "master"):
            values[key] = tuple(values[key]) if values[key] is not None else None
        return cls(**values)
