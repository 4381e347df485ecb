"""What a trial's process needs to know."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Self

from pydantic import TypeAdapter, ValidationError

from proofmark.launch.job import HostLayout
from proofmark.launch.spec import RunSpec
from proofmark.plain_json import first_of
from proofmark.record.parts import Seconds
from proofmark.rules.config import EffectiveConfig
from proofmark.training.spec import TrainingSpec

LOG = "trial.jsonl"
"""A trial's event log."""

HANDED_OUT = "handed_out.jsonl"
"""How many images its ranks were handed, by its own process, which runs no vendor's code."""

LONGEST_LOG = 64 << 20
"""Bytes of it: who leads the search holds all of one at once."""

WEIGHTS = "weights.safetensors"
"""Its weights at its best evaluation, for its children."""

MOMENTUM = "momentum.safetensors"
"""What its optimizer had gathered then, where that can be inherited."""

SEARCH, HELD_OUT = "search", "held_out"
"""Splits that a network is evaluated on: by the first one trials are chosen, by the other one the search is judged."""


@dataclass(frozen=True)
class Parent:
    """Where a trial's weights come from.

    Attributes:
        graph: the parent's network, as JSON.
        operations: what makes the trial's network of it.
        folder: of the parent's weights and momentum.
    """

    graph: dict[str, Any]
    operations: list[dict[str, Any]]
    folder: str


@dataclass(frozen=True)
class Begin:
    """What a trial is told when a device is free, in a line.

    Attributes:
        environment: variables that give it its device.
        seconds: after which it begins no epoch; None for never.
        heard: when that was said, by the monotonic clock of the trial's machine, in ns; None: it has yet to be heard.
    """

    environment: dict[str, str]
    seconds: Seconds | None
    heard: int | None = None

    def deadline(self) -> int | None:
        """The moment after which it begins no epoch, by the same clock."""
        return None if self.seconds is None or self.heard is None else self.heard + round(self.seconds * 1e9)

    @property
    def line(self) -> str:
        """The line that is sent."""
        return json.dumps(asdict(self))

    @classmethod
    def of(cls, line: bytes, heard: int | None = None) -> Self:
        """Read what was sent.

        Args:
            heard: when, where the line does not say so.

        Raises:
            ValueError: it is something else; the text is one line.
        """
        try:
            begin = TypeAdapter(cls).validate_json(line)
        except ValidationError as error:
            raise ValueError(first_of(error)) from None
        return begin if begin.heard is not None else replace(begin, heard=heard)


@dataclass(frozen=True)
class TrialSpec(RunSpec):
    """One training of one network.

    Attributes:
        graph: its network, as JSON.
        parent: None for fresh weights.
        hyperparameters: batch_size (of each device), dropout and kernel_size; the last is in the graph already.
        epochs: none is an evaluation alone.
        patience: epochs without a better evaluation after which it ends; None for never.
        nproc: devices that it has, each with a process of its own.
        split: what it is evaluated on.
        monitor_interval: seconds between two readings of its monitor, None for no monitor.
        backend: of its ranks' process group, where it has several.
        ahead: whether it makes itself ready while others train.
    """

    trial: int
    graph: dict[str, Any]
    parent: Parent | None
    hyperparameters: dict[str, Any]
    epochs: int
    patience: int | None
    seed: int
    nproc: int = 1
    split: str = SEARCH
    monitor_interval: float | None = None
    backend: str = "gloo"
    ahead: bool = False

    @property
    def folder(self) -> Path:
        """Where the trial's files are, on the machine that it runs on."""
        return self.node_directory(0)

    @property
    def own_directories(self) -> list[Path]:
        """The own directories of its ranks."""
        return [self.own_directory(0, rank) for rank in range(self.nproc)]

    @property
    def looks_at(self) -> tuple[str, ...]:
        """Splits that it evaluates on: one that only does so looks at the one that trials are chosen by, too."""
        return (self.split,) if self.epochs else (self.split, SEARCH)

    def training(self) -> TrainingSpec:
        """The trial as a training: its configuration has the trial's epochs and batch."""
        config = EffectiveConfig.from_dict(self.config)
        own = {
            "max_epoch": max(1, self.epochs),
            "max_samples_termination": None,
            "eval_interval_samples": 0,
            "initial_weights": False,
        }
        settings = {
            "global_batch_size": self.hyperparameters["batch_size"] * self.nproc,
            "train_batch_size": None,
            "gradient_accumulation_steps": 1,
            "parallel": "ddp",
            "activation_checkpointing": False,
            "checkpoint_steps": None,
        }
        if not self.epochs:  # on the processor
            settings |= {"precision": "fp32", "compile": False}
        derived = replace(
            config,
            parameters={**config.parameters, **own},
            configurations={**config.configurations, **settings},
        )
        return TrainingSpec(
            case=self.case,
            vendor=self.vendor,
            vendors_dir=self.vendors_dir,
            config=derived.as_dict(),
            directory=self.directory,
            sys_path=self.sys_path,
            nproc=self.nproc,
            seed=self.seed,
            monitor_interval=self.monitor_interval,
            until_converged=False,
        )

    def moved(self, layout: HostLayout) -> Self:
        """The same trial, for another layout of a host; what it inherits was brought there."""
        parent = self.parent and replace(self.parent, folder=f"{layout.directory}/brought")
        return replace(super().moved(layout), parent=parent)
