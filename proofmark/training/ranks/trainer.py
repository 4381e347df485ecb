"""One rank's training: the loop, the clock, evaluation, and the end at its goal or at a limit."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from proofmark.process.log_level import LOGGER
from proofmark.process.memory import heap_left_alone
from proofmark.record.events.log import EventLog
from proofmark.record.identity import identify
from proofmark.training.feeding.batches import Share
from proofmark.training.feeding.loading import Data
from proofmark.training.heartbeat import HeartbeatWriter
from proofmark.training.ranks.account import Account, Position
from proofmark.training.ranks.clock import Clock
from proofmark.training.ranks.goal import Goal, Target
from proofmark.training.ranks.left import digest_of, last_weights
from proofmark.training.ranks.model.evaluation import Evaluated, as_fields, evaluate
from proofmark.training.ranks.model.own import Fresh, make_fresh
from proofmark.training.ranks.model.referee import Referee
from proofmark.training.ranks.model.strategy import Place, share_buffers, summed, unwrapped
from proofmark.training.ranks.recording import Recorder
from proofmark.training.ranks.saving import Saving
from proofmark.training.ranks.stepper import Stepper
from proofmark.training.spec import CHANCES
from proofmark.vendor.adapter import TrainingAdapter, adapted_steps

if TYPE_CHECKING:
    from proofmark.case import Batch
    from proofmark.rules.config import EffectiveConfig
    from proofmark.training.case import TrainingCase
    from proofmark.training.spec import TrainingSpec
    from proofmark.vendor.contract import Vendor


class Trainer:
    """Trains one case on one rank. Nothing of a vendor or a case reads a clock.

    Args:
        fresh: the model to train, where it had to be made before now.
        goal: what for; None for the case's target, as the spec has it.
        adapter: the vendor's way to train; None for the one of all cases.

    Attributes:
        adapted: names of the steps that the vendor does its own way.
        honest: whether what was trained is the case's model, as far as anybody has looked.
        position: how far it has come.
        model: fresh, then as it is trained.
        stepper: all that a step changes, once `run` has made it.
        left: rank 0's copy of the weights with which it came to its goal, once it has.
    """

    def __init__(
        self,
        case: TrainingCase,
        data: Data,
        config: EffectiveConfig,
        spec: TrainingSpec,
        vendor: Vendor,
        place: Place,
        log: EventLog,
        heartbeat: HeartbeatWriter,
        fresh: Fresh | None = None,
        goal: Goal | None = None,
        adapter: TrainingAdapter | None = None,
    ) -> None:
        self.case, self.data, self.config, self.place, self.log = case, data, config, place, log
        self.goal = goal or Target(spec.until_converged)
        self._spec, self._heartbeat, self._clock = spec, heartbeat, Clock(vendor.synchronize)
        adapter = (adapter or vendor.training_adapter()) if self.goal.vendors_way else TrainingAdapter()
        self.adapted = adapted_steps(adapter)
        self._adapter = adapter if self.adapted else TrainingAdapter()  # none that may change its mind
        fresh = fresh or make_fresh(case, config, spec.seed)
        self.model = fresh.model
        self._referee = Referee(
            case,
            config,
            data.validation,
            place,
            fresh,
            bool(self.adapted),
            log,
            lambda phase: self._account.alive(phase),
        )
        self.honest, self.position = True, Position()
        self.left: Mapping[str, torch.Tensor] = {}
        chances = [float(number) for number in os.environ.get(CHANCES, "").split(",") if number]
        self._recorder = (
            Recorder(spec.own_directory(0, 0), place, chances, lambda: self._account.alive("recording"))
            if spec.audited
            else None
        )

    def run(self) -> bool:
        """Train; return whether the goal was reached within the limits."""
        self.log.write("init_begin")
        self._heartbeat(0, "init")
        self._build()
        self.goal.ready(self)
        self._evaluate()
        self.honest &= self._referee.honest_start(self.model, self.stepper.autocast)
        self.log.write("init_end")
        with heap_left_alone():
            at = self.position
            # first: who hears of it may be given this processor, and the time until it is given back is training's too
            self._clock.start()
            self.log.write("train_begin", steps=at.steps, samples=at.samples, **self._clock.before())
            reached = self.honest and self._train()
            last = self._last_weights() if reached and self.goal.leaves_weights else {}
        self._account.write_totals("train_end", converged=reached, **last)
        try:
            self._saving.wait()
        except OSError as error:
            if not reached:
                raise
            LOGGER.warning("%s; the training is at its target without", error)
        self.goal.ended(self)
        self._account.alive("end")
        return reached

    def confirmed(self, found: Evaluated) -> Evaluated | None:
        """The metric of the weights in the case's own model; None where they don't fit that. `honest` says afterwards
        whether it agrees with what was `found` in the vendor's.

        It is timed as any evaluation: no clock stops for what only the rank could tell the length of.
        """
        at, before = self.position, self._clock.parts["evaluation"]
        with self._account.part("evaluation"):
            own, self.honest = self._referee.confirm(self.model, found)
        took = (self._clock.parts["evaluation"] - before) / 1e9
        fields = {"step": at.steps, "samples": at.samples, "took_seconds": took}
        self.log.write("confirmation", **(as_fields(own) if own else {"metric": None}), **fields)
        return own

    def _last_weights(self) -> dict[str, str]:
        """Keep the weights, and log their digest while the clock runs, by which they are known when they are examined.

        It takes as long as a checkpoint.
        """
        alive = partial(self._account.alive, "checkpoint")
        self.left = last_weights(self.model, self.place, alive)
        return {"weights": digest_of(self.left, alive)} if self.place.rank == 0 else {}

    def _build(self) -> None:
        """Make model and optimizer, or have them resume from a checkpoint."""
        config, place, seed = self.config, self.place, self._spec.seed
        items = self.data.validation.items
        self.log.write("dataset", **self.data.train.identity.model_dump(), validation_items=items)
        model = self.model
        self.log.write("model", parameters=sum(parameter.numel() for parameter in model.parameters()))
        self.log.write("adapted", steps=self.adapted)
        self.goal.rehearse(self, model)
        if place.rank == 0:
            self.goal.count(self, model)
            if config.host.weights is not None:
                self.log.write("weights", **identify(model, config.host.weights).model_dump())
        self._batches, self._interval = self.data.train.order, config.eval_interval_samples
        steps = self._batches.steps(config.max_epoch, config.max_samples_termination)
        self.stepper = Stepper(self.case, config, place, self._adapter, model, steps)
        self.model = self.stepper.model
        self.log.write("optimizer", name=type(self.stepper.optimizer).__name__)
        torch.manual_seed(seed * 1_000_003 + 1 + place.rank)
        most = self.goal.most_notes
        self._noted = config.log_freq if most is None else max(config.log_freq, -(-steps // most))
        self._account = Account(
            self.log, self._heartbeat, self._clock, place, self.stepper, self.position, last_alone=most is not None
        )
        self._saving = Saving(config, self._spec, self.data, self._account)
        if self._spec.resume_from:
            self.honest = self._referee.honest_start(self.model, self.stepper.autocast)
            self._saving.resume(Path(self._spec.resume_from))
            self._referee.take_prints(self.model)
        self._heartbeat.first = self.position.steps

    def _train(self) -> bool:
        """Train; return whether the goal ended it. A dishonest model ends it too."""
        limit, at, epochs = self.config.max_samples_termination or math.inf, self.position, self.goal.epochs(self)
        self._account.alive("data")
        summed([0.0], self.place)  # no rank takes samples before each has said that its training begins
        loader = self.data.train.batches(at.epoch, at.batch)
        while at.epoch < epochs and at.samples < limit:
            self.log.write("epoch_begin", epoch=at.epoch)
            self._account.alive("data")
            for step in self._batches.shares(at.epoch, self.place.rank, at.batch):
                before = at.samples
                with self.stepper.communication.step(at.steps + 1, lambda: self._clock.parts["compute"]):
                    self._step(step, loader)
                last = at.batch == len(self._batches)
                enough = at.samples >= limit or (last and at.epoch + 1 == epochs)
                if (enough or self._due(before, last)) and self.goal.is_over(self, self._evaluate()):
                    return self.honest
                self._saving.save_if_due(last)
                if enough:
                    return False
            at.epoch, at.batch = at.epoch + 1, 0
        return False

    def _step(self, shares: list[Share], loader: Iterator[Batch]) -> None:
        """One optimizer step over a global batch."""
        batches, at, account = [], self.position, self._account
        for _ in shares:
            with account.part("data"):
                batches.append(next(loader))
        recorder = self._recorder if self._recorder and self._recorder.due() else None
        if recorder is not None:
            recorder.begin(self.model, self.stepper.optimizer, at)
        with account.part("compute"):
            loss = self.stepper.step(shares, batches, lambda: account.alive("compute"), recorder)
        if recorder is not None:
            recorder.end(self.model)
        account.add(loss)
        at.samples += self._batches.size(at.batch)
        at.steps += 1
        at.batch += 1
        if at.steps % self._noted == 0 or at.steps == 1:
            account.write_losses()
        else:
            account.write_pace()

    def _due(self, before: int, epoch_ended: bool) -> bool:
        """Whether to evaluate: after each epoch, or where a step has passed the interval between two evaluations."""
        interval = self._interval
        return self.position.samples // interval > before // interval if interval else epoch_ended

    def _evaluate(self) -> Evaluated:
        """The metric over the whole validation set, every sample once, the same on every rank."""
        self._account.write_losses()
        before = self._clock.parts["evaluation"]
        with self._account.part("evaluation"):
            model = unwrapped(self.model).eval()
            share_buffers(model, self.place)
            found = evaluate(
                model,
                self.case,
                self.config,
                self.data.validation,
                self.place,
                self.stepper.autocast,
                self._account.alive,
            )
            self.model.train()
        fields: dict[str, Any] = {"took_seconds": (self._clock.parts["evaluation"] - before) / 1e9}
        self._account.write_totals("evaluation", **as_fields(found), samples_evaluated=found.items, **fields)
        self.goal.evaluated(self, found)
        return found
