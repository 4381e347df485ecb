"""What a case says about its model. The referee does the rest."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Protocol

from proofmark.errors import StepError
from proofmark.metric import Mean
from proofmark.rules.case_file import Parameters

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import torch

    from proofmark.errors import Problem
    from proofmark.metric import Metric
    from proofmark.record.parts import Identity
    from proofmark.rules.config import EffectiveConfig

    Batch = tuple[list[torch.Tensor], torch.Tensor]


class Loader(Protocol):
    """What `build_dataloader` returns: torch's DataLoader is one.

    It yields `(inputs, targets)`: `inputs` is the list of the model's positional inputs, CPU
    tensors whose first dimension is the batch; `targets` is what the metric compares with.
    Every sample comes once a pass, a last short batch included; else all have one shape. Its `dataset`
    has a length and an `identity` (name, SHA-256 of the content, number of items).
    """

    @property
    def dataset(self) -> IdentifiedDataset:
        """The data that is loaded."""

    def __iter__(self) -> Iterator[Batch]: ...

    def __len__(self) -> int: ...


class IdentifiedDataset(Protocol):
    """A dataset that can say what it is."""

    @property
    def identity(self) -> Identity:
        """Name, SHA-256 of the content, number of items."""

    def __len__(self) -> int: ...


class Case(ABC):
    """What every suite's case says about its model. Import torch inside the methods, not at the module's top."""

    suite: ClassVar[str]
    common_file: ClassVar[Path]
    """The YAML that all cases of the suite share."""

    parameters_type: ClassVar[type[Parameters]]

    packages: ClassVar[tuple[str, ...]] = ()
    """Those that its processes need, whose versions are recorded beside those of its suite's."""

    imports: ClassVar[tuple[str, ...]] = ()
    """Large modules that it will import, torch aside: cases of a session that name the same pay for it once."""

    @classmethod
    def recorded_packages(cls) -> tuple[str, ...]:
        """Its own, and those of all cases of its suite."""
        named = [name for each in reversed(cls.__mro__) for name in vars(each).get("packages", ())]
        return tuple(dict.fromkeys(named))

    @classmethod
    def imported(cls) -> tuple[str, ...]:
        """What its processes import: those, and what it is defined in."""
        return (*cls.imports, cls.__module__)

    @classmethod
    def host_problems(cls, config: EffectiveConfig) -> Sequence[Problem]:
        """What one look tells of the user's folders, before anything runs: whether that lies there which it will open.

        Called where it runs on this machine, in pytest's own process: without torch, and without reading files. That
        the folders are there, and not empty, has been looked at; whoever gives none has been told.
        """
        return ()

    @abstractmethod
    def create_model(self, config: EffectiveConfig) -> torch.nn.Module:
        """The model: called with tensors, returns a tensor or a tuple of tensors.

        With `config.host.weights` it is loaded from there; without, it is initialised from the
        seed that the referee set.

        Raises:
            StepError: the weights are not there or don't fit.
        """

    def evaluator(self, outputs: list[torch.Tensor], targets: torch.Tensor) -> tuple[float, float]:
        """Score one batch: the metric's sum over it, and how many it sums over.

        The metric of a run is the quotient of the two totals: (correct, images) for top-1. A case whose metric is no
        mean overrides `metric` instead.
        """
        raise StepError(f"{type(self).__name__} has neither an evaluator nor a metric; expected one of them")

    def metric(self, config: EffectiveConfig) -> Metric:
        """A new metric, fed with nothing yet: the mean that `evaluator` sums up.

        A case overrides it where its metric is no mean, or has several values: with an object of `update(outputs,
        targets)` and `compute()`, such as torchmetrics'. Which of its values are judged or shown, and in which
        direction each is better, is in the case's YAML.
        """
        return Mean(self.evaluator)

    def loss(self, outputs: list[torch.Tensor], targets: torch.Tensor) -> torch.Tensor:
        """What training minimises: cross entropy over the last dimension. Targets of -100 don't count.

        Raises:
            StepError: cross entropy can't take them.
        """
        import torch.nn.functional as functional

        logits = outputs[0]
        if targets.is_floating_point() or not logits.dim() or targets.numel() * logits.shape[-1] != logits.numel():
            found = f"outputs {tuple(logits.shape)} and targets {tuple(targets.shape)} of {targets.dtype}"
            expected = "outputs (..., classes) and a whole number for each row; for another loss override `loss`"
            raise StepError(f"loss: cross entropy cannot take {found}; expected {expected}")
        return functional.cross_entropy(logits.reshape(-1, logits.shape[-1]), targets.reshape(-1))

    def loss_weight(self, targets: torch.Tensor) -> float:
        """Over how many things `loss` is the mean: targets that count. By it batches weigh in a global batch."""
        return float((targets != -100).sum())
