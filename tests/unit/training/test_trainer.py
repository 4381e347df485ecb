"""One step of training is the same step however the global batch is divided."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from proofmark.errors import StepError
from proofmark.record.events.log import EventLog, read_events
from proofmark.rules.config import EffectiveConfig
from proofmark.training.heartbeat import HeartbeatWriter, read_heartbeat
from proofmark.training.ranks.model.strategy import Place
from tests.unit.training.spare import Spare
from tests.unit.training.tokens import ITEMS, WAYS, Sequences, Tokens, trained
from tests.unit.training.torchrun import ran_on

YIELDED = (
    r"what build_dataset yields, a list of 1 \(a tensor \({rows}, 6\)\): IndexError: .*\(traceback in rank0.log\)$"
)


class Scored(Tokens):
    """Its evaluator returns what a test says."""

    def __init__(self, score: object) -> None:
        self.score = score

    def evaluator(self, outputs: list[torch.Tensor], targets: torch.Tensor) -> Any:
        return self.score


class Watched(Tokens):
    """Its metrics look at the last sign of life."""

    def __init__(self, heartbeat: Path) -> None:
        self.heartbeat, self.phases = heartbeat, list[str]()

    def metric(self, config: EffectiveConfig) -> Any:
        return Watching(self.heartbeat, self.phases)


class Watching:
    """A metric that notes in which phase it is fed, and computed."""

    def __init__(self, heartbeat: Path, phases: list[str]) -> None:
        self.heartbeat, self.phases = heartbeat, phases

    def update(self, outputs: Any, targets: torch.Tensor, /) -> None:
        self._look()

    def compute(self) -> float:
        self._look()
        return 0.5

    def _look(self) -> None:
        found = read_heartbeat(self.heartbeat)
        assert found is not None
        self.phases.append(found.phase)


class Changed(torch.nn.Module):
    """A model with something done to its answer."""

    def __init__(self, model: torch.nn.Module, change: Callable[[torch.Tensor], object]) -> None:
        super().__init__()
        self.model, self.change = model, change

    def forward(self, words: torch.Tensor) -> object:
        return self.change(self.model(words))


class Answered(Tokens):
    """Its model returns what a test makes of a good answer."""

    def __init__(self, change: Callable[[torch.Tensor], object]) -> None:
        self.change = change

    def create_model(self, config: EffectiveConfig) -> torch.nn.Module:
        model = super().create_model(config)
        return Changed(model, self.change)


class Longer(Sequences):
    """Its words are more than the model knows."""

    def __getitems__(self, indices: list[int]) -> tuple[list[torch.Tensor], torch.Tensor]:
        (words,), targets = super().__getitems__(indices)
        return [words + 100], targets


class Mistaken(Tokens):
    """Data of one split that the model cannot take."""

    def __init__(self, wrong: str) -> None:
        self.wrong = wrong

    def build_dataset(self, config: EffectiveConfig, split: str) -> Sequences:
        return Longer() if split == self.wrong else Sequences()


class Sized(Tokens):
    """Data of one split that has so many samples."""

    def __init__(self, wrong: str, items: int) -> None:
        self.wrong, self.items = wrong, items

    def build_dataset(self, config: EffectiveConfig, split: str) -> Sequences:
        if split != self.wrong:
            return Sequences()
        kind = type("Few", (Sequences,), {"__len__": lambda data: self.items})
        return kind()  # type: ignore[no-any-return]


class Losing(Tokens):
    """Its loss is what a test makes of each sample's."""

    def __init__(self, change: Callable[[torch.Tensor], Any]) -> None:
        self.change = change

    def loss(self, outputs: list[torch.Tensor], targets: torch.Tensor) -> Any:
        return self.change(outputs[0].sum((1, 2)))


class Own(Losing):
    """It trains by a step of its own."""

    def train_step(self, model: torch.nn.Module, inputs: list[torch.Tensor], targets: torch.Tensor) -> torch.Tensor:
        return torch.Tensor(model(*inputs).square().mean())


class Random(Tokens):
    """Its model and its evaluator draw."""

    def __init__(self, drawn: list[float]) -> None:
        self.drawn = drawn

    def create_optimizer(self, model: torch.nn.Module, config: EffectiveConfig) -> torch.optim.Optimizer:
        self.drawn.append(float(torch.rand(())))
        return super().create_optimizer(model, config)

    def evaluator(self, outputs: list[torch.Tensor], targets: torch.Tensor) -> tuple[float, float]:
        torch.rand(7)
        return super().evaluator(outputs, targets)


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


def test_a_layer_that_is_not_used_is_named(tmp_path: Path) -> None:
    """Alone a process trains with it; several can't."""
    trained(tmp_path, HERE, case=Spare())
    ran = ran_on(2, "tests.unit.training.spare", str(tmp_path))
    assert ran.returncode == 0, ran.stderr
    told = "create_model: 0.spare.weight, 0.spare.bias get no gradient, and with several processes all must; leave"
    for rank in range(2):
        assert (tmp_path / f"ended{rank}").read_text().startswith(told)


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


