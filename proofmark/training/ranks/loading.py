"""From lists of indices to batches, in worker processes that are forked before a rank has threads."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from proofmark.errors import StepError

if TYPE_CHECKING:
    from proofmark.case import Batch
    from proofmark.rules.config import EffectiveConfig
    from proofmark.training.case import TrainingCase, TrainingData


@dataclass(frozen=True)
class Data:
    """What a rank trains on, and what it is evaluated on."""

    train: RankLoader
    validation: RankLoader

    @classmethod
    def of(cls, case: TrainingCase, config: EffectiveConfig, pin: bool) -> Data:
        """A case's data, with the workers that load it.

        A worker inherits the locks of all threads that run when it is forked, and nobody in it could release those: so
        this comes before the process group, whose threads hold some at times, and before all training.

        Raises:
            StepError: the data is not there, or not as expected.
        """
        ahead = 2 * config.gradient_accumulation_steps  # a step's come together
        train, validation = (case.build_dataset(config, split) for split in ("train", "validation"))
        return cls(*(RankLoader(dataset, config.num_workers, pin, ahead) for dataset in (train, validation)))


class RankLoader:
    """Loads lists of indices, in order, in worker processes where `workers` says so: those hold `ahead` or more ready.

    Workers are forked here, and stay.
    """

    def __init__(self, dataset: TrainingData, workers: int, pin: bool = False, ahead: int = 2) -> None:
        self.dataset = dataset
        self._pass: list[tuple[int, list[int]]] = []
        self._loader: torch.utils.data.DataLoader[Batch] = torch.utils.data.DataLoader(
            _AtEpoch(dataset),  # type: ignore[arg-type]
            batch_sampler=self._pass,  # type: ignore[arg-type]
            collate_fn=_as_is,
            num_workers=workers,
            persistent_workers=workers > 0,
            prefetch_factor=max(2, -(-ahead // workers)) if workers else None,
            pin_memory=pin,
            # its own generator: without one each pass would draw a worker seed from the global one
            generator=torch.Generator().manual_seed(0),
        )
        iter(self._loader)  # a pass over nothing starts the workers

    def load(self, lists: list[list[int]], epoch: int = 0) -> Iterator[Batch]:
        """One pass; begin it when the one before has ended or is given up.

        Raises:
            StepError: a sample can't be read.
        """
        self._pass[:] = [(epoch, indices) for indices in lists]
        failure = None
        for batch in self._loader:
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
        return self._dataset.__getitems__(indices)


def _as_is(batch: Any) -> Any:
    return batch
