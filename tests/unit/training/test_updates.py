"""What an optimizer made of recorded gradients is made again, with the state that a rank claims or without."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import save_file

from proofmark.rules.config import EffectiveConfig
from proofmark.training.drawn_steps import DrawnSteps, draw, recorded_steps
from proofmark.training.outcome.checks import REPLAYED
from proofmark.training.outcome.replay_checks import UPDATE, takes_steps
from proofmark.training.outside.replay import Replay
from proofmark.training.outside.replayed import Replayed
from proofmark.training.outside.updates import _otherwise
from proofmark.training.ranks.account import Position
from proofmark.training.ranks.left import read_left
from proofmark.training.ranks.model.own import named_state
from proofmark.training.ranks.model.strategy import Place
from proofmark.training.ranks.recording import Recorder
from proofmark.training.spec import AFTER, BEFORE, GRADIENTS, STATE, STEP, WEIGHTS, TrainingSpec
from tests.cheats.trainings.lays_a_made_up_state import explaining
from tests.unit.training.tokens import Tokens, trained

pytestmark = pytest.mark.usefixtures("warm")
IMPORTED = ("tests.unit.training.tokens",)

HERE = Place(0, 0, 1, torch.device("cpu"))
TASK = {"schedule": "linear", "max_epoch": 2}
SETTINGS = {
    "channels_last": False,
    "precision": "fp32",
    "gradient_accumulation_steps": 1,
    "global_batch_size": 5,
    "learning_rate": 0.01,
    "weight_decay": 0.1,
}

Tensors = dict[str, torch.Tensor]


class Adapted(Tokens):
    """With AdamW, or SGD with a momentum."""

    momentum: float | None = None

    def create_optimizer(self, model: torch.nn.Module, config: EffectiveConfig) -> torch.optim.Optimizer:
        if self.momentum is None:
            return torch.optim.AdamW(model.parameters(), lr=0.01, weight_decay=0.1)
        return torch.optim.SGD(model.parameters(), lr=0.01, momentum=self.momentum)


class With(Adapted):
    """With a hook before its optimizer's steps."""

    def __init__(self, hook: Callable[[torch.optim.Optimizer, int], None]) -> None:
        self._hook, self._taken = hook, 0

    def create_optimizer(self, model: torch.nn.Module, config: EffectiveConfig) -> torch.optim.Optimizer:
        optimizer = super().create_optimizer(model, config)
        optimizer.register_step_pre_hook(self._before)
        return optimizer

    def _before(self, optimizer: torch.optim.Optimizer, *_: Any) -> None:
        self._taken += 1
        self._hook(optimizer, self._taken)


def replayed(
    folder: Path, case: Tokens | None = None, last: int | None = None, precision: str = "fp32"
) -> list[Replayed]:
    config = EffectiveConfig("training", "tokens", "embedded", "acme", TASK, {**SETTINGS, "precision": precision})
    replay = Replay(case or Adapted(), config, TrainingSpec(("", ""), "", "", {}, str(folder), ()))
    *_, found = replay.all(folder / "noderank0" / "own0", last)
    return found


def recorded(folder: Path, case: Tokens | None = None, schedule: str = "linear") -> Path:
    """The folder of a training's recorded steps, which are all six."""
    trained(folder, HERE, TASK | {"schedule": schedule}, audited=True, case=case or Adapted(), learning_rate=0.01)
    return folder / "noderank0" / "own0"


def worst(found: list[Replayed]) -> float:
    return max(math.nan if one.update is None else one.update for one in found)


@pytest.mark.parametrize("momentum", [None, 0.9, 0.0])
def test_an_honest_training_is_far_below_the_bound(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, momentum: float | None
) -> None:
    monkeypatch.setattr(Adapted, "momentum", momentum)
    own = recorded(tmp_path)
    _alone(own)
    found = replayed(tmp_path)
    assert [one.step for one in found] == [1, 2, 3, 5, 6] and worst(found) < 1e-6
    assert not any(one.unseen or one.state for one in found)


def _alone(own: Path) -> None:
    """The second run begins without the first one's state."""
    first, second = own / STEP.format(4), own / STEP.format(5)
    if not (second / STATE).exists():
        optimizer_state = _after(own)
        save_file(optimizer_state, second / STATE)
    for path in first.iterdir():
        path.unlink()
    first.rmdir()


def _after(own: Path) -> Tensors:
    """What the case's optimizer keeps after four recorded steps."""
    config = EffectiveConfig("training", "tokens", "embedded", "acme", TASK, SETTINGS)
    model = Adapted().create_model(config)
    optimizer = Adapted().create_optimizer(model, config)
    for step in range(1, 5):
        gradients = read_left(own / STEP.format(step) / GRADIENTS)
        for name, parameter in model.named_parameters():
            parameter.grad = gradients[name]
        optimizer.step()
    return named_state(model, optimizer)


