"""What loaders' workers do where there is no room for their batches, as in a container of 64 MiB of /dev/shm."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from proofmark.errors import StepError
from proofmark.process.shared_memory.from_workers import share
from proofmark.training.feeding.loading import RankLoader
from suites.data.loading import TensorData, batch_loader

DATA = TensorData("numbers", [torch.arange(64.0)], torch.arange(64), "made up")
REASON = "unable to allocate shared memory(shm) for file </torch_1>: No space left on device (28)"


def of_a_case() -> Iterator[Any]:
    config: Any = SimpleNamespace(batch_size=8, seed=0, num_workers=1)
    return iter(batch_loader(DATA, config))


def of_a_rank() -> Iterator[Any]:
    return RankLoader(DATA, 1).load([[*range(8)]] * 2)  # type: ignore[arg-type]


LOADERS = pytest.mark.parametrize("loader", [of_a_case, of_a_rank])


@LOADERS
def test_a_worker_without_room_says_so_and_nobody_waits_for_it(
    loader: Callable[[], Iterator[Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(tensor: torch.Tensor) -> torch.Tensor:
        raise RuntimeError(f"{REASON}\nand more")

    monkeypatch.setattr(torch.Tensor, "share_memory_", full)
    with pytest.raises(StepError) as caught:
        next(loader())
    text = str(caught.value)
    assert text.startswith(
        f"a loader's worker has no 9.155e-05 MiB of shared memory for a batch ({REASON}); /dev/shm has "
    )
    assert "a larger shm_size in the vendor's container.yaml" in text and len(text.splitlines()) == 1


@LOADERS
def test_batches_of_workers_lie_in_shared_memory(loader: Callable[[], Iterator[Any]]) -> None:
    inputs, targets = next(loader())
    assert inputs[0].tolist() == targets.tolist() == [*range(8)]
    assert inputs[0].is_shared() and targets.is_shared()


def test_without_workers_nothing_is_shared() -> None:
    tensor = torch.zeros(3)
    share([tensor])
    assert not tensor.is_shared()
