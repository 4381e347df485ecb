"""From a dataset that answers whole batches to the loader that the harness reads."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import torch
from torch.utils.data import DataLoader, Dataset

from harness.errors import StepError
from harness.record import Identity

if TYPE_CHECKING:
    from harness.config import EffectiveConfig

Batch = tuple[list[torch.Tensor], torch.Tensor]


class BatchDataset(Protocol):
    """A dataset that answers a list of indices with one collated batch."""

    identity: Identity

    def __len__(self) -> int: ...

    def __getitems__(self, indices: list[int]) -> Batch: ...


class TensorData(Dataset[Any]):
    """Data held in memory, whole; a batch is one indexing of each tensor.

    Args:
        name: what the data is called, in the record.
        inputs: the model's inputs, each of shape (items, ...).
        targets: of shape (items, ...).
        origin: where the data comes from.
    """

    def __init__(self, name: str, inputs: Sequence[torch.Tensor], targets: torch.Tensor, origin: str) -> None:
        self.inputs = list(inputs)
        self.targets = targets
        self.identity = Identity(name=name, sha256=_digest([*inputs, targets]), items=len(targets), origin=origin)

    def __len__(self) -> int:
        return len(self.targets)

    def __getitems__(self, indices: list[int]) -> Batch:
        chosen = torch.tensor(indices)
        return [tensor[chosen] for tensor in self.inputs], self.targets[chosen]


class BatchLoader(DataLoader[Any]):
    """torch's DataLoader, which a worker's StepError leaves with its own text and nothing else."""

    dataset: BatchDataset  # type: ignore[assignment]

    def __iter__(self) -> Iterator[Any]:  # type: ignore[override]
        try:
            yield from super().__iter__()
        except StepError as error:
            raise StepError(_told_by_worker(str(error))) from error


def batch_loader(dataset: BatchDataset, config: EffectiveConfig, split: str) -> BatchLoader:
    """Load `dataset` in order for validation, shuffled by the seed and in its recipe's batches for training.

    Yields `([inputs...], targets)`; the last short batch is included.
    """
    train = split == "train"
    return BatchLoader(
        dataset,  # type: ignore[arg-type]
        batch_size=config.training["batch_size"] if train else config.batch_size,
        shuffle=train,
        # its own generator also for validation: the loader draws a worker seed from it on each pass
        generator=torch.Generator().manual_seed(config.seed),
        num_workers=config.num_workers,
        persistent_workers=config.num_workers > 0,
        collate_fn=_as_is,
    )


def _as_is(batch: Any) -> Any:
    return batch


def _told_by_worker(text: str) -> str:
    """What follows the last line that names the exception in a worker's traceback."""
    return text.rpartition(f"{StepError.__module__}.{StepError.__qualname__}: ")[2].strip()


def _digest(tensors: Sequence[torch.Tensor]) -> str:
    digest = hashlib.sha256()
    for tensor in tensors:
        digest.update(f"{tensor.dtype} {tuple(tensor.shape)}\n".encode())
        digest.update(tensor.contiguous().numpy().tobytes())
    return digest.hexdigest()
