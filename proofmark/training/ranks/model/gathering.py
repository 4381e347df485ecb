"""What all ranks have of a batch, on rank 0: by tensors alone, of whatever shapes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import torch
import torch.distributed as dist

if TYPE_CHECKING:
    from proofmark.training.ranks.model.strategy import Place

MOST_DIMENSIONS = 8


def gathered(tensors: Sequence[torch.Tensor], counts: bool, place: Place) -> Iterator[list[torch.Tensor]]:
    """Each rank's tensors in the processor's memory, in the ranks' order; nothing on any rank but the first.

    Every rank calls it at once, with as many tensors of the same types.

    Args:
        tensors: of any shape of up to MOST_DIMENSIONS dimensions.
        counts: whether this rank's are wanted.
    """
    if place.world == 1:
        if counts:
            yield [tensor.cpu() for tensor in tensors]
        return
    wanted = _everywhere(torch.tensor([int(counts)], device=place.device), place)
    parts = [_gathered(tensor, place) for tensor in tensors]
    if place.rank == 0:
        for rank in range(place.world):
            if int(wanted[rank]):
                yield [part[rank] for part in parts]


def _gathered(tensor: torch.Tensor, place: Place) -> list[torch.Tensor]:
    """One tensor of each rank, on rank 0: sent flat, as long as the longest of them."""
    shape = torch.full((1 + MOST_DIMENSIONS,), 0, dtype=torch.int64)
    shape[0] = tensor.dim()
    shape[1 : 1 + tensor.dim()] = torch.tensor(tensor.shape)
    shapes = [each[1 : 1 + int(each[0])].tolist() for each in _everywhere(shape.to(place.device), place)]
    sizes = [torch.Size(each).numel() for each in shapes]
    sent = tensor.to(torch.uint8) if tensor.dtype is torch.bool else tensor
    flat = torch.zeros(max(sizes), dtype=sent.dtype, device=place.device)
    flat[: sent.numel()] = sent.reshape(-1)
    received = [torch.empty_like(flat) for _ in sizes] if place.rank == 0 else None
    dist.gather(flat, received)
    return [
        each[:size].reshape(own).to("cpu", tensor.dtype)
        for each, size, own in zip(received or (), sizes, shapes, strict=bool(received))
    ]


def _everywhere(tensor: torch.Tensor, place: Place) -> list[torch.Tensor]:
    """Each rank's, of one shape, on all of them."""
    found = [torch.empty_like(tensor) for _ in range(place.world)]
    dist.all_gather(found, tensor)
    return [each.cpu() for each in found]


def of_all(values: Sequence[float], place: Place) -> torch.Tensor:
    """Each rank's numbers, on every rank: float64 of the shape (ranks, numbers), in the processor's memory."""
    return torch.stack(_everywhere(_sent(values, place), place)).view(torch.float64)


def from_rank_0(values: Sequence[float], place: Place) -> list[float]:
    """Rank 0's numbers, on every rank; what others give says only how many there are."""
    if place.world == 1:
        return list(values)
    sent = _sent(values, place)
    dist.broadcast(sent, 0)
    return list(sent.cpu().view(torch.float64).tolist())


def _sent(values: Sequence[float], place: Place) -> torch.Tensor:
    """Numbers as their bits: not every accelerator and not every backend has float64 (HCCL has not)."""
    return torch.tensor(values, dtype=torch.float64).view(torch.int64).to(place.device)
