"""The training of one trial: training's own loop, with early stopping, and with what a search must know beside."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from proofmark.automl.graph import parse_graph
from proofmark.automl.network import GraphNetwork, momentum_of, set_momentum
from proofmark.automl.trial.made_case import TrialCase
from proofmark.automl.trial.spec import MOMENTUM, WEIGHTS
from proofmark.process.wall_clock import now
from proofmark.training.ranks.model.own import named_weights
from proofmark.training.ranks.model.strategy import unwrapped
from proofmark.training.ranks.trainer import Trainer
from proofmark.vendor.adapter import TrainingAdapter

if TYPE_CHECKING:
    from proofmark.automl.trial.spec import TrialSpec

MIN_DELTA = 1e-3
"""By how much a metric must be better to be so, as in the original's early stopping."""


class TrialTrainer(Trainer):
    """Trains a network for some epochs, or only evaluates it, and keeps the weights of its best evaluation.

    Attributes:
        window: first and last moment of it, in seconds since the epoch.
    """

    def __init__(self, trial: TrialSpec, *training: Any) -> None:
        """Take a trial, and what `Trainer` takes."""
        super().__init__(*training)
        self._trial = trial
        if not trial.epochs:
            self._adapted, self._adapter = [], TrainingAdapter()  # what decides is the referee's own way
            self._referee.adapted = False
        self._best: Mapping[str, torch.Tensor] = {}
        self._momentum: Mapping[str, torch.Tensor] = {}
        self._best_metric, self._best_epoch, self._waited = -math.inf, 0, 0
        self._dtypes: set[str] = set()
        self.window = (0.0, 0.0)

    def run(self) -> bool:
        """Train or evaluate, keep the best weights, and say what came of it."""
        begun = now()
        honest = super().run() or self._honest
        self.window = (begun, now())
        if self._trial.epochs:
            network = GraphNetwork(parse_graph(self._trial.graph, "the trial"))
            network.load_state_dict(self._best, assign=True)
            save(network.weights(), self._trial.folder / WEIGHTS)
            if self._momentum:
                save(self._momentum, self._trial.folder / MOMENTUM)
        self._log.write("computed", dtypes=sorted(self._dtypes), window=list(self.window))
        best = self._best_metric if math.isfinite(self._best_metric) else None
        self._log.write("chosen", metric=best, epoch=self._best_epoch)
        return honest

    def _build(self) -> None:
        super()._build()
        evaluated_on = self._data.validation.dataset.identity
        self._log.write("evaluated_on", **evaluated_on.model_dump())
        network = unwrapped(self.model)
        if isinstance(network, GraphNetwork) and isinstance(self._case, TrialCase):
            set_momentum(network, self._optimizer, self._case.momentum)
        for module in network.modules():
            if any(parameter.dim() > 1 for parameter in module.parameters(recurse=False)):
                module.register_forward_hook(self._observe)

    def _observe(self, module: torch.nn.Module, inputs: Any, output: Any) -> None:
        """In which numbers a layer with weights computes while it is trained."""
        if module.training and isinstance(output, torch.Tensor):
            self._dtypes.add(str(output.dtype).removeprefix("torch."))

    def _count_flops(self, model: torch.nn.Module) -> None:
        """Operations on one image, forward, and in a step, by torch's counter: what the closed form is held against."""
        inputs, _ = next(iter(self._data.validation.load([[0]])))
        forward, training = counted(model, inputs[0][:1])
        self._log.write("counted", forward=forward, training=training)

    def _train(self) -> bool:
        return bool(self._trial.epochs) and super()._train()

    def _reached_target(self, forced: bool, epoch_ended: bool) -> bool:
        """Whether this epoch is the last before its time: nothing has got better for long, or the time is over."""
        before = self._best_metric
        metric = self._evaluate()
        better = metric >= before + MIN_DELTA
        self._waited = 0 if better else self._waited + 1
        patience, deadline = self._trial.patience, self._trial.deadline
        if patience is not None and self._waited >= patience:
            self._log.write("stopped_early", reason=f"no better evaluation in {patience} epochs")
            return True
        if deadline is not None and time.perf_counter_ns() >= deadline:
            self._log.write("stopped_early", reason="the search's time is over")
            return True
        return False

    def _evaluate(self) -> float:
        """As training does; the best weights are kept."""
        metric = super()._evaluate()
        trained = self._samples > 0 or not self._trial.epochs
        if trained and metric > self._best_metric:
            self._best_metric, self._best_epoch = metric, self._epoch + bool(self._samples)
            network = unwrapped(self.model)
            weights = named_weights(network)
            if isinstance(network, GraphNetwork):
                self._momentum = momentum_of(network, self._optimizer)
            self._best = {name: tensor.detach().cpu().clone() for name, tensor in weights.items()}
        return metric


def counted(model: torch.nn.Module, images: torch.Tensor) -> tuple[int, int]:
    """FLOPs of a forward pass over `images`, and of one with its backward pass, a multiply-add as two."""
    from torch.utils.flop_counter import FlopCounterMode

    model.eval()  # one image is no batch to normalise by
    counter = FlopCounterMode(display=False)
    with counter:
        answer = model(images)
        forward = counter.get_total_flops()
        answer.sum().backward()
    model.zero_grad(set_to_none=True)
    return int(forward), int(counter.get_total_flops())


def save(tensors: Mapping[str, torch.Tensor], path: Path) -> None:
    """As safetensors, whole or not at all.

    Raises:
        OSError: no space, no permission.
    """
    from safetensors.torch import save_file

    draft = path.with_name(f".{path.name}")
    save_file({name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}, draft)
    draft.replace(path)
