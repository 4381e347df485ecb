"""Checkpoints of one process: what is put back is bit-equal, in whatever order its memory lies."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch import nn

from proofmark.errors import StepError
from proofmark.training.ranks import checkpoint, saving
from proofmark.training.ranks.account import Position
from proofmark.training.ranks.checkpoint import Checkpoints
from proofmark.training.ranks.clock import Clock
from proofmark.training.ranks.model.strategy import Place
from proofmark.training.ranks.saving import Saving

HERE = Place(0, 0, 1, torch.device("cpu"))


@pytest.fixture(autouse=True)
def alone() -> Iterator[None]:
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    yield
    dist.destroy_process_group()


def trained(layout: torch.memory_format, steps: int) -> tuple[nn.Module, torch.optim.Optimizer]:
    torch.manual_seed(steps)
    inner = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.Flatten(), nn.LazyLinear(2))
    inner(torch.zeros(1, 3, 8, 8))
    model = inner.to(memory_format=layout)  # type: ignore[call-overload]
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    for _ in range(steps):
        model(torch.rand(4, 3, 8, 8).to(memory_format=layout)).square().mean().backward()
        optimizer.step()
    return model, optimizer


@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last], ids=["contiguous", "channels_last"])
def test_what_is_put_back_is_bit_equal(tmp_path: Path, layout: torch.memory_format) -> None:
    model, optimizer = trained(layout, steps=3)
    checkpoints = Checkpoints(tmp_path, HERE)
    checkpoints.save(3, model, optimizer, {"epoch": 1})
    random = torch.rand(4)
    checkpoints.wait()
    other, its_optimizer = trained(layout, steps=1)
    assert Checkpoints.load(tmp_path / "step-000000003", other, its_optimizer, HERE.device) == {"epoch": 1}
    assert torch.equal(torch.rand(4), random)
    for (name, one), two in zip(model.state_dict().items(), other.state_dict().values(), strict=True):
        assert torch.equal(one, two) and one.stride() == two.stride(), name
    for one, two in zip(optimizer.state.values(), its_optimizer.state.values(), strict=True):
        assert all(torch.equal(one[key], two[key]) for key in ("step", "exp_avg", "exp_avg_sq"))


def test_each_rank_goes_on_from_its_own_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its clock from rank 0's, by which the run's rates are; what it says of itself, from what it had."""
    every = [{"data": 10 * 10**9, "compute": 90 * 10**9}, {"data": 9 * 10**9, "compute": 117 * 10**9}]
    position = {"epoch": 1, "batch": 0, "steps": 4, "samples": 64}
    progress = {**position, "train_ns": 10**11, "parts_ns": every[0], "parts_of_ranks": every}
    handed, said = list[dict[str, int]](), list[dict[str, Any]]()
    shared = SimpleNamespace(gathered=handed.append, save=lambda *_: None, load=lambda *_: progress)
    monkeypatch.setattr(checkpoint, "Checkpoints", lambda *_: shared)
    clock = Clock(lambda: None)
    account: Any = SimpleNamespace(
        place=Place(1, 1, 2, torch.device("cpu")),
        position=Position(0, 0, 0, 0),
        stepper=SimpleNamespace(model=nn.Linear(1, 1), optimizer=None, resume=lambda _: None, state=dict),
        clock=clock,
        log=SimpleNamespace(write=lambda kind, **fields: said.append(fields)),
        part=lambda name: nullcontext(),
        write_losses=lambda: None,
    )
    monkeypatch.setattr(saving, "_identity", lambda *_: {})
    monkeypatch.setattr(saving, "share_buffers", lambda *_: None)
    its = Saving(SimpleNamespace(checkpoint_steps=4), SimpleNamespace(checkpoint_directory=tmp_path), None, account)  # type: ignore[arg-type]
    monkeypatch.setattr(checkpoint, "Checkpoints", shared)
    its.resume(tmp_path)
    assert clock.before()["compute_seconds"] == 90.0 and said[0]["apart"] == {"data": -1.0, "compute": 27.0}
    clock.start()
    clock.parts["compute"] += 13 * 10**9
    its.save_if_due(epoch_ended=False)
    assert handed == [{"data": 9 * 10**9, "compute": 130 * 10**9}]


def test_what_each_rank_has_is_gathered(tmp_path: Path) -> None:
    assert Checkpoints(tmp_path, HERE).gathered({"data": 1}) == [{"data": 1}]


def test_another_model_is_refused(tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path, HERE)
    checkpoints.save(1, *trained(torch.contiguous_format, steps=1), {})
    checkpoints.wait()
    other = nn.Linear(2, 2)
    with pytest.raises(StepError, match="step-000000001 does not fit this run"):
        Checkpoints.load(tmp_path / "step-000000001", other, torch.optim.SGD(other.parameters()), HERE.device)


def test_each_holds_the_state_of_its_own_step(tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path, HERE)
    for steps in (1, 2):  # copied into the same memory
        checkpoints.save(steps, *trained(torch.channels_last, steps), {})
    checkpoints.wait()
    for steps in (1, 2):
        other, optimizer = trained(torch.channels_last, steps=3)
        Checkpoints.load(tmp_path / f"step-{steps:09d}", other, optimizer, HERE.device)
        expected, _ = trained(torch.channels_last, steps)
        assert all(torch.equal(a, b) for a, b in zip(other.parameters(), expected.parameters(), strict=True))


