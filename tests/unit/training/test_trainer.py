"""One step of training is the same step however the global batch is divided."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from proofmark.errors import StepError
from proofmark.record.events.log import read_events
from proofmark.training.ranks.heartbeat import HeartbeatWriter
from proofmark.training.ranks.model.strategy import Place
from tests.unit.training.tokens import WAYS, trained
from tests.unit.training.torchrun import ran_on

HERE = Place(0, 0, 1, torch.device("cpu"))


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, torch.Tensor]:
    """What one process makes of whole global batches."""
    folder = tmp_path_factory.mktemp("whole")
    weights, losses = trained(folder, HERE)
    assert len(losses) == 6 and len(set(losses)) == 6
    return weights | {"losses": torch.tensor(losses, dtype=torch.float64)}


def equal(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> bool:
    assert one.keys() == other.keys()
    return all(torch.allclose(one[name], other[name], rtol=1e-9, atol=0) for name in one)


@pytest.mark.parametrize("steps", [2, 3])
def test_accumulated_micro_batches_weigh_by_known_tokens(
    whole: dict[str, torch.Tensor], tmp_path: Path, steps: int
) -> None:
    weights, losses = trained(tmp_path, HERE, gradient_accumulation_steps=steps)
    assert equal(weights | {"losses": torch.tensor(losses, dtype=torch.float64)}, whole)


def test_ranks_weigh_by_known_tokens(whole: dict[str, torch.Tensor], tmp_path: Path) -> None:
    ran = ran_on(2, "tests.unit.training.tokens", str(tmp_path))
    assert ran.returncode == 0, ran.stderr
    for way in WAYS:
        assert equal(load_file(tmp_path / way / "weights.safetensors"), whole), way


def test_the_digest_of_large_weights_is_no_hang(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each tensor is gathered, then hashed, with a sign of life of the phase that is waited for longest."""
    phases = list[str]()
    sign = HeartbeatWriter.__call__

    def kept(heartbeat: HeartbeatWriter, step: int, phase: str) -> None:
        phases.append(phase)
        sign(heartbeat, step, phase)

    monkeypatch.setattr(HeartbeatWriter, "__call__", kept)
    weights, _ = trained(tmp_path, HERE, {"target": 0.0})
    assert phases[-1] == "end" and phases[-2 - 2 * len(weights) : -1] == [
        "evaluation",
        *2 * len(weights) * ["checkpoint"],
    ]


def test_wrong_flops_are_told_before_training_begins(tmp_path: Path) -> None:
    expected = r"declares 9000 FLOPs per word, counted were (\d+): .* write \1 in .*tokens.yaml: parameters.flops$"
    with pytest.raises(StepError, match=expected):
        trained(tmp_path, HERE, {"flops": 9000.0, "item": "word"})
    events = {event["event"] for event in read_events(tmp_path / "rank0.jsonl")}
    assert "flops" in events and "init_end" not in events
