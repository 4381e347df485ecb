"""A model as it is trained, and how ranks meet."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import CheckpointWrapper

from proofmark.errors import StepError
from proofmark.rules.config import EffectiveConfig
from proofmark.training.ranks.model.strategy import Place, bound, on_device, prepare

LAYOUT = {"channels_last": True, "compile": False, "activation_checkpointing": False}


@pytest.fixture
def meet() -> Iterator[Callable[[torch.device], None]]:
    """Has this process alone form the group of a device's ranks."""

    def begin(device: torch.device) -> None:
        store = dist.HashStore()  # type: ignore[attr-defined]
        dist.init_process_group("gloo", store=store, rank=0, world_size=1, device_id=bound(device))

    yield begin
    dist.destroy_process_group()


@pytest.mark.parametrize("kind", ["cpu", "xpu"])
def test_ranks_meet_whatever_they_compute_on(meet: Callable[[torch.device], None], kind: str) -> None:
    """Also by a backend that does not know it, and with a group beside it in which checkpoints are written."""
    meet(torch.device(kind, 0))
    dist.barrier(dist.new_group(backend="gloo"))


@pytest.mark.parametrize("parallel", ["ddp", "fsdp"])
def test_images_with_channels_last_are_trained_on_in_parallel(
    meet: Callable[[torch.device], None], parallel: str
) -> None:
    place = Place(0, 0, 1, torch.device("cpu"))
    meet(place.device)
    config = EffectiveConfig("training", "images", "embedded", "acme", {}, {**LAYOUT, "parallel": parallel})
    model = prepare(nn.Sequential(nn.Conv2d(3, 4, 3), nn.Flatten(), nn.Linear(4 * 36, 2)), config, place)
    (images,), _ = on_device(([torch.randn(2, 3, 8, 8)], torch.zeros(2)), config, place)
    assert images.is_contiguous(memory_format=torch.channels_last)
    model(images).sum().backward()
    assert all(parameter.grad is not None for parameter in model.parameters())


def test_a_model_of_which_nothing_can_be_computed_again_is_refused() -> None:
    place, settings = Place(0, 0, 1, torch.device("cpu")), {**LAYOUT, "parallel": "ddp"}
    config = EffectiveConfig("training", "x", "embedded", "acme", {}, {**settings, "activation_checkpointing": True})
    with pytest.raises(StepError, match="activation_checkpointing: the model has no ModuleList"):
        prepare(nn.Sequential(nn.Linear(2, 2)), config, place)
    model = prepare(nn.Sequential(nn.ModuleList([nn.Linear(2, 2)])), config, place)
    assert any(isinstance(module, CheckpointWrapper) for module in model.modules())