def test_a_rate_of_its_own_is_found_without_the_ranks_word(tmp_path: Path) -> None:
    def faster(optimizer: torch.optim.Optimizer, taken: int) -> None:
        optimizer.param_groups[0]["lr"] *= 1 + (taken > 2)

    recorded(tmp_path, With(faster))
    found = replayed(tmp_path)
    assert worst(found[:2]) < 1e-6
    assert all(one.update is not None and one.update > 0.9 for one in found[2:])
    (check,) = (each for each in takes_steps([vars(step) for step in found], "fp32") if each.name == REPLAYED)
    assert not check.passed and "step 3 changed the weights otherwise" in check.meaning


def changed(own: Path, change: Callable[[Tensors], Tensors]) -> None:
    path = own / STEP.format(5) / STATE
    save_file(change(read_left(path)), path)


def each(key: str, made: Callable[[torch.Tensor], torch.Tensor]) -> Callable[[Tensors], Tensors]:
    """Another tensor for all of this key."""
    return lambda state: {name: made(kept) if name.endswith(key) else kept for name, kept in state.items()}


OTHERWISE = "does not keep what the case's does"
CLAIMS: list[tuple[Callable[[Tensors], Tensors], str, str]] = [
    (each(".step", lambda kept: kept + 1), "can't be", "counted 5 steps, and there were 4"),
    (each("1.bias.step", lambda kept: -kept / 4), "can't be", "counted -1 steps, and there were 4"),
    (each("1.bias.step", lambda kept: kept / 8), "can't be", "counted 0.5 steps, and there were 4"),
    (each(".step", lambda kept: kept - 1), "can't be", "counted 3 steps, and there were 4"),
    (each(".exp_avg", lambda kept: kept.to(torch.float8_e5m2)), OTHERWISE, ""),
    (each(".exp_avg", lambda kept: kept * math.nan), "can't be", "what no step leaves"),
    (each(".exp_avg_sq", lambda kept: kept - 1), "can't be", "what no step leaves"),
    (lambda state: {}, OTHERWISE, ""),
    (lambda state: {**state, "few": torch.zeros(1)}, OTHERWISE, ""),
    (lambda state: {**state, "1.bias.exp_avg": torch.zeros(1)}, f"{OTHERWISE} (1.bias)", ""),
    (lambda state: {f"module.{name}": kept for name, kept in state.items()}, OTHERWISE, ""),
]


@pytest.mark.parametrize("change, unseen, wrong", CLAIMS)
def test_a_state_that_cannot_be_is_told_from_one_of_another_form(
    tmp_path: Path, change: Callable[[Tensors], Tensors], unseen: str, wrong: str
) -> None:
    own = recorded(tmp_path)
    _alone(own)
    changed(own, change)
    *_, fifth, sixth = replayed(tmp_path)
    assert fifth.update is None and sixth.update is None and fifth.unseen and fifth.unseen == sixth.unseen
    assert unseen in fifth.unseen and wrong in (fifth.state or "") and bool(fifth.state) == bool(wrong)


def test_a_parameter_that_had_no_gradient_counts_fewer_steps(tmp_path: Path) -> None:
    own = recorded(tmp_path)
    _alone(own)
    changed(own, each("1.bias.step", lambda kept: kept / 4))
    *_, fifth, _ = replayed(tmp_path)
    assert fifth.update is not None and fifth.state is None


def test_a_state_that_was_not_recorded_is_refused(tmp_path: Path) -> None:
    """That of an optimizer that keeps nothing is a file without tensors."""
    own = recorded(tmp_path)
    _alone(own)
    (own / STEP.format(5) / STATE).unlink()
    found = replayed(tmp_path)
    assert worst(found[:3]) < 1e-6
    why = "what its optimizer kept was not recorded"
    assert [(one.update, one.unseen, one.state) for one in found[3:]] == [(None, why, why)] * 2
    *_, check = takes_steps([vars(step) for step in found], "fp32")
    assert not check.passed and f"before step 5 {why}" in check.meaning


