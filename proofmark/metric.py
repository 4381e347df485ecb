"""What a case is judged by: a metric that is fed with answers and asked once for named values."""

from __future__ import annotations

import math
import traceback
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from proofmark.errors import StepError, named
from proofmark.rules.aims import Aim, aims_of

if TYPE_CHECKING:
    import torch

    from proofmark.rules.config import EffectiveConfig

    Evaluator = Callable[[list[torch.Tensor], torch.Tensor], tuple[float, float]]


class Metric(Protocol):
    """What `Case.metric` makes. One of torchmetrics' is one as it is, or a collection of them.

    It is fed with each batch of the data once, in any order: each pass of a timed round has its own.
    """

    def update(self, outputs: Any, targets: torch.Tensor, /) -> None:
        """Take one batch: the model's outputs, a list of CPU tensors whose first dimension is the batch, and targets.

        A metric that is a torch module, as torchmetrics' are, gets the tensor itself where the model has one output.
        """

    def compute(self) -> Mapping[str, Any] | torch.Tensor | float:
        """The values by their names, or the one value that the case has: numbers, or tensors of one element."""


class Mean:
    """The metric of a case that has an `evaluator`: the quotient of two totals.

    Attributes:
        evaluator: makes of a batch the sum over it, and over how many that is.
        total: the sums of all batches.
        weight: over how many things they sum.
    """

    def __init__(self, evaluator: Evaluator) -> None:
        """Begin with both totals at 0."""
        self.evaluator = evaluator
        self.total = self.weight = 0.0

    def update(self, outputs: list[torch.Tensor], targets: torch.Tensor, /) -> None:
        """Score one batch."""
        total, weight = self.scored(outputs, targets)
        self.total += total
        self.weight += weight

    def scored(self, outputs: list[torch.Tensor], targets: torch.Tensor, /) -> tuple[float, float]:
        """The sum over one batch, and its weight: an evaluator may return tensors of one element."""
        total, weight = self.evaluator(outputs, targets)
        return float(total), float(weight)

    def compute(self) -> float:
        """The mean; no number where nothing was weighed."""
        return self.total / self.weight if self.weight else math.nan


class Scoring:
    """A metric as the referee feeds and asks it, for one set of answers.

    Attributes:
        aims: the values that the case names, the headline first.
        mean: the metric, where it is a mean.
    """

    def __init__(self, metric: Metric, aims: Mapping[str, Aim] | None = None) -> None:
        self.aims: Mapping[str, Aim] = aims or aims_of({})
        self.mean = metric if isinstance(metric, Mean) else None
        self._metric = metric

    @classmethod
    def of(cls, case: _Judged, config: EffectiveConfig) -> Scoring:
        """A fresh one for a case."""
        return cls(case.metric(config), aims_of(config.parameters))

    @property
    def headline(self) -> str:
        """The name of the value that is judged first."""
        return next(iter(self.aims))

    def update(self, outputs: list[torch.Tensor], targets: torch.Tensor) -> None:
        """Take one batch.

        Raises:
            StepError: the metric raised something; of a mean it is raised as it is.
        """
        if self.mean is not None:
            self.mean.update(outputs, targets)
            return
        import torch

        alone = isinstance(self._metric, torch.nn.Module) and len(outputs) == 1
        self._guarded("update", lambda: self._metric.update(outputs[0] if alone else outputs, targets))

    def values(self) -> dict[str, float | None]:
        """What the case names, in its order; None for what is not a finite number.

        Raises:
            StepError: the metric raised something, or has not these values, or they are no single numbers.
        """
        found = self._guarded("compute", self._metric.compute)
        if not isinstance(found, Mapping):
            if len(self.aims) > 1:
                raise StepError(f"{self}: compute returns one value; the case names {', '.join(self.aims)}")
            found = {self.headline: found}
        lacking = [name for name in self.aims if name not in found]
        if lacking:
            has = ", ".join(map(str, list(found)[:20])) or "nothing"
            raise StepError(f"{self}: compute returns {has}; the case names {', '.join(lacking)} too")
        return {name: self._number(name, found[name]) for name in self.aims}

    def in_one_process(self) -> None:
        """Keep torchmetrics from synchronising with other processes: this one is fed with everything."""
        import torch

        for part in (self._metric, *vars(self._metric).values()):
            for module in part.modules() if isinstance(part, torch.nn.Module) else ():
                if hasattr(module, "distributed_available_fn"):
                    setattr(module, "distributed_available_fn", _alone)  # noqa: B010 (a module's own type is not known)

    def __str__(self) -> str:
        return f"metric {type(self._metric).__name__}"

    def _guarded(self, what: str, asked: Callable[[], Any]) -> Any:
        """The result of `asked`; what a metric raises becomes a StepError that names it."""
        if self.mean is not None:
            return asked()
        try:
            return asked()
        except StepError:
            raise
        except Exception as error:
            traceback.print_exc()  # to the process's log
            raise StepError(f"{self}: {what} raises {named(error)}") from error

    def _number(self, name: str, value: Any) -> float | None:
        try:
            number = float(value)
        except (TypeError, ValueError, RuntimeError):
            shape = tuple(getattr(value, "shape", ()))
            found = f"a {type(value).__name__}" + (f" of shape {shape}" if shape else "")
            raise StepError(f"{self}: {name} is {found}; expected one number") from None
        return number if math.isfinite(number) else None


class _Judged(Protocol):
    def metric(self, config: EffectiveConfig) -> Metric: ...


def _alone() -> bool:
    return False