def test_a_state_that_grows_between_two_is_saved_whole(tmp_path: Path) -> None:
    """A layer that is used later has no state in the optimizer before."""
    model, optimizer = two_layers()
    checkpoints = Checkpoints(tmp_path, HERE)
    for step, layer in enumerate(model, 1):
        trains(layer, optimizer)
        checkpoints.save(step, model, optimizer, {})
    checkpoints.wait()
    assert Checkpoints.load(tmp_path / "step-000000002", model, optimizer, HERE.device) == {}
    assert len(optimizer.state) == 4
    for step, used in ((1, 2), (2, 4)):
        other, its_optimizer = two_layers()
        Checkpoints.load(tmp_path / f"step-{step:09d}", other, its_optimizer, HERE.device)
        assert sum(map(bool, its_optimizer.state.values())) == used
    Checkpoints.load(tmp_path / "step-000000001", other, its_optimizer, HERE.device)
    trains(other[1], its_optimizer)
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), other.parameters(), strict=True))


def test_an_optimizer_that_keeps_something_else_is_refused(tmp_path: Path) -> None:
    """What a parameter of no gradient lacks is all of its state, and others' is there."""
    model, _ = two_layers()
    checkpoints = Checkpoints(tmp_path, HERE)
    checkpoints.save(1, model, torch.optim.SGD(model.parameters()), {})
    checkpoints.wait()
    with pytest.raises(StepError, match="step-000000001 does not fit this run"):
        Checkpoints.load(tmp_path / "step-000000001", *two_layers(), HERE.device)


def test_a_part_of_a_model_may_be_called_as_wrappers_call_theirs(tmp_path: Path) -> None:
    models = [nn.ModuleDict({name: nn.Linear(2, 2) for name in ("module", "other")}) for _ in range(2)]
    optimizer, fresh = (torch.optim.AdamW(model.parameters(), lr=0.01) for model in models)
    trains(nn.Sequential(*models[0].values()), optimizer)
    checkpoints = Checkpoints(tmp_path, HERE)
    checkpoints.save(1, models[0], optimizer, {})
    checkpoints.wait()
    Checkpoints.load(tmp_path / "step-000000001", models[1], fresh, HERE.device)
    assert sum(map(bool, fresh.state.values())) == 4


def two_layers() -> tuple[nn.ModuleList, torch.optim.Optimizer]:
    torch.manual_seed(1)
    model = nn.ModuleList([nn.Linear(2, 2), nn.Linear(2, 2)])
    return model, torch.optim.AdamW(model.parameters(), lr=0.01)


def trains(layer: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    optimizer.zero_grad()
    layer(torch.ones(1, 2)).sum().backward()
    optimizer.step()


def test_a_shard_that_is_not_whole_is_no_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As where another rank's directory is not the first one's."""
    checkpoints = Checkpoints(tmp_path, HERE)
    checkpoints.save(1, *trained(torch.contiguous_format, steps=1), {})
    checkpoints.wait()
    finish = checkpoint._Writer.finish

    def finish_without_the_end(writer: Any, **fields: Any) -> None:
        (shard,) = (tmp_path / "step-000000002.draft").glob("*.safetensors")
        os.truncate(shard, shard.stat().st_size - 1)
        finish(writer, **fields)

    monkeypatch.setattr(checkpoint._Writer, "finish", finish_without_the_end)
    checkpoints.save(2, *trained(torch.contiguous_format, steps=2), {})
    with pytest.raises(OSError, match=r"the checkpoint cannot be written: .*shard-00001.* does not have the \d+ bytes"):
        checkpoints.wait()
    assert [path.name for path in sorted(tmp_path.iterdir())] == ["step-000000001", "step-000000002.draft"]


def test_what_cannot_be_written_is_told(tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path, HERE)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, limits[1]))  # as a disk that is full
    try:
        checkpoints.save(1, *trained(torch.contiguous_format, steps=1), {})
        with pytest.raises(OSError, match=r"the checkpoint cannot be written: .*File too large"):
            checkpoints.wait()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert [path.name for path in tmp_path.iterdir()] == ["step-000000001.draft"]


def test_what_safetensors_lacks_is_told(tmp_path: Path) -> None:
    model = nn.ParameterDict({"phase": nn.Parameter(torch.zeros(3, dtype=torch.complex128))})
    checkpoints = Checkpoints(tmp_path, HERE)
    checkpoints.save(1, model, torch.optim.SGD(model.parameters()), {})
    with pytest.raises(OSError, match="the checkpoint cannot be written: .*complex128"):
        checkpoints.wait()


def test_a_device_that_the_ranks_do_not_train_on_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The machine may have one, and torch be a build for it, where the processor trains."""
    one, other = (trained(torch.contiguous_format, steps) for steps in (1, 2))
    for module in (torch.accelerator, torch.cuda):
        monkeypatch.setattr(module, "is_available", lambda: True)
    checkpoints = Checkpoints(tmp_path, HERE)
    checkpoints.save(1, *one, {})
    checkpoints.wait()
    Checkpoints.load(tmp_path / "step-000000001", *other, HERE.device)


def test_the_devices_random_state_is_put_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put_back: list[torch.Tensor] = []
    state = torch.tensor([7, 8], dtype=torch.uint8)
    module = SimpleNamespace(get_rng_state=state.clone, set_rng_state=put_back.append)
    monkeypatch.setattr(torch, "get_device_module", {(device := torch.device("xpu", 0)): module}.__getitem__)
    checkpoints = Checkpoints(tmp_path, replace(HERE, device=device))
    checkpoints.save(1, *trained(torch.contiguous_format, steps=1), {})
    checkpoints.wait()
    state.zero_()
    Checkpoints.load(tmp_path / "step-000000001", *trained(torch.contiguous_format, steps=2), device)
    assert [kept.tolist() for kept in put_back] == [[7, 8]]
