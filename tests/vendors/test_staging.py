"""How batches reach a device: over a played CUDA."""

from __future__ import annotations

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


class Runtime:
    """CUDA's, played: it answers each request to page-lock memory by a code."""

    def __init__(self, error: int, monkeypatch: pytest.MonkeyPatch) -> None:
        self.error = error
        self.asked: list[tuple[int, int, int]] = []
        self.kernels: list[str] = []
        monkeypatch.setattr(torch.cuda, "cudart", lambda: self)
        monkeypatch.setattr(torch, "ones", self.launch)

    def cudaHostRegister(self, address: int, size: int, flags: int) -> int:
        self.asked.append((address, size, flags))
        return self.error

    def cudaGetErrorString(self, code: int) -> str:
        return f"{code}: so it is"

    def launch(self, size: int, device: str) -> None:
        """Raises what is remembered, as torch does of the first kernel after it."""
        self.kernels.append(device)
        raise RuntimeError("CUDA error: so it is")


def test_pages_are_locked(monkeypatch: pytest.MonkeyPatch) -> None:
    runtime = Runtime(0, monkeypatch)
    Nvidia().register_memory(4096, 8192)
    assert runtime.asked == [(4096, 8192, 0)] and not runtime.kernels


@pytest.mark.parametrize("error, do", [(2, "; free memory of the host"), (700, ""), (999, "")])
def test_pages_that_there_is_no_memory_for_or_a_device_that_fails_are_an_error(
    monkeypatch: pytest.MonkeyPatch, error: int, do: str
) -> None:
    runtime, vendor = Runtime(error, monkeypatch), Nvidia()
    for _ in range(2):
        with pytest.raises(StepError, match=f"CUDA can't page-lock 0.007812 MiB for batches: {error}: so it is{do}$"):
            vendor.register_memory(4096, 8192)
    assert len(runtime.asked) == 2


@pytest.mark.parametrize("error", [1, 304, 801])
def test_where_cuda_locks_no_pages_batches_are_copied_slower_and_it_is_said_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], error: int
) -> None:
    """As in confidential computing: its device computes all the same."""
    runtime, vendor = Runtime(error, monkeypatch), Nvidia()
    for _ in range(2):
        vendor.register_memory(4096, 8192)
    assert capsys.readouterr().err == f"CUDA page-locks no memory here ({error}: so it is): batches are copied slower\n"
    assert len(runtime.asked) == 1 and runtime.kernels == ["cuda"], "what CUDA remembers is taken from it"