def test_a_state_that_explains_one_update_does_not_explain_the_next(tmp_path: Path) -> None:
    def turned(optimizer: torch.optim.Optimizer, taken: int) -> None:
        for parameter in optimizer.param_groups[0]["params"] if taken > 4 else ():
            parameter.data -= 0.3 * parameter.grad

    own = recorded(tmp_path, With(turned))
    _alone(own)
    fifth = own / STEP.format(5)
    before, gradients, after = (read_left(fifth / name) for name in (BEFORE, GRADIENTS, AFTER))
    group = {"betas": (0.9, 0.999), "eps": 1e-8, "lr": 0.01 * 2 / 6, "weight_decay": 0.1}
    made = {name: explaining(group, 5, before[name], gradients[name], after[name]) for name in gradients}
    save_file({f"{name}.{key}": tensor for name, kept in made.items() for key, tensor in kept.items()}, fifth / STATE)
    *_, explained, following = replayed(tmp_path)
    assert explained.update is not None and explained.update < UPDATE and explained.state is None
    assert following.update is not None and following.update > 10 * UPDATE


def test_an_update_is_not_hidden_by_a_weight_that_outweighs_all_others(tmp_path: Path) -> None:
    """A weight of 1e9, without a gradient, decays as it should; the others' updates are a fifth longer."""

    def longer(optimizer: torch.optim.Optimizer, taken: int) -> None:
        optimizer.param_groups[0]["lr"] *= 1.2 if taken > 4 else 1

    own = recorded(tmp_path, With(longer))
    _alone(own)
    once = -1e9 * (1 - 0.01 * 2 / 6 * 0.1)
    for step, values in ((5, (-1e9, 0.0, once)), (6, (once, 0.0, once * (1 - 0.01 / 6 * 0.1)))):
        for name, value in zip((BEFORE, GRADIENTS, AFTER), values, strict=True):
            path = own / STEP.format(step) / name
            tensors = read_left(path)
            tensors["1.bias"][0] = value
            save_file(tensors, path)
    changed(own, each("1.bias.exp_avg", lambda kept: kept * (torch.arange(len(kept)) > 0)))
    *_, fifth, sixth = replayed(tmp_path)
    assert fifth.update is not None and sixth.update is not None
    assert min(fifth.update, sixth.update) == pytest.approx(0.2, rel=0.15)


@pytest.mark.parametrize("share, far", [(0.02, True), (0.0005, False)])
def test_of_a_tensor_hardly_any_weights_may_go_elsewhere(share: float, far: bool) -> None:
    before = torch.full((100, 100), 1.0)
    before[0] = 1e9  # long, and so is its decay
    wanted = before * (1 - 1e-4)
    end = wanted.clone()
    end.view(-1)[-round(share * end.numel()) :] -= 0.5
    gradient = torch.ones_like(before)
    assert (_otherwise(before, end, wanted, gradient) > UPDATE) == far
    gradient[:-3] = 0  # of few weights that have one, more must go where they should
    assert _otherwise(before, end, wanted, gradient) > UPDATE
    assert _otherwise(before, wanted * (1 + 2e-7), wanted, gradient) == 0
    assert _otherwise(before, wanted * float("nan"), wanted, None) == 1e9


def test_weights_between_two_steps_are_those_that_the_first_left(tmp_path: Path) -> None:
    own = recorded(tmp_path)
    path = own / STEP.format(3) / BEFORE
    before = read_left(path)
    save_file({name: tensor + 0.1 for name, tensor in before.items()}, path)
    found = replayed(tmp_path)
    assert [each.replaced for each in found] == [False, True, *[False] * (len(found) - 2)]
    checks = takes_steps(list(map(vars, found)), "fp32")
    assert any("the weights that step 2 left were others when they were used" in check.meaning for check in checks)


@pytest.mark.parametrize("steps, left, replaced", [(6, 0.0, False), (6, 1e-7, True), (7, 0.1, False)])
def test_the_last_weights_are_those_that_the_last_step_left(
    tmp_path: Path, steps: int, left: float, replaced: bool
) -> None:
    """To the last bit, in whatever form its optimizer is; where the last step is recorded."""
    own = recorded(tmp_path)
    last = read_left(own / STEP.format(6) / AFTER)
    save_file({name: tensor + left for name, tensor in last.items()}, own / WEIGHTS)
    assert [each.replaced for each in replayed(tmp_path, last=steps)] == [*[False] * 5, replaced]


def test_last_weights_of_another_type_are_others(tmp_path: Path) -> None:
    own = recorded(tmp_path)
    last = read_left(own / STEP.format(6) / AFTER)
    save_file({name: tensor.to(torch.bfloat16) for name, tensor in last.items()}, own / WEIGHTS)
    assert replayed(tmp_path, last=6, precision="bf16")[-1].replaced


@pytest.mark.parametrize("stepped", [False, True])
def test_a_step_that_a_loss_scaler_leaves_out_changes_nothing(tmp_path: Path, stepped: bool) -> None:
    own = recorded(tmp_path) / STEP.format(6)
    save_file({name: tensor * math.nan for name, tensor in read_left(own / GRADIENTS).items()}, own / GRADIENTS)
    if not stepped:
        save_file(read_left(own / BEFORE), own / AFTER)
    found = replayed(tmp_path, precision="fp16")[-1]
    assert (found.unseen, found.replaced) == ("its gradients are not finite", stepped)


