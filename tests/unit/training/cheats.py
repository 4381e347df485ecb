"""A training of points around four corners, by vendors who do some of its steps their own way: honest ones and others.

`python -m tests.unit.training.cheats DIRECTORY` trains as one rank of several, replicated and sharded.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import nn

from proofmark.record.events.log import Event, EventLog, read_events
from proofmark.record.parts import Identity
from proofmark.rules.config import EffectiveConfig
from proofmark.training.case import TrainingCase
from proofmark.training.feeding.loading import Data
from proofmark.training.heartbeat import HeartbeatWriter
from proofmark.training.ranks.model.strategy import Place
from proofmark.training.ranks.trainer import Trainer
from proofmark.training.spec import TrainingSpec
from proofmark.vendor.adapter import TrainingAdapter
from proofmark.vendor.contract import Processor

ITEMS, CLASSES, FEATURES = 96, 4, 8

Convert = Callable[[nn.Module], nn.Module]


class Points:
    """Points and their corners."""

    epoch = 0
    identity = Identity(name="corners", sha256="0" * 64, items=ITEMS)

    def __init__(self, seed: int) -> None:
        self.targets = torch.arange(ITEMS) % CLASSES
        self.points = torch.randn(ITEMS, FEATURES, generator=torch.Generator().manual_seed(seed)) / 2
        self.points[torch.arange(ITEMS), self.targets] += 2

    def __len__(self) -> int:
        return ITEMS

    def __getitems__(self, indices: list[int]) -> tuple[list[torch.Tensor], torch.Tensor]:
        return [self.points[indices]], self.targets[indices]


class Corners(TrainingCase):
    """Top-1 accuracy on points around four corners."""

    def build_dataset(self, config: EffectiveConfig, split: str) -> Points:
        return Points(1 if split == "train" else 2)

    def create_model(self, config: EffectiveConfig) -> nn.Module:
        body = nn.Sequential(nn.Linear(FEATURES, 16), nn.BatchNorm1d(16), nn.ReLU())
        return nn.Sequential(body, nn.Dropout(0.1), nn.Linear(16, CLASSES))

    def evaluator(self, outputs: list[torch.Tensor], targets: torch.Tensor) -> tuple[float, float]:
        return float((outputs[0].argmax(-1) == targets).sum()), float(len(targets))


class Converts(TrainingAdapter):
    """A vendor with a model of its own."""

    def __init__(self, convert: Convert) -> None:
        self._convert = convert

    def convert_model(self, model: nn.Module, config: EffectiveConfig) -> nn.Module:
        return self._convert(model)


class Acme(Processor):
    """The processor, with an adapter."""

    def __init__(self, adapter: TrainingAdapter) -> None:
        self._adapter = adapter

    def training_adapter(self) -> TrainingAdapter:
        return self._adapter


HERE = Place(0, 0, 1, torch.device("cpu"))


def train(
    directory: Path, adapter: TrainingAdapter, place: Place = HERE, **changes: Any
) -> tuple[Trainer, list[Event]]:
    """Train to the target; the trainer, and the events of this rank."""
    parameters = {
        "schedule": "constant",
        "max_epoch": 12,
        "eval_interval_samples": 0,
        "max_samples_termination": None,
        "metric": "top1",
        "target": 0.9,
        "better": "higher",
    }
    settings = {
        "global_batch_size": 16,
        "eval_batch_size": 40,
        "learning_rate": 0.02,
        "weight_decay": 0.01,
        "num_workers": 0,
        "gradient_accumulation_steps": 1,
        "precision": "fp32",
        "parallel": "ddp",
        "compile": False,
        "channels_last": False,
        "activation_checkpointing": False,
        "log_freq": 1,
        "checkpoint_steps": None,
    }
    parameters |= {key: value for key, value in changes.items() if key in parameters}
    settings |= {key: value for key, value in changes.items() if key in settings}
    config = EffectiveConfig("training", "corners", "embedded", "acme", parameters, settings)
    spec = TrainingSpec(("", ""), "", "", {}, str(directory), ())
    log, heartbeat = (
        EventLog(directory / f"rank{place.rank}.jsonl"),
        HeartbeatWriter(directory / f"rank{place.rank}.heartbeat"),
    )
    case = Corners()
    trainer = Trainer(
        case, Data.of(case, config, place.rank, place.world), config, spec, Acme(adapter), place, log, heartbeat
    )
    trainer.run()
    return trainer, list(read_events(log.path))


def failed(events: list[Event]) -> dict[str, str]:
    """The checks that failed, with what they say."""
    return {event["name"]: event["meaning"] for event in events if event["event"] == "check" and not event["passed"]}


if __name__ == "__main__":
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    dist.init_process_group("gloo")
    wrapped = Converts(lambda model: model)
    place = Place(rank, rank, world, torch.device("cpu"))
    for parallel in ("ddp", "fsdp"):
        folder = Path(sys.argv[1]) / parallel
        folder.mkdir(exist_ok=True)
        train(folder, wrapped, place, parallel=parallel)
    dist.destroy_process_group()
    os._exit(0)  # the interpreter's own end may abort over threads of torch, as for proofmark.training.ranks.rank
