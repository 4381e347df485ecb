"""A node's part inside the platform: its place among the others, the agent, and results as the original leaves them."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from proofmark.errors import ProofmarkError
from proofmark.launch.launchers.modelarts import triplet
from proofmark.launch.rank_result import rank_results
from proofmark.launch.service.node import Node
from proofmark.launch.service.platform import NodeVariables
from proofmark.launch.service.ticket import TICKET, Ticket, read_wire

VARIABLES = NodeVariables(node="VC_TASK_INDEX", nodes="MA_NUM_HOSTS", devices="MA_NUM_GPUS", hosts="VC_WORKER_HOSTS")


def run(channels: Mapping[str, str], work: Path) -> int:
    """Run the node's part; the exit code."""
    try:
        missing = [name for name in ("train_url", "job_url") if name not in channels]
        if missing:
            raise ValueError(f"the platform has given no {', '.join(missing)}")
        ticket = read_wire(Path(channels["job_url"]) / TICKET, Ticket)
        place = VARIABLES.place(os.environ)
        node = Node(ticket, place, work / "code", work, channels.get("data_url"))
        results = Path(channels["train_url"])
        code = node.run(results)
        if code == 0:
            server = place.node if ticket.independent else None
            triplet.write(results, rank_results(node.folder), server)
    except (ProofmarkError, ValueError, OSError) as error:
        print(f"ERROR: {error}", file=sys.stderr, flush=True)
        return 1
    return code if code >= 0 else 128 - code