@pytest.mark.parametrize("begun", [0, 7])
@pytest.mark.parametrize("steps", [*range(1, 12), *[30] * 5])
def test_what_a_recorder_leaves_is_held_to_be_whole(tmp_path: Path, begun: int, steps: int) -> None:
    model = torch.nn.Linear(1, 1)
    optimizer = torch.optim.SGD(model.parameters())
    chances = draw()
    recorder = Recorder(tmp_path, HERE, chances)
    for at in range(begun, begun + steps):
        if recorder.due():
            recorder.begin(model, optimizer, Position(steps=at))
            recorder.end(model)
    left = sorted(int(path.name.removeprefix("recorded-")) for path in tmp_path.iterdir())
    found = [vars(Replayed(step, gradient=0.0)) for step in left]
    (check,) = takes_steps(found, "fp32", begun + steps, chances)
    assert check.passed, check.meaning


def test_steps_that_a_rank_has_drawn_itself_are_not_those_that_its_agent_drew() -> None:
    """By these chances the run from step 7 on gives way to the one from step 14 on."""
    chances = [0.6, 0.3, 1e-9]
    assert recorded_steps(chances, 6) == [1, 2, 3, 4, 5, 6] and recorded_steps(chances, 8) == [*range(1, 9)]
    assert recorded_steps(chances, 9) == [1, 2, 3, 7, 8, 9] == recorded_steps(chances, 13)[:6]
    assert recorded_steps(chances, 50) == [1, 2, 3, 14, 15, 16]
    far = [1, 2, 3, 7_000_000_010, 7_000_000_011, 7_000_000_012]
    assert recorded_steps(chances, 1 << 40) == far, "a rank may say any number"
    for steps, passes in (([1, 2, 3, 14, 15, 16], True), ([1, 2, 3, 4, 5, 6], False)):
        (check,) = takes_steps([vars(Replayed(step, gradient=0.0)) for step in steps], "fp32", 50, chances)
        assert check.passed is passes
        assert passes or "4, 5, 6 are recorded, drawn were 1, 2, 3, 14, 15, 16" in check.meaning


@given(st.lists(st.floats(1e-3, 1.0), max_size=20), st.integers(0, 400))
def test_steps_that_are_not_recorded_may_be_passed_over(chances: list[float], steps: int) -> None:
    drawn, one_by_one = DrawnSteps(chances), list[int]()
    for step in range(1, steps + 1):
        if drawn.due():
            one_by_one.append(step)
    drawn, passed, step = DrawnSteps(chances), list[int](), 0
    while (step := step + drawn.pass_over() + 1) <= steps:
        assert drawn.due()
        passed.append(step)
    assert passed == one_by_one


def test_what_is_recorded_of_a_scaled_loss_is_not_and_the_optimizer_gets_what_it_always_gets(tmp_path: Path) -> None:
    model = torch.nn.Linear(3, 1).to(torch.float16)
    model.weight.grad = torch.full((1, 3), 2.0, dtype=torch.float16)
    recorder = Recorder(tmp_path, HERE, draw(), alive := Mock())
    assert recorder.due()
    recorder.begin(model, torch.optim.SGD(model.parameters()), Position())
    recorder.hold(model, 65536.0)
    recorder.end(model)
    assert model.weight.grad.eq(2).all() and model.weight.grad.dtype == torch.float16
    left = read_left(tmp_path / STEP.format(1) / GRADIENTS)["weight"]
    assert left.dtype == torch.float32 and left.eq(2 / 65536).all()
    assert alive.call_count >= 10, "each file, and each tensor in it, is a sign of life"


def test_a_drawn_run_is_any_of_the_training(tmp_path: Path) -> None:
    model = torch.nn.Linear(1, 1)
    optimizer, began, drawn = torch.optim.SGD(model.parameters()), Counter[int](), 0
    for number in range(150):
        folder = tmp_path / str(number)
        recorder = Recorder(folder, HERE, draw())
        for at in range(60):
            if recorder.due():
                drawn += 1
                recorder.begin(model, optimizer, Position(steps=at))
                recorder.end(model)
        steps = sorted(int(path.name.removeprefix("recorded-")) for path in folder.iterdir())
        assert steps[:3] == [1, 2, 3] and len(steps) >= 6
        assert {int(path.parent.name.removeprefix("recorded-")) for path in folder.glob(f"*/{STATE}")} <= set(steps[3:])
        began[steps[-1] > 31] += 1
    assert 55 <= began[True] <= 125 and drawn / 150 < 25  # five standard deviations from 92
