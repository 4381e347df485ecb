"""Two ranks that train models for a few steps each, one of them slow: `-m tests.unit.training.communicating FOLDER`."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from proofmark.training.ranks.communication import EVERY, CommunicationMeter
from proofmark.training.ranks.model.strategy import Place

SLEEP = 0.2

WAYS = (("plain", "compute"), ("buffers", "data"), ("compiled", "compute"), ("compiled buffers", "data"))
"""Models, and the part of a step that is slow."""


class Compute:
    """Nanoseconds of compute."""

    ns = 0

    def __call__(self) -> int:
        return self.ns


def main() -> None:
    """Each rank's totals go to FOLDER/<rank>.json, those of each way; rank 1 is the slow one."""
    dist.init_process_group("gloo")
    torch.set_num_threads(1)
    results = [trained(dist.get_rank(), *way) for way in WAYS]
    (Path(sys.argv[1]) / f"{dist.get_rank()}.json").write_text(json.dumps(results))
    dist.barrier()
    os._exit(0)  # the interpreter's own end may wait for threads of torch, as for proofmark.training.ranks.rank


def trained(rank: int, kind: str, slow: str) -> dict[str, Any]:
    inner = nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8) if "buffers" in kind else nn.ReLU(), nn.Linear(8, 8))
    inner[0].bias.requires_grad_(False)  # as of a model of which a part is trained
    model = DistributedDataParallel(torch.compile(inner, backend="eager") if "compiled" in kind else inner)
    communication = CommunicationMeter(model, Place(rank, rank, 2, torch.device("cpu")))
    compute = Compute()
    for number in range(1, EVERY + 2):
        with communication.step(number, compute):
            measured = rank == 1 and number == EVERY
            time.sleep(SLEEP if measured and slow == "data" else 0)
            begun = time.perf_counter_ns()
            with communication.micro_step(last=True):
                loss = model(torch.ones(4, 8)).sum()
                time.sleep(SLEEP if measured and slow == "compute" else 0)
                loss.backward()
            compute.ns += time.perf_counter_ns() - begun
    hooks = [len(p._post_accumulate_grad_hooks or ()) for p in inner.parameters()]  # type: ignore[attr-defined]
    return {"totals": communication.totals(), "hooks": sum(hooks) + len(inner._forward_pre_hooks)}


if __name__ == "__main__":
    main()
