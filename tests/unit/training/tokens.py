"""Training on tokens of which unequally many are known, in one process or under torchrun: the weights that come out.

`python -m tests.unit.training.tokens DIRECTORY` trains in every way of WAYS and leaves rank 0's weights there.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from safetensors.torch import save_file
from torch.distributed.checkpoint.state_dict import get_model_state_dict

from proofmark.record.events.log import EventLog, read_events
from proofmark.record.parts import Identity
from proofmark.rules.config import EffectiveConfig
from proofmark.training.case import TrainingCase
from proofmark.training.feeding.loading import Data
from proofmark.training.heartbeat import HeartbeatWriter
from proofmark.training.ranks.model.strategy import Place, unwrapped
from proofmark.training.ranks.trainer import Trainer
from proofmark.training.spec import TrainingSpec
from proofmark.vendor.contract import Processor

ITEMS, LENGTH, WORDS = 11, 6, 7
KNOWN = 2 * sum(item % 4 for item in range(ITEMS))
"""Words of two epochs that have a known successor."""

WAYS: dict[str, dict[str, Any]] = {
    "ddp": {},
    "accumulated": {"gradient_accumulation_steps": 2},
    "compiled": {"compile": True},
    "fsdp": {"parallel": "fsdp", "gradient_accumulation_steps": 2},
}


class Sequences:
    """Sequences of words; of number i the first i % 4 have a known successor, of every fourth thus none."""

    epoch = 0
    identity = Identity(name="sequences", sha256="0" * 64, items=ITEMS)

    def __len__(self) -> int:
        return ITEMS

    def __getitems__(self, indices: list[int]) -> tuple[list[torch.Tensor], torch.Tensor]:
        words = (torch.tensor(indices).unsqueeze(1) * 3 + torch.arange(LENGTH)) % WORDS
        known = torch.arange(LENGTH) < (torch.tensor(indices) % 4).unsqueeze(1)
        return [words], ((words * words + 1) % WORDS).masked_fill(~known, -100)


class Tokens(TrainingCase):
    """A word's successor, by the default loss: the mean over known ones."""

    def build_dataset(self, config: EffectiveConfig, split: str) -> Sequences:
        return Sequences()

    def create_model(self, config: EffectiveConfig) -> torch.nn.Module:
        return torch.nn.Sequential(torch.nn.Embedding(WORDS, 4), torch.nn.Linear(4, WORDS)).double()

    def create_optimizer(self, model: torch.nn.Module, config: EffectiveConfig) -> torch.optim.Optimizer:
        return torch.optim.SGD(model.parameters(), lr=0.5)

    def tokens(self, inputs: list[torch.Tensor], targets: torch.Tensor) -> torch.Tensor:
        return (targets != -100).sum(1)

    def evaluator(self, outputs: list[torch.Tensor], targets: torch.Tensor) -> tuple[float, float]:
        return float((outputs[0].argmax(-1) == targets).sum()), float((targets != -100).sum())


def trained(
    directory: Path,
    place: Place,
    task: Mapping[str, Any] | None = None,
    audited: bool = False,
    case: Tokens | None = None,
    **changes: Any,
) -> tuple[dict[str, torch.Tensor], list[float]]:
    """Two epochs of three steps, the last of one sample; the weights, and the losses on record."""
    parameters = {
        "schedule": "constant",
        "max_epoch": 2,
        "eval_interval_samples": 0,
        "max_samples_termination": None,
        "target": 2.0,
        "better": "higher",
        **(task or {}),
    }
    settings = {
        "global_batch_size": 5,
        "eval_batch_size": 4,
        "learning_rate": 0.5,
        "num_workers": 0,
        "gradient_accumulation_steps": 1,
        "precision": "fp32",
        "parallel": "ddp",
        "compile": False,
        "channels_last": False,
        "activation_checkpointing": False,
        "log_freq": 2,
        "checkpoint_steps": None,
    }
    config = EffectiveConfig("training", "tokens", "embedded", "acme", parameters, settings | changes)
    spec = TrainingSpec(("", ""), "", "", {}, str(directory), (), audited=audited)
    log = EventLog(directory / f"rank{place.rank}.jsonl")
    case, heartbeat = case or Tokens(), HeartbeatWriter(directory / f"rank{place.rank}.heartbeat")
    trainer = Trainer(
        case, Data.of(case, config, place.rank, place.world), config, spec, Processor(), place, log, heartbeat
    )
    trainer.run()
    compiled = isinstance(unwrapped(trainer.model), torch._dynamo.OptimizedModule)
    assert compiled == config.compile, "it is evaluated as it is trained"
    state = get_model_state_dict(trainer.model)
    losses = [loss for event in read_events(log.path) if event["event"] == "steps" for loss in event["losses"]]
    return {name: getattr(value, "full_tensor", lambda v=value: v)() for name, value in state.items()}, losses


if __name__ == "__main__":
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    dist.init_process_group("gloo")
    torch.compile = partial(torch.compile, backend="aot_eager")  # what a backend makes of it is not ours to test
    for way, changes in WAYS.items():
        folder = Path(sys.argv[1]) / way
        folder.mkdir(exist_ok=True)
        weights, losses = trained(folder, Place(rank, rank, world, torch.device("cpu")), **changes)
        if rank == 0:
            save_file(weights | {"losses": torch.tensor(losses, dtype=torch.float64)}, folder / "weights.safetensors")
    dist.destroy_process_group()
    os._exit(0)  # the interpreter's own end may abort over threads of torch, as for proofmark.training.ranks.rank
