"""How batches reach a device: over a played CUDA."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch

from proofmark.vendor import StepError
from tests.vendors.played_tensorrt import Played, play_cuda
from vendors.nvidia import Nvidia
from vendors.nvidia.staging import fill, to_device


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch) -> Played:
    played = Played()
    play_cuda(played, monkeypatch)
    return played


def test_a_batch_moves_in_its_own_type_and_is_converted_there(played: Played) -> None:
    images, lengths = torch.rand(3, 4), torch.tensor([1, 2, 3])
    moved = to_device([images, lengths], torch.bfloat16)
    assert [tensor.dtype for tensor in moved] == [torch.bfloat16, torch.int64]
    assert played.calls == [("move", torch.float32), ("move", torch.int64)]
    assert torch.equal(moved[0], images.bfloat16())


def test_buffers_of_another_type_are_filled_over_the_device(played: Played) -> None:
    images = torch.rand(3, 4)
    same, other = torch.zeros(3, 4), torch.zeros(3, 4, dtype=torch.float16)
    played.calls.clear()
    fill([same], [images])
    assert not played.calls and torch.equal(same, images)
    fill([other], [images])
    assert played.calls == [("move", torch.float32)] and torch.equal(other, images.half())


@pytest.mark.parametrize("error, reason", [(0, None), (2, "out of memory")])
def test_pages_are_locked_or_it_is_said(
    played: Played, monkeypatch: pytest.MonkeyPatch, error: int, reason: str | None
) -> None:
    asked: list[tuple[int, int, int]] = []

    def register(address: int, size: int, flags: int) -> int:
        asked.append((address, size, flags))
        return error

    runtime = SimpleNamespace(cudaHostRegister=register, cudaGetErrorString=lambda code: f"{code}: {reason}")
    monkeypatch.setattr(torch.cuda, "cudart", lambda: runtime)
    if reason is None:
        Nvidia().register_memory(4096, 8192)
    else:
        with pytest.raises(StepError, match="CUDA can't page-lock 0.007812 MiB for batches: 2: out of memory; free"):
            Nvidia().register_memory(4096, 8192)
    assert asked == [(4096, 8192, 0)]
