"""What a trial computes, on one rank: first all that needs no device, then the training."""

from __future__ import annotations

import importlib
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import torch
import torch.distributed as dist

from proofmark.automl.trial.examined import look_at_search
from proofmark.automl.trial.goal import BestWeights, counted
from proofmark.automl.trial.made_case import TrialCase
from proofmark.automl.trial.spec import TrialSpec
from proofmark.errors import StepError
from proofmark.measuring.precision import use_tf32
from proofmark.process.threads import compile_within
from proofmark.process.wall_clock import now
from proofmark.record.events.log import EventLog
from proofmark.rules.config import EffectiveConfig
from proofmark.training.feeding.fed import Requested
from proofmark.training.feeding.loading import Data, Planned, plan_of
from proofmark.training.feeding.on_request import AHEAD
from proofmark.training.heartbeat import HeartbeatWriter
from proofmark.training.ranks.model.own import Fresh, make_fresh
from proofmark.training.ranks.model.strategy import Place, bound
from proofmark.training.ranks.trainer import Trainer
from proofmark.training.spec import TrainingSpec
from proofmark.vendor.adapter import TrainingAdapter
from proofmark.vendor.contract import Processor, Vendor, lacks_torch
from proofmark.vendor.registry import find_vendor


@dataclass(frozen=True)
class Prepared:
    """A trial that is ready for a device: no vendor's code has run yet, and nothing has looked for devices: which of
    them it may see, a library reads once.

    Attributes:
        supplies: what it trains on, and the splits that it looks at, by those who load them.
        counted: as of `BestWeights`, to be called once it has its device.
    """

    spec: TrialSpec
    training: TrainingSpec
    config: EffectiveConfig
    case: TrialCase
    fresh: Fresh
    supplies: Sequence[Requested]
    data: Data
    counted: Callable[[], tuple[int, int]]

    @classmethod
    def of(cls, spec: TrialSpec, rank: int, ends: Sequence[socket.socket]) -> Prepared:
        """Network, weights and data of a rank.

        Args:
            spec: the trial's.
            rank: which one.
            ends: where to ask for what it trains on, and for the splits that it looks at.

        Raises:
            ConfigurationError: the network is none.
            StepError: weights or data are not as expected.
        """
        training = spec.training()
        config = EffectiveConfig.from_dict(training.config)
        case = TrialCase(getattr(importlib.import_module(spec.case[0]), spec.case[1])(), spec)
        fresh = make_fresh(case, config, spec.seed)
        train, evaluated, *_ = supplies = [Requested(end, AHEAD) for end in ends]
        order = plan_of(train.items, config, spec.nproc, spec.seed)
        data = Data(Planned(train, order, rank, config.max_epoch), evaluated)
        return cls(spec, training, config, case, fresh, supplies, data, counted(fresh.model, evaluated))

    def identify(self, log: EventLog) -> None:
        """Say which data it has, while no vendor's code could."""
        train, evaluated = self.data.train.identity, self.data.validation.identity
        log.write("data", train=train.sha256, evaluated=evaluated.sha256)

    def compute(self, rank: int, log: EventLog, heartbeat: HeartbeatWriter, deadline: int | None) -> None:
        """Train, or only evaluate; rank 0 keeps the best weights and says what came of it.

        Args:
            deadline: of this machine's monotonic clock, in ns, after which no epoch begins.
        """
        spec, world = self.spec, self.spec.nproc
        vendor, adapter = _computes_on(spec, self.config)
        said = vendor.torch_device()  # asked once
        if why := lacks_torch(vendor, said):
            raise StepError(f"vendor {spec.vendor} does not train: {why}")
        device = torch.device(said)
        if device.type != "cpu":
            device = torch.device(device.type, rank)
            torch.accelerator.set_device_index(rank)
            for supply in self.supplies:
                supply.pin()
        compile_within(said)
        use_tf32(self.config.precision == "tf32")
        if world > 1:
            dist.init_process_group(spec.backend, device_id=bound(device))
        goal = BestWeights(spec, self.counted, self.case.momentum, deadline)
        place = Place(rank, rank, world, device)
        begun = now()
        trainer = Trainer(
            self.case, self.data, self.config, self.training, vendor, place, log, heartbeat, self.fresh, goal, adapter
        )
        trainer.run()
        if not spec.epochs:
            look_at_search(trainer, self.supplies[-1], log, partial(heartbeat, 0))
        if rank == 0:
            window = (begun, now())
            goal.save(spec.own_directory(0, 0))
            goal.tell(log, window)
            if not trainer.honest:
                log.write("dishonest")
        heartbeat(trainer.position.steps, "end")


def _computes_on(spec: TrialSpec, config: EffectiveConfig) -> tuple[Vendor, TrainingAdapter | None]:
    """Whose device, and its way to train: an evaluation alone is the referee's, on the processor, in a process without
    a vendor's code."""
    if not spec.epochs:
        return Processor(), None
    found = find_vendor(spec.vendor, Path(spec.vendors_dir), config.host.device)
    return found.vendor, found.training_adapter(f"{config.suite}/{config.case}")
