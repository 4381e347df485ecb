"""What a trial trains for: weights that are as good as they get in some epochs, and what a search must know beside."""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist

from proofmark.automl.network.graph import parse_graph
from proofmark.automl.network.module import GraphNetwork, momentum_of, set_momentum
from proofmark.automl.trial.spec import MOMENTUM, WEIGHTS
from proofmark.automl.trial.tensors import save
from proofmark.errors import StepError
from proofmark.training.ranks.goal import Goal
from proofmark.training.ranks.model.own import named_weights
from proofmark.training.ranks.model.strategy import largest, unwrapped

if TYPE_CHECKING:
    from pathlib import Path

    from proofmark.automl.trial.spec import TrialSpec
    from proofmark.record.events.log import EventLog
    from proofmark.training.feeding.loading import OnDemand
    from proofmark.training.ranks.model.evaluation import Evaluated
    from proofmark.training.ranks.trainer import Trainer

MIN_DELTA = 1e-3
"""By how much a metric must be better than the last that was so, as in the original's early stopping: many small steps
add up."""

MOST_NOTES = 10_000
"""Of losses: of all steps they would fill a long trial's log, of which a search wants the last before an evaluation."""


class BestWeights(Goal):
    """The best evaluation's weights; with no epoch, an evaluation alone, which is the referee's own way.

    Args:
        counted: gives FLOPs of one image, forward and in a step, by torch's counter.
        momentum: to begin with, by the names of weights.
        deadline: of this machine's monotonic clock, in ns, after which no epoch begins; None for never.
    """

    leaves_weights = False  # the best ones are
    most_notes = MOST_NOTES

    def __init__(
        self,
        trial: TrialSpec,
        counted: Callable[[], tuple[int, int]],
        momentum: Mapping[str, torch.Tensor],
        deadline: int | None,
    ) -> None:
        self._trial, self._counted, self._inherited, self._deadline = trial, counted, momentum, deadline
        self.vendors_way = trial.epochs > 0
        self._best: Mapping[str, torch.Tensor] = {}
        self._momentum: Mapping[str, torch.Tensor] = {}
        self._best_metric, self._best_epoch = -math.inf, 0
        self._better_than, self._waited = -math.inf, 0
        self._dtypes: set[str] = set()

    def epochs(self, training: Trainer) -> int:
        """The trial's.

        Raises:
            StepError: the search's time is over already.
        """
        if self._is_late(training):
            raise StepError("the search's time is over before its first epoch")
        return self._trial.epochs

    def count(self, training: Trainer, model: torch.nn.Module) -> None:
        """Count FLOPs by torch's counter, which the closed form is held against."""
        forward, step = self._counted()
        training.log.write("counted", forward=forward, training=step)

    def ready(self, training: Trainer) -> None:
        """Take on the parent's momentum, and look at the numbers that layers with weights compute in."""
        training.log.write("evaluated_on", **training.data.validation.identity.model_dump())
        network = _network_of(training)
        if isinstance(network, GraphNetwork):
            set_momentum(network, training.stepper.optimizer, self._inherited)
        observe = _observer(self._dtypes)
        for module in network.modules():
            if any(parameter.dim() > 1 for parameter in module.parameters(recurse=False)):
                module.register_forward_hook(observe)

    def evaluated(self, training: Trainer, found: Evaluated) -> None:
        """Keep the best weights: those of before the first step only where there is none."""
        at, metric = training.position, found.metric
        if not (at.samples or not self._trial.epochs) or not metric > self._best_metric:
            return
        self._best_metric, self._best_epoch = metric, at.epoch + bool(at.samples)
        if training.place.rank == 0 and self._trial.epochs:
            network = _network_of(training)
            if isinstance(network, GraphNetwork):
                self._momentum = momentum_of(network, training.stepper.optimizer)
            weights = named_weights(network)
            self._best = {name: tensor.detach().cpu().clone() for name, tensor in weights.items()}

    def is_over(self, training: Trainer, found: Evaluated) -> bool:
        """Whether nothing has got better for long, or the time is over."""
        metric = found.metric
        if metric > self._better_than + MIN_DELTA:
            self._better_than, self._waited = metric, 0
        else:
            self._waited += 1
        patience = self._trial.patience
        if patience is not None and self._waited >= patience:
            training.log.write("stopped_early", reason=f"no better evaluation in {patience} epochs")
            return True
        if self._is_late(training):
            training.log.write("stopped_early", reason="the search's time is over")
            return True
        return False

    def _is_late(self, training: Trainer) -> bool:
        """Whether the time is over by any rank's clock: one decides for all."""
        late = self._deadline is not None and time.perf_counter_ns() >= self._deadline
        return bool(largest(late, training.place))

    def ended(self, training: Trainer) -> None:
        """Let go of the device: the next trial may have it while this one saves its weights."""
        device = training.place.device
        if device.type != "cpu":
            training.stepper.optimizer.state.clear()
            training.model.to("cpu")
            torch.accelerator.empty_cache()
        if training.place.world > 1:
            dist.destroy_process_group()  # it has buffers there

    def save(self, folder: Path) -> None:
        """Write the best weights, for children.

        Raises:
            OSError: no space, no permission.
        """
        if not self._best:
            return
        network = GraphNetwork(parse_graph(self._trial.graph, "the trial"))
        network.load_state_dict(self._best, assign=True)
        save(network.weights(), folder / WEIGHTS)
        if self._momentum:
            save(self._momentum, folder / MOMENTUM)

    def tell(self, log: EventLog, window: tuple[float, float]) -> None:
        """Write the result to the log. `window`: its first and its last moment, in seconds since the epoch."""
        log.write("computed", dtypes=sorted(self._dtypes), window=list(window))
        best = self._best_metric if math.isfinite(self._best_metric) else None
        log.write("chosen", metric=best, epoch=self._best_epoch)


def _observer(dtypes: set[str]) -> Callable[[torch.nn.Module, Any, Any], None]:
    """A hook that notes what numbers layers compute in while they train.

    Compiled with them, it notes those as it is compiled: what a step changes would have all of it compiled once more.
    """

    @torch.compiler.assume_constant_result  # type: ignore[untyped-decorator]
    def note(dtype: str) -> None:
        dtypes.add(dtype)

    def observe(module: torch.nn.Module, inputs: Any, output: Any) -> None:
        if module.training and isinstance(output, torch.Tensor):
            note(str(output.dtype).removeprefix("torch."))

    return observe


def _network_of(training: Trainer) -> torch.nn.Module:
    """What is trained, without what makes it faster."""
    model = unwrapped(training.model)
    network: torch.nn.Module = getattr(model, "_orig_mod", model)
    return network


def counted(model: torch.nn.Module, data: OnDemand) -> Callable[[], tuple[int, int]]:
    """Gives FLOPs of a forward pass over one image of the data, and of one with its backward pass, a multiply-add as
    two. A copy without values is counted: nothing is computed.

    The backward pass is counted when it is called: a process's first looks for devices, whatever it computes on.
    """
    from torch.utils.flop_counter import FlopCounterMode

    inputs, _ = next(iter(data.load([[0]])))
    shapes = copy.deepcopy(model).to("meta").eval()  # one image is no batch to normalise by
    counter = FlopCounterMode(display=False)
    with counter:
        answer = shapes(inputs[0][:1].to("meta"))
    forward = int(counter.get_total_flops())

    def of_step() -> tuple[int, int]:
        with counter:  # from zero again
            answer.sum().backward()
        return forward, forward + int(counter.get_total_flops())

    return of_step