def test_a_rank_that_is_held_up_when_it_has_said_that_it_begins_counts_that(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its agent, who heard it, does: else it would be accused of a clock that is slow."""
    held_up, write = 1.0, EventLog.write

    def holds_up(log: EventLog, event: str, **fields: Any) -> None:
        write(log, event, **fields)
        if event == "train_begin":
            time.sleep(held_up)

    monkeypatch.setattr(EventLog, "write", holds_up)
    trained(tmp_path, HERE)
    (end,) = (event for event in read_events(tmp_path / "rank0.jsonl") if event["event"] == "train_end")
    assert end["train_seconds"] >= held_up


def test_wrong_flops_are_told_before_training_begins(tmp_path: Path) -> None:
    expected = r"declares 9000 FLOPs per word, counted were (\d+): .* write \1 in .*tokens.yaml: parameters.flops$"
    with pytest.raises(StepError, match=expected):
        trained(tmp_path, HERE, {"flops": 9000.0, "item": "word"})
    events = {event["event"] for event in read_events(tmp_path / "rank0.jsonl")}
    assert "flops" in events and "init_end" not in events


TWO = "expected two numbers, sum and count"
TENSORS = "expected a tensor or a tuple of tensors"
SCALAR = "expected a tensor without dimensions"
SIZES: dict[str, tuple[Tokens, str]] = {
    f"{items} of {split}": (Sized(split, items), f"^build_dataset: the data set of '{split}' {told}$")
    for split in ("train", "validation")
    for items, told in [
        (0, "is empty; expected one sample at least"),
        (ITEMS - 1, f"has {ITEMS - 1} samples, its identity says {ITEMS}; expected the same number"),
    ]
}


@pytest.mark.parametrize(
    "case, expected",
    [
        (Scored(("a", 1)), rf"^evaluator: returns a tuple of 2 \(a str, an int\); {TWO}$"),
        (Scored(None), rf"^evaluator: returns None; {TWO}$"),
        (Answered(lambda answer: None), f"^create_model: the model returns None; {TENSORS}$"),
        (Answered(lambda answer: {"logits": answer}), f"^create_model: the model returns a dict; {TENSORS}$"),
        (Mistaken("validation"), "^create_model: the model cannot take " + YIELDED.format(rows=2)),
        (Mistaken("train"), "^create_model: the model cannot take " + YIELDED.format(rows=1)),
        *SIZES.values(),
    ],
    ids=["text", "no score", "no answer", "a dict", "validation data", "training data", *SIZES],
)
def test_a_wrong_method_is_named_before_training_begins(tmp_path: Path, case: Tokens, expected: str) -> None:
    with pytest.raises(StepError, match=expected):
        trained(tmp_path, HERE, case=case)
    log = tmp_path / "rank0.jsonl"
    assert not log.exists() or "evaluation" not in {event["event"] for event in read_events(log)}


@pytest.mark.parametrize(
    "change, expected",
    [
        (lambda each: each, rf"^loss: returns a tensor \(5,\); {SCALAR}$"),
        (lambda each: each.sum().reshape(1), rf"^loss: returns a tensor \(1,\); {SCALAR}$"),
        (lambda each: each.sum().item(), f"^loss: returns a float; {SCALAR}$"),
        (lambda each: each.sum().detach(), "^loss: does not depend on any weight that could be trained$"),
    ],
    ids=["losses", "one of them", "a number", "a fixed loss"],
)
def test_a_loss_that_nothing_can_be_trained_by_is_named_in_the_first_step(
    tmp_path: Path, change: Callable[[torch.Tensor], Any], expected: str
) -> None:
    """Not before: a model may be changed by each of its steps, and reach over ranks in it."""
    with pytest.raises(StepError, match=expected):
        trained(tmp_path, HERE, case=Losing(change))


def test_what_is_looked_at_before_leaves_chance_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looked = list[float]()
    trained(tmp_path, HERE, case=Random(looked))
    monkeypatch.setattr("proofmark.training.ranks.goal.Target.rehearse", lambda goal, training, model: None)
    not_looked = list[float]()
    (tmp_path / "other").mkdir()
    trained(tmp_path / "other", HERE, case=Random(not_looked))
    assert looked == not_looked and len(looked) == 1


def test_a_step_of_its_own_needs_no_loss(tmp_path: Path) -> None:
    _, losses = trained(tmp_path, HERE, case=Own(lambda each: each))
    assert len(losses) == 6


def test_a_metric_is_computed_in_a_phase_of_its_own(tmp_path: Path) -> None:
    case = Watched(tmp_path / "rank0.heartbeat")
    trained(tmp_path, HERE, case=case)
    assert case.phases[-2:] == ["evaluation", "scoring"]
