"""Is the model that a vendor trains the case's? Looked at before training, and again where it reaches the target."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

import torch

from proofmark.errors import StepError
from proofmark.measuring.agreement import distance
from proofmark.measuring.names import Names
from proofmark.record.parts import Check
from proofmark.rules.aims import judged
from proofmark.training.feeding.batches import evaluation_batches
from proofmark.training.outcome.checks import EVENT, FUNCTION, METRIC, PARAMETERS, WEIGHTS, metric_bound
from proofmark.training.ranks.model.evaluation import Autocast, Evaluated, answers, evaluate
from proofmark.training.ranks.model.own import Print, named_weights, own_model, print_of, trainable
from proofmark.training.ranks.model.strategy import Place, largest, on_device, unwrapped
from proofmark.vendor.adapter import TrainingAdapter

if TYPE_CHECKING:
    from collections.abc import Callable

    from proofmark.record.events.log import EventLog
    from proofmark.rules.config import EffectiveConfig
    from proofmark.training.case import TrainingCase
    from proofmark.training.feeding.loading import OnDemand
    from proofmark.training.ranks.model.own import Fresh

ANSWERS = {"fp32": 0.005, "tf32": 0.1, "fp16": 0.1, "bf16": 0.5}
"""Largest distance of a row's answer from the case's own, in units of the spread between samples, at fresh weights.

These tell samples apart less than trained ones do. Worst rows of the cases' fresh models against themselves in float32,
at both profiles' sizes: another memory layout 1.8e-5, float16 2e-2, bfloat16 1.5e-1; other fresh weights 2.8 to 40.
"""

ROWS = 16
"""Rows of that batch that the case's own model answers too."""


class Referee:
    """Holds the model that is trained against the one that the case made.

    Every rank calls every method, and all get the same answer.

    Args:
        adapted: whether the vendor does any step its own way. Where it does none, what is evaluated is the case's own
            object by the referee's own steps: its answers are not compared with themselves.
    """

    def __init__(
        self,
        case: TrainingCase,
        config: EffectiveConfig,
        validation: OnDemand,
        place: Place,
        fresh: Fresh,
        adapted: bool,
        log: EventLog,
        alive: Callable[[str], None],
    ) -> None:
        self._case, self._config, self._validation, self._place = case, config, validation, place
        self._prints, self._trainable = fresh.prints, fresh.trainable
        self._shapes = {name: found.shape for name, found in fresh.prints.items()}
        self._log, self._alive = log, alive
        self.adapted = adapted

    def take_prints(self, model: torch.nn.Module) -> None:
        """From now on these weights are the ones to begin with: a checkpoint's."""
        self._prints = self._prints_of(model)

    def honest_start(self, model: torch.nn.Module, autocast: Autocast) -> bool:
        """Whether a model that is ready to be trained has the case's parameters, its initial weights and its function.

        Raises:
            StepError: the case's own model gives no answer to compare with.
        """
        found = self._prints_of(model)
        known = found if self._place.rank == 0 else self._prints
        honest = self._log_checks(self._parameters(known, trainable(model)), self._weights(known))
        if not self.adapted or largest(len(self._misfits(named_weights(model))), self._place):
            return honest
        return self._log_checks(self._function(model, autocast)) and honest

    def confirm(self, model: torch.nn.Module, said: Evaluated) -> tuple[Evaluated | None, bool]:
        """The metric of these weights in the case's own model, and whether that is what was `said`.

        None: they don't fit it.

        Args:
            said: of the vendor's model.
        """
        weights = named_weights(model)
        misfits = self._misfits(weights)
        if largest(len(misfits), self._place):
            return None, self._log_checks(_count(PARAMETERS, misfits, "its weights do not fit the case's own model"))
        own = own_model(self._case, self._config, self._place, weights)
        found = evaluate(
            own, self._case, self._config, self._validation, self._place, self._plain_autocast, self._alive
        )
        return found, self._log_checks(*(self._as_good(name, said, found) for name in judged(found.aims)))

    def _as_good(self, name: str, said: Evaluated, found: Evaluated) -> Check:
        """One value of the two models'."""
        theirs, own = (math.nan if (value := each.values[name]) is None else value for each in (said, found))
        bound = metric_bound(own, found.weight, found.items, self._config.precision)
        off = abs(own - theirs)
        what = f"with these weights its {name} is {theirs:.5g}, and that of the case's own model {own:.5g}"
        return Check(METRIC, off <= bound, off, bound, what)

    def _misfits(self, weights: Mapping[str, torch.Tensor]) -> list[str]:
        """Tensors of the case's own model that these cannot fill."""
        there = {name: tuple(tensor.shape) for name, tensor in weights.items()}
        return [name for name, shape in self._shapes.items() if there.get(name) != shape]

    def _prints_of(self, model: torch.nn.Module) -> dict[str, Print]:
        """The prints of a model, on rank 0 alone; a sharded tensor is gathered, for which all ranks are needed."""
        prints = {}
        for name, tensor in named_weights(model).items():
            whole = tensor.full_tensor() if hasattr(tensor, "full_tensor") else tensor
            if self._place.rank == 0:
                prints[name] = print_of(whole)
        return prints

    def _parameters(self, found: Mapping[str, Print], left: int) -> Check:
        wrong = [f"{name} is missing" for name in self._prints if name not in found]
        wrong += [f"{name} is not the case's" for name in found if name not in self._prints]
        for name in sorted(found.keys() & self._prints.keys()):
            has, wanted = found[name], self._prints[name]
            if has.shape != wanted.shape:
                wrong.append(f"{name} has shape {list(has.shape)} instead of {list(wanted.shape)}")
            elif not has.digests.keys() <= wanted.digests.keys():
                wrong.append(f"{name} is {_named(has)} instead of {_named(wanted)}")
        if left < self._trainable:
            wrong.append(f"{left} of {self._trainable} trainable elements are left")
        return _count(PARAMETERS, wrong, "its model does not have the parameters of the case's")

    def _weights(self, found: Mapping[str, Print]) -> Check:
        wrong = [
            name for name in sorted(found.keys() & self._prints.keys()) if not self._prints[name].allows(found[name])
        ]
        return _count(WEIGHTS, wrong, "training does not begin from the weights that the case made from the seed")

    def _function(self, model: torch.nn.Module, autocast: Autocast) -> Check:
        """Both models' answers to some of the data, at the weights of the vendor's."""
        own = own_model(self._case, self._config, self._place, named_weights(model))
        trained = unwrapped(model).eval()
        items = self._validation.items
        lists, _ = evaluation_batches(items, self._config.eval_batch_size, self._place.rank, self._place.world)
        size = max(map(len, lists))  # as it was just evaluated with: none is compiled anew
        batches = batches_to_compare(items, self._config.eval_batch_size, self._place.world)
        chosen = random.SystemRandom().sample(range(items), batches * size)
        wanted, found = list[list[torch.Tensor]](), list[list[torch.Tensor]]()
        for batch in self._validation.load([chosen[at : at + size] for at in range(0, len(chosen), size)]):
            self._alive("evaluation")
            inputs, _ = on_device(batch, self._config, self._place)
            with torch.no_grad():
                with self._plain_autocast():
                    wanted.append(answers(own(*(tensor[:ROWS] for tensor in inputs))))
                with autocast():
                    found.append(as_long_as(wanted[-1], answers(trained(*inputs))))
        worst = max(apart(*each) for each in _together(found, wanted))
        model.train()
        bound = ANSWERS[self._config.precision]
        what = "in eval mode its model answers otherwise than the case's with the same weights"
        return Check(FUNCTION, worst <= bound, worst, bound, what)

    def _plain_autocast(self) -> AbstractContextManager[Any]:
        return TrainingAdapter().autocast(self._config, self._place.device)

    def _log_checks(self, *checks: Check) -> bool:
        """Write checks down, with the worst figure of any rank; whether all passed on every rank."""
        passed = True
        for check in checks:
            failed = largest(not check.passed, self._place) > 0
            figure = largest(math.inf if check.figure is None else check.figure, self._place)
            fields = {**vars(check), "passed": not failed, "figure": figure if math.isfinite(figure) else None}
            self._log.write(EVENT, **fields)
            passed = passed and not failed
        return passed


