"""From a dataset that answers whole batches to the loader that the referee reads."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch.utils.data import DataLoader, Dataset

from proofmark.errors import StepError
from proofmark.process.shared_memory.from_workers import share
from proofmark.record.parts import Identity

if TYPE_CHECKING:
    from proofmark.rules.config import EffectiveConfig

Batch = tuple[list[torch.Tensor], torch.Tensor]


class BatchDataset(Dataset[Any], ABC):
    """A dataset that answers a list of indices with one collated batch.

    `epoch` is counted up while training: what is drawn at random follows from the seed, the epoch and the index.
    """

    identity: Identity
    epoch = 0

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def batch(self, indices: list[int]) -> Batch:
        """The items at `indices`.

        Raises:
            StepError: one of them cannot be read.
        """

    def __getitems__(self, indices: list[int]) -> Batch | StepError:
        """What the loader calls, in a worker too. A StepError is answered, for the loader to raise.

        torch would bury the text of one that a worker raises in that worker's traceback.
        """
        try:
            inputs, targets = self.batch(indices)
            share([*inputs, targets])
            return inputs, targets
        except StepError as error:
            return StepError(str(error))


class TensorData(BatchDataset):
    """Data held in memory, whole; a batch is one indexing of each tensor.

    Args:
        name: what the data is called, in the record.
        inputs: the model's inputs, each of shape (items, ...).
        targets: of shape (items, ...).
        origin: where the data comes from.

    Raises:
        StepError: they have not equally many items.
    """

    def __init__(self, name: str, inputs: Sequence[torch.Tensor], targets: torch.Tensor, origin: str) -> None:
        lengths = [len(tensor) for tensor in inputs]
        if set(lengths) - {len(targets)}:
            found = ", ".join(map(str, lengths))
            raise StepError(f"TensorData '{name}': inputs have {found} items, targets {len(targets)}; expected as many")
        self.inputs = list(inputs)
        self.targets = targets
        self.identity = Identity(name=name, sha256=_digest([*inputs, targets]), items=len(targets), origin=origin)

    def __len__(self) -> int:
        return len(self.targets)

    def batch(self, indices: list[int]) -> Batch:
        """One indexing of each tensor."""
        chosen = torch.tensor(indices)
        return [_rows(tensor, chosen) for tensor in self.inputs], _rows(self.targets, chosen)


class BatchLoader(DataLoader[Any]):
    """torch's DataLoader over a BatchDataset: it raises the StepErrors that its workers answer."""

    dataset: BatchDataset

    def __iter__(self) -> Iterator[Any]:  # type: ignore[override]
        failure = None
        for batch in super().__iter__():
            if isinstance(batch, StepError):
                failure = str(batch)
                break
            yield batch
        if failure is not None:
            # ends persistent workers here and now: once only the error's traceback held them, it would take 10 s
            self._iterator = None
            raise StepError(failure)


def batch_loader(dataset: BatchDataset, config: EffectiveConfig) -> BatchLoader:
    """Load `dataset` in order, `batch_size` at once; a trainer has an order of its own.

    Yields `([inputs...], targets)`; the last short batch is included.
    """
    return BatchLoader(
        dataset,
        batch_size=config.batch_size,
        # its own generator: the loader draws a worker seed from it on each pass
        generator=torch.Generator().manual_seed(config.seed),
        num_workers=config.num_workers,
        persistent_workers=config.num_workers > 0,
        collate_fn=_as_is,
    )


def _rows(tensor: torch.Tensor, chosen: torch.Tensor) -> torch.Tensor:
    """Those rows, as they lie. An index in brackets keeps channels last; it copies element by element, which takes four
    times as long."""
    return tensor.index_select(0, chosen) if tensor.is_contiguous() else tensor[chosen]


def _as_is(batch: Any) -> Any:
    return batch


def _digest(tensors: Sequence[torch.Tensor]) -> str:
    digest = hashlib.sha256()
    for tensor in tensors:
        digest.update(f"{tensor.dtype} {tuple(tensor.shape)}\n".encode())
        digest.update(tensor.contiguous().numpy().tobytes())
    return digest.hexdigest()
