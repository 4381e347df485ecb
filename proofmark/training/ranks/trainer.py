"""One rank's training: the loop, the clock, evaluation, and the end at the target or at a limit."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import AbstractContextManager
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from proofmark.errors import StepError
from proofmark.measuring.precision import count_flops
from proofmark.measuring.rehearsal import declared_and_counted
from proofmark.monitoring.contention import ContentionMeter, session_of_rank
from proofmark.process.lifetime import heap_left_alone
from proofmark.record.events import EventLog
from proofmark.record.identity import identify
from proofmark.training.ranks.batches import GlobalBatches, Share
from proofmark.training.ranks.clock import Clock, Part
from proofmark.training.ranks.communication import CommunicationMeter
from proofmark.training.ranks.heartbeat import HeartbeatWriter
from proofmark.training.ranks.loading import Data, RankLoader
from proofmark.training.ranks.model.evaluation import evaluate
from proofmark.training.ranks.model.own import Fresh, make_fresh
from proofmark.training.ranks.model.referee import Referee
from proofmark.training.ranks.model.strategy import (
    Place,
    exchange,
    on_device,
    prepare,
    share_buffers,
    summed,
    unwrapped,
)
from proofmark.vendor.adapter import TrainingAdapter, adapted_steps

if TYPE_CHECKING:
    from proofmark.case import Batch
    from proofmark.rules.config import EffectiveConfig
    from proofmark.training.case import TrainingCase
    from proofmark.training.ranks.checkpoint import Checkpoints
    from proofmark.training.spec import TrainingSpec
    from proofmark.vendor.contract import Vendor


class NonFiniteLoss(StepError):
    """The training diverged."""


class Trainer:
    """Trains one case on one rank. Nothing of a vendor or a case reads a clock.

    Args:
        fresh: the model to train, where it had to be made before now.
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
    ) -> None:
        self._case, self._data, self._config, self._spec, self._place = case, data, config, spec, place
        self._clock = Clock(vendor.synchronize)
        adapter = vendor.training_adapter()
        self._adapted = adapted_steps(adapter)
        self._adapter = adapter if self._adapted else TrainingAdapter()  # none that may change its mind
        self._log, self._heartbeat = log, heartbeat
        fresh = fresh or make_fresh(case, config, spec.seed)
        self.model = fresh.model
        self._referee = Referee(
            case, config, data.validation, place, fresh, bool(self._adapted), log, lambda: self._alive("evaluation")
        )
        self._honest = True
        self._steps = self._samples = self._epoch = self._batch = 0
        self._losses: list[torch.Tensor] = []

    def run(self) -> bool:
        """Train; whether the target was reached."""
        self._log.write("init_begin")
        self._heartbeat(0, "init")
        self._build()
        self._evaluate()
        self._honest &= self._referee.honest_start(self.model, self._autocast)
        self._log.write("init_end")
        meter = ContentionMeter(session_of_rank()) if self._place.local_rank == 0 else None
        with heap_left_alone():
            before = self._clock.seconds()["train_seconds"]
            self._log.write("train_begin", steps=self._steps, samples=self._samples, train_seconds=before)
            self._clock.start()
            converged = self._honest and self._train()
        self._write_totals("train_end", converged=converged)
        if meter is not None:
            self._log.write("contention", **meter.seen().model_dump())
        if self._checkpoints:
            self._heartbeat(self._steps, "checkpoint")
            self._checkpoints.wait()
        self._heartbeat(self._steps, "end")
        return converged

    def _build(self) -> None:
        """Model, optimizer, and where training goes on from."""
        config, place, seed = self._config, self._place, self._spec.seed
        train, validation = self._data.train.dataset, self._data.validation.dataset
        self._log.write("dataset", **train.identity.model_dump(), validation_items=len(validation))
        model = self.model
        self._log.write("model", parameters=sum(parameter.numel() for parameter in model.parameters()))
        self._log.write("adapted", steps=self._adapted)
        if place.rank == 0:
            self._count_flops(model)
            if config.host.weights is not None:
                self._log.write("weights", **identify(model, config.host.weights).model_dump())
        model = self._adapter.convert_model(model.train(), config)
        self.model = prepare(model, config, place).train()
        self._communication = CommunicationMeter(self.model, place)
        self._optimizer = self._adapter.create_optimizer(self._case, self.model, config)
        self._log.write("optimizer", name=type(self._optimizer).__name__)
        self._batches = GlobalBatches(
            len(train), config.global_batch_size, place.world, config.gradient_accumulation_steps, seed
        )
        self._total_steps = len(self._batches) * config.max_epoch
        self._scheduler = self._case.create_scheduler(self._optimizer, config, self._total_steps)
        self._scaler = torch.amp.GradScaler(place.device.type, enabled=config.precision == "fp16")
        torch.manual_seed(seed * 1_000_003 + 1 + place.rank)
        self._checkpoints: Checkpoints | None = None
        if config.checkpoint_steps:
            from proofmark.training.ranks.checkpoint import Checkpoints  # a second, for the library behind it

            self._checkpoints = Checkpoints(self._spec.checkpoint_directory, place.rank)
        if self._spec.resume_from:
            self._honest = self._referee.honest_start(self.model, self._autocast)
            self._resume(Path(self._spec.resume_from))
            self._referee.take_prints(self.model)
        self._heartbeat.first = self._steps

    def _count_flops(self, model: torch.nn.Module) -> None:
        """Operations of one sample's step: three forward passes' worth, the backward pass counted as two."""
        inputs, _ = next(RankLoader(self._data.train.dataset, workers=0).load([[0]]))
        counted = 3.0 * count_flops(model.eval(), inputs)
        self._log.write("flops", counted=counted)
        if "flops" in self._config.parameters:  # weights for inference are trained without
            declared_and_counted(self._case, self._config, counted)

    def _train(self) -> bool:
        """Whether the target was reached; a dishonest model ends it too."""
        limit = self._config.max_samples_termination or math.inf
        while self._epoch < self._config.max_epoch and self._samples < limit:
            self._log.write("epoch_begin", epoch=self._epoch)
            self._heartbeat(self._steps, "data")
            shares = list(self._batches.shares(self._epoch, self._place.rank, self._batch))
            lists = [share.indices for step in shares for share in step]
            loader = self._data.train.load(lists, self._epoch)
            for step in shares:
                before = self._samples
                with self._communication.step(self._steps + 1, lambda: self._clock.parts["compute"]):
                    self._step(step, loader)
                last = self._batch == len(self._batches)
                enough = self._samples >= limit or (last and self._epoch + 1 == self._config.max_epoch)
                if (enough or last or self._due(before)) and self._reached_target(enough or self._due(before), last):
                    return self._honest
                self._checkpoint_if_due(last)
                if enough:
                    return False
            self._epoch, self._batch = self._epoch + 1, 0
        return False

    def _step(self, shares: list[Share], loader: Iterator[Batch]) -> None:
        """One optimizer step over a global batch."""
        batches, losses = [], []
        for _ in shares:
            with self._part("data"):
                batches.append(next(loader))
        with self._part("compute"):
            weights = self._weights(shares, batches)
            for number, (batch, weight) in enumerate(zip(batches, weights, strict=True), 1):
                self._heartbeat(self._steps, "compute")
                losses.append(self._micro_step(batch, weight, last=number == len(shares)))
            self._scaler.step(self._optimizer)
            self._scaler.update()
            self._optimizer.zero_grad(set_to_none=True)
            self._scheduler.step()
        self._losses.append(reduce(torch.add, losses))
        self._samples += self._batches.size(self._batch)
        self._steps += 1
        self._batch += 1
        if self._steps % self._config.log_freq == 0 or self._steps == 1:
            self._write_steps()

    def _weights(self, shares: list[Share], batches: list[Batch]) -> list[float]:
        """What turns each mean loss of this rank into its part of the mean over the global batch.

        Gradients are averaged over ranks and summed over micro-batches: weights add up to the world size.
        """
        if len(shares) == self._place.world == 1:
            return [1.0]
        counts = [
            self._case.loss_weight(targets) * share.samples / len(share.indices)
            for share, (_, targets) in zip(shares, batches, strict=True)
        ]
        (total,) = summed([sum(counts)], self._place)
        return [count * self._place.world / (total or math.nan) for count in counts]

    def _micro_step(self, batch: Batch, weight: float, last: bool) -> torch.Tensor:
        inputs, targets = on_device(batch, self._config, self._place)
        with self._communication.micro_step(last), exchange(self.model, last):
            with self._autocast():
                loss = self._adapter.train_step(self._case, self.model, inputs, targets)
            if weight != 1.0:
                loss = loss * weight if weight else loss.nan_to_num() * 0.0  # a mean over nothing is no number
            self._adapter.backward(self._scaler.scale(loss))
        return loss.detach()

    def _due(self, before: int) -> bool:
        """Whether the interval between evaluations has passed with the last step."""
        interval = self._config.eval_interval_samples
        return bool(interval) and self._samples // interval > before // interval

    def _reached_target(self, forced: bool, epoch_ended: bool) -> bool:
        if not (forced or (epoch_ended and not self._config.eval_interval_samples)):
            return False
        metric = self._evaluate()
        if not (self._spec.until_converged and self._reaches(metric)):
            return False
        return not self._referee.adapted or self._confirmed(metric)

    def _confirmed(self, metric: float) -> bool:
        """Whether the weights are at the target in the case's own model too, which decides, or are not to be trusted.

        That is no part of training: its clock stands meanwhile.
        """
        self._log.write("confirmation_begin", step=self._steps)
        before = self._clock.seconds()["confirmation_seconds"]
        with self._clock.paused():
            own, self._honest = self._referee.confirm(self.model, metric)
        took = self._clock.seconds()["confirmation_seconds"] - before
        fields = {"step": self._steps, "samples": self._samples, "took_seconds": took}
        self._log.write("confirmation", metric=own if math.isfinite(own) else None, **fields)
        return not self._honest or self._reaches(own)

    def _reaches(self, metric: float) -> bool:
        return reaches(metric, self._config.target, self._config.better)

    def _evaluate(self) -> float:
        """The metric over the whole validation set, every sample once, the same figure on every rank."""
        self._write_steps()
        before = self._clock.parts["evaluation"]
        with self._part("evaluation"):
            model = unwrapped(self.model).eval()
            share_buffers(model, self._place)
            data, alive = self._data.validation, lambda: self._alive("evaluation")
            total, items = evaluate(model, self._case, self._config, data, self._place, self._autocast, alive)
            self.model.train()
        metric = total / items if items else math.nan
        finite = metric if math.isfinite(metric) else None
        took = (self._clock.parts["evaluation"] - before) / 1e9
        fields = {"metric": finite, "samples_evaluated": items, "took_seconds": took}
        self._write_totals("evaluation", **fields)
        return metric

    def _autocast(self) -> AbstractContextManager[Any]:
        return self._adapter.autocast(self._config, self._place.device)

    def _alive(self, phase: str) -> None:
        self._heartbeat(self._steps, phase)

    def _write_steps(self) -> None:
        """Note the losses since the last note; a loss of this rank that is no number ends the training."""
        if not self._losses:
            return
        own = torch.stack(self._losses).tolist()
        self._losses.clear()
        first = self._steps - len(own) + 1
        bad = next((step for step, loss in enumerate(own, first) if not math.isfinite(loss)), None)
        means = [loss / self._place.world for loss in summed(own, self._place)]
        losses = [loss if math.isfinite(loss) else None for loss in means]
        rate = self._scheduler.get_last_lr()[0]
        fields = {"first": first, "losses": losses, "learning_rate": rate, "total_steps": self._total_steps}
        self._write_totals("steps", **fields)
        if bad is not None:
            self._log.write("diverged", step=bad)
            raise NonFiniteLoss(f"the loss of step {bad} is not a finite number")

    def _write_totals(self, kind: str, **fields: Any) -> None:
        """Every figure of the clock, as sums since training began."""
        total = {"epoch": self._epoch, "step": self._steps, "samples": self._samples}
        communication = self._communication.totals()
        self._log.write(kind, **total, **self._clock.seconds(), communication=communication, **fields)

    def _checkpoint_if_due(self, epoch_ended: bool) -> None:
        if self._checkpoints is None or self._steps % self._config.checkpoint_steps:
            return
        with self._part("checkpoint"):
            self._write_steps()
            share_buffers(unwrapped(self.model), self._place)
            progress = {
                **self._identity(),
                "epoch": self._epoch + epoch_ended,
                "batch": 0 if epoch_ended else self._batch,
                "steps": self._steps,
                "samples": self._samples,
                **self._clock.state(),
                "scheduler": self._scheduler.state_dict(),
                "scaler": self._scaler.state_dict(),
            }
            self._checkpoints.save(self._steps, self.model, self._optimizer, progress)
            self._log.write("checkpoint", step=self._steps)

    def _identity(self) -> dict[str, Any]:
        """What a checkpoint must agree in with the run that goes on from it."""
        data = {"train data": self._data.train.dataset, "validation data": self._data.validation.dataset}
        digests = {name: dataset.identity.sha256 for name, dataset in data.items()}
        return {"config": self._config.hash, "seed": self._spec.seed, "world": self._place.world, **digests}

    def _resume(self, path: Path) -> None:
        from proofmark.training.ranks.checkpoint import Checkpoints

        progress = Checkpoints.load(path, self.model, self._optimizer)
        here = {key: (progress.get(key), value) for key, value in self._identity().items()}
        wrong = [f"{key} is {its}, not {value}" for key, (its, value) in here.items() if its != value]
        if wrong:
            raise StepError(f"checkpoint {path.name} is of another run: {'; '.join(wrong)}")
        self._epoch, self._batch = progress["epoch"], progress["batch"]
        self._steps, self._samples = progress["steps"], progress["samples"]
        self._clock.resume(progress)
        self._scheduler.load_state_dict(progress["scheduler"])
        self._scaler.load_state_dict(progress["scaler"])
        self._log.write("resumed", checkpoint=path.name, step=self._steps, samples=self._samples)

    def _part(self, name: str) -> Part:
        """Begin one part of training, with a sign of life, and time it."""
        self._heartbeat(self._steps, name)
        return self._clock.part(name)


def reaches(metric: float, target: float, better: str) -> bool:
    """At least the target for accuracies, at most for losses and perplexities; no number reaches nothing."""
    return metric >= target if better == "higher" else metric <= target