def as_long_as(wanted: list[torch.Tensor], found: list[torch.Tensor]) -> list[torch.Tensor]:
    """The first rows of each answer to a batch, of whose first rows `wanted` is the answer: those of the batch, or all
    of an answer that has no row for each sample, such as words' embeddings."""
    if len(found) != len(wanted):
        return found
    return [got[: len(want)] if got.dim() and want.dim() else got for got, want in zip(found, wanted, strict=True)]


def batches_to_compare(items: int, batch_size: int, world: int) -> int:
    """How many batches have ROWS rows, as far as there are so many samples: how far samples lie apart is told by these,
    and a vendor's batch may have one. The same on every rank, whose shares differ by one: a sharded model needs them
    all at each call."""
    least, most = max(1, min(batch_size, items // world)), min(batch_size, -(-items // world))
    return max(1, min(-(-ROWS // least), items // most))


Answers = list[torch.Tensor]


def _together(found: list[Answers], wanted: list[Answers]) -> Iterator[tuple[Answers, Answers]]:
    """Answers to several batches, and what was wanted, as of one; where they differ in form, of each by itself."""
    forms = {tuple((tensor.dim(), tensor.shape[1:]) for tensor in each) for each in (*found, *wanted)}
    if len(wanted) == 1 or len(forms) > 1 or any(not dimensions for dimensions, _ in next(iter(forms))):
        yield from zip(found, wanted, strict=True)
        return
    yield (
        [torch.cat(parts) for parts in zip(*found, strict=True)],
        [torch.cat(parts) for parts in zip(*wanted, strict=True)],
    )


def apart(found: list[torch.Tensor], wanted: list[torch.Tensor]) -> float:
    """How far the worst row of any answer is from what was wanted; what a model masks out must be the same.

    Raises:
        StepError: what was wanted is no number.
    """
    if len(found) != len(wanted):
        return math.inf
    worst = 0.0
    for got, want in zip(found, wanted, strict=True):
        if bool(want.isnan().any()):
            raise StepError("the case's own model returns something that is not a number")
        if got.shape != want.shape or got.is_floating_point() != want.is_floating_point():
            return math.inf
        if want.is_floating_point():
            most = 0.99 * min(torch.finfo(tensor.dtype).max for tensor in (got, want))
            masked = want.abs() >= most
            if not torch.equal(got.abs() >= most, masked):
                return math.inf
            worst = max(worst, distance(*(tensor.float().masked_fill(masked, 0.0) for tensor in (got, want))))
        else:
            names = Names()
            names.add([want], [got], [want], [want])
            worst = max(worst, names.distance())
    return worst


def _named(of: Print) -> str:
    return " or ".join(sorted(str(dtype).removeprefix("torch.") for dtype in of.digests))


def _count(name: str, wrong: list[str], meaning: str) -> Check:
    shown = f": {', '.join(wrong[:3])}{' and others' if len(wrong) > 3 else ''}" if wrong else ""
    return Check(name, not wrong, float(len(wrong)), 0.0, f"{meaning}{shown}")
