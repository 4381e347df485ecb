"""From lists of indices to batches, in worker processes that are forked before who loads has threads."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import torch

from proofmark.errors import StepError, named
from proofmark.measuring.rehearsal import checked_batch, checked_data, checked_dataset
from proofmark.process.shared_memory.from_workers import share
from proofmark.training.feeding.batches import GlobalBatches, Share

if TYPE_CHECKING:
    from proofmark.case import Batch
    from proofmark.record.parts import Identity
    from proofmark.rules.config import EffectiveConfig
    from proofmark.training.case import TrainingCase, TrainingData


class Feed(Protocol):
    """What a rank trains on.

    Attributes:
        identity: of the data.
        order: in which its samples come.
    """

    identity: Identity
    order: GlobalBatches

    def sample(self) -> Batch:
        """The first sample of the data, alone."""

    def batches(self, epoch: int, first: int) -> Iterator[Batch]:
        """This rank's micro-batches of all epochs, from a global batch of one on. To be called once."""


class OnDemand(Protocol):
    """Data of which batches are loaded as they are asked for."""

    @property
    def identity(self) -> Identity:
        """The identity of the data."""

    @property
    def items(self) -> int:
        """How many samples the data has."""

    def load(self, lists: list[list[int]], epoch: int = 0) -> Iterator[Batch]:
        """Batches of the samples with these numbers, in order: one pass."""


@dataclass(frozen=True)
class Data:
    """What a rank trains on, and what it is evaluated on.

    A loader's worker inherits the locks of all threads that run when it is forked, and nobody in it could release
    those: so this comes before the process group, whose threads hold some at times, and before all training.
    """

    train: Feed
    validation: OnDemand

    @classmethod
    def of(cls, case: TrainingCase, config: EffectiveConfig, rank: int = 0, world: int = 1, seed: int = 0) -> Data:
        """A case's data, all of it loaded by this process.

        Raises:
            StepError: the data is not there, or not as expected.
        """
        validation = RankLoader(made_data(case, config, "validation"), config.num_workers, ahead(config))
        return cls(Planned.of(case, config, rank, world, seed), validation)


class Planned:
    """A rank's share of the plan, loaded as it says.

    Args:
        loader: of the data.
        order: in which its samples come.
        rank: whose share.
        epochs: that there are.
    """

    def __init__(self, loader: OnDemand, order: GlobalBatches, rank: int, epochs: int) -> None:
        self.identity, self.order = loader.identity, order
        self._loader, self._rank, self._epochs = loader, rank, epochs

    @classmethod
    def of(
        cls,
        case: TrainingCase,
        config: EffectiveConfig,
        rank: int,
        world: int,
        seed: int,
        data: TrainingData | None = None,
    ) -> Planned:
        """The plan of a case's training, of its `data` where that was made already.

        Raises:
            StepError: the data is not there, or not as expected.
        """
        dataset = made_data(case, config, "train") if data is None else data
        loader = RankLoader(dataset, config.num_workers, ahead(config))
        return cls(loader, plan_of(len(dataset), config, world, seed), rank, config.max_epoch)

    def sample(self) -> Batch:
        """The first sample of the data, alone.

        Raises:
            StepError: it can't be read.
        """
        (batch,) = self._loader.load([[0]])
        return batch

    def batches(self, epoch: int, first: int) -> Iterator[Batch]:
        """This rank's micro-batches of all epochs, from a global batch of one on.

        Raises:
            StepError: a sample can't be read.
        """
        return (batch for _, batch in self.shares(epoch, first))

    def shares(self, epoch: int, first: int) -> Iterator[tuple[Share, Batch]]:
        """Each with its part of the plan.

        Raises:
            StepError: a sample can't be read.
        """
        for each in range(epoch, self._epochs):
            steps = self.order.shares(each, self._rank, first if each == epoch else 0)
            shares = [share for step in steps for share in step]
            yield from zip(shares, self._loader.load([share.indices for share in shares], each), strict=True)


def made_data(case: TrainingCase, config: EffectiveConfig, split: str) -> TrainingData:
    """The data of a split, as the case makes it.

    Raises:
        StepError: it is not there, or not as expected.
    """
    data = case.build_dataset(config, split)
    checked_data(data, "build_dataset", ("__len__", "__getitems__"))
    checked_dataset(data, "build_dataset", f"the data set of '{split}'")
    return data


def plan_of(items: int, config: EffectiveConfig, world: int, seed: int) -> GlobalBatches:
    """The order in which a training's samples come."""
    return GlobalBatches(items, config.global_batch_size, world, config.gradient_accumulation_steps, seed)


def ahead(config: EffectiveConfig) -> int:
    """Batches that lie ready: a step's come together."""
    return 2 * int(config.gradient_accumulation_steps)


class RankLoader:
    """Loads lists of indices, in order, in worker processes where `workers` says so: those hold `ahead` or more ready.

    Workers are forked here, and stay.
    """

    def __init__(self, dataset: TrainingData, workers: int, ahead: int = 2) -> None:
        self.dataset, self._loaded = dataset, _AtEpoch(dataset)
        self._pass: list[tuple[int, list[int]]] = []
        self._workers: torch.utils.data.DataLoader[Batch] | None = None
        if not workers:  # torch's loader takes as long for a small batch as the batch does
            return
        self._workers = torch.utils.data.DataLoader(
            self._loaded,  # type: ignore[arg-type]
            batch_sampler=self._pass,  # type: ignore[arg-type]
            collate_fn=_as_is,
            num_workers=workers,
            persistent_workers=True,
            prefetch_factor=max(2, -(-ahead // workers)),
            # its own generator: without one each pass would draw a worker seed from the global one
            generator=torch.Generator().manual_seed(0),
        )
        iter(self._workers)  # a pass over nothing starts them

    @property
    def identity(self) -> Identity:
        """The identity of the data."""
        return self.dataset.identity

    @property
    def items(self) -> int:
        """How many samples the data has."""
        return len(self.dataset)

    def load(self, lists: list[list[int]], epoch: int = 0) -> Iterator[Batch]:
        """One pass; begin it when the one before has ended or is given up.

        Raises:
            StepError: a sample can't be read.
        """
        self._pass[:] = [(epoch, indices) for indices in lists]
        failure = None
        batches = map(self._loaded.__getitems__, self._pass) if self._workers is None else self._workers
        for batch in batches:
            if isinstance(batch, StepError):
                failure = str(batch)  # raised itself it would hold this frame, which holds it, and so the workers
                break
            yield batch
        if failure is not None:
            raise StepError(failure)


class _AtEpoch:
    """A dataset that is told the epoch with each list: a worker's copy of it is as old as the worker."""

    def __init__(self, dataset: TrainingData) -> None:
        self._dataset = dataset

    def __getitems__(self, wanted: tuple[int, list[int]]) -> Batch | StepError:
        epoch, indices = wanted
        self._dataset.epoch = epoch
        try:
            batch = self._dataset.__getitems__(indices)
            if isinstance(batch, StepError):
                return batch
            inputs, targets = checked_batch(batch, "build_dataset")
            # what requires a gradient can't leave a worker, and its loader would wait for ever
            inputs, targets = [each.detach() for each in inputs], targets.detach()
            share([*inputs, targets])
            return inputs, targets
        except StepError as error:  # torch would tell of a worker and its traceback first
            return error
        except Exception as error:  # noqa: BLE001 (a case's code may raise anything)
            traceback.print_exc()
            return StepError(named(error))


def _as_is(batch: Any) -> Any:
    return batch
