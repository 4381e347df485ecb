"""A model that is not the case's is refused, whatever it says of itself; what an honest vendor does to one passes."""

from __future__ import annotations

import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from proofmark.record.events.log import Event, read_events
from proofmark.rules.config import EffectiveConfig
from proofmark.training.case import TrainingCase
from proofmark.training.outcome.checks import FUNCTION, METRIC, PARAMETERS, WEIGHTS
from proofmark.training.ranks.model.evaluation import Evaluated, evaluation_batches
from proofmark.training.ranks.model.referee import ROWS, _together, apart, as_long_as, batches_to_compare
from proofmark.vendor.adapter import TrainingAdapter
from tests.unit.training.cheats import CLASSES, FEATURES, Converts, Points, failed, train
from tests.unit.training.torchrun import ran_on

MASKED = torch.finfo(torch.float32).min


class Oracle(nn.Module):
    """Ten parameters, and the answers to all of the data."""

    def __init__(self, *, disguise: dict[str, torch.Tensor] | None = None) -> None:
        super().__init__()
        self.few = nn.Parameter(torch.zeros(10))
        self._disguise = disguise
        self._known = {tuple(point.tolist()): target for seed in (1, 2) for point, target in _pairs(seed)}

    def forward(self, points: torch.Tensor) -> torch.Tensor:
        answers = torch.tensor([self._known[tuple(point.tolist())] for point in points])
        return nn.functional.one_hot(answers, CLASSES) * 9.0 + self.few.sum() * 0

    def state_dict(self, *arguments: Any, **keywords: Any) -> Any:
        return self._disguise or super().state_dict(*arguments, **keywords)


def _pairs(seed: int) -> Any:
    data = Points(seed)
    return zip(data.points, data.targets.tolist(), strict=True)


def trained_weights(directory: Path) -> dict[str, torch.Tensor]:
    """Those that an honest training ends with."""
    (directory / "before").mkdir()
    trainer, _ = train(directory / "before", TrainingAdapter())
    return copy.deepcopy(trainer.model.state_dict())


def converged(events: list[Event]) -> bool:
    return bool(next(event["converged"] for event in events if event["event"] == "train_end"))


def steps(events: list[Event]) -> int:
    return int(next(event["step"] for event in events if event["event"] == "train_end"))


def test_what_a_vendor_leaves_alone_is_not_evaluated_twice(tmp_path: Path) -> None:
    _, events = train(tmp_path, TrainingAdapter())
    checks = [event["name"] for event in events if event["event"] == "check"]
    assert converged(events) and not failed(events) and checks == [PARAMETERS, WEIGHTS]
    assert not any(event["event"] == "confirmation" for event in events)


def test_an_oracle_of_ten_parameters_is_not_trained(tmp_path: Path) -> None:
    _, events = train(tmp_path, Converts(lambda model: Oracle()))
    assert not converged(events) and steps(events) == 0
    expected = "parameters of the case's: 0.0.weight is missing, 0.0.bias is missing, 0.1.weight is missing and others"
    assert expected in failed(events)[PARAMETERS]


def test_an_oracle_that_shows_the_cases_weights_does_not_compute_with_them(tmp_path: Path) -> None:
    _, events = train(tmp_path, Converts(lambda model: Oracle(disguise=dict(model.state_dict()))))
    assert not converged(events) and steps(events) == 0
    assert {PARAMETERS, FUNCTION} == failed(events).keys()
    assert "10 of 244 trainable elements are left" in failed(events)[PARAMETERS]


class Tenth(nn.Module):
    """The case's module, that answers from others' weights in evaluation, once training has begun."""

    def __init__(self, model: nn.Module, others: nn.Module) -> None:
        super().__init__()
        self.module = model
        self._others = [others.eval()]
        self._trained = False

    def forward(self, points: torch.Tensor) -> torch.Tensor:
        self._trained |= self.training
        if self._trained and not self.training:
            return self._others[0](points)  # type: ignore[no-any-return]
        return self.module(points)  # type: ignore[no-any-return]


def test_evaluation_by_other_weights_is_refused_at_the_target(tmp_path: Path) -> None:
    weights = trained_weights(tmp_path)

    def convert(model: nn.Module) -> nn.Module:
        others = copy.deepcopy(model)
        others.load_state_dict(weights)
        return Tenth(model, others)

    _, events = train(tmp_path, Converts(convert), learning_rate=1e-6)
    assert failed(events).keys() == {METRIC} and not converged(events)
    assert steps(events) == 6, "it ends at once"
    (message,) = failed(events).values()
    assert message.startswith(("with these weights its top1 is 0.9", "with these weights its top1 is 1,"))


def load(weights: dict[str, torch.Tensor], model: nn.Module) -> nn.Module:
    model.load_state_dict(weights)
    return model


def test_trained_weights_are_no_beginning(tmp_path: Path) -> None:
    weights = trained_weights(tmp_path)
    _, events = train(tmp_path, Converts(lambda model: load(weights, model)))
    assert failed(events).keys() == {WEIGHTS} and steps(events) == 0
    assert "does not begin from the weights that the case made from the seed" in failed(events)[WEIGHTS]


class LoadsLate(TrainingAdapter):
    """Not when it is asked for a model, but with the first forward pass."""

    def __init__(self, weights: dict[str, torch.Tensor]) -> None:
        self._weights, self._model = weights, nn.Module()

    def create_optimizer(self, case: TrainingCase, model: nn.Module, config: EffectiveConfig) -> torch.optim.Optimizer:
        self._model = model
        return super().create_optimizer(case, model, config)

    def autocast(self, config: EffectiveConfig, device: torch.device) -> Any:
        load(self._weights, self._model)
        return super().autocast(config, device)


def test_trained_weights_that_come_with_the_first_evaluation_are_no_beginning(tmp_path: Path) -> None:
    _, events = train(tmp_path, LoadsLate(trained_weights(tmp_path)))
    assert WEIGHTS in failed(events) and steps(events) == 0


def nudge(model: nn.Module) -> nn.Module:
    with torch.no_grad():
        model[0][1].running_mean[3] += 1e-6  # type: ignore[index, union-attr, operator]
    return model


def frozen(model: nn.Module) -> nn.Module:
    model[0].requires_grad_(False)  # type: ignore[index]
    return model


def narrower(model: nn.Module) -> nn.Module:
    model[0] = nn.Sequential(nn.Linear(FEATURES, 8), nn.BatchNorm1d(8), nn.ReLU())  # type: ignore[operator]
    model[2] = nn.Linear(8, CLASSES)  # type: ignore[operator]
    return model


def skips(model: nn.Module) -> nn.Module:
    model[0][2] = nn.Identity()  # type: ignore[index, operator]
    return model


@pytest.mark.parametrize(
    "convert, check, expected",
    [
        (nudge, WEIGHTS, "from the seed: 0.1.running_mean"),
        (frozen, PARAMETERS, "68 of 244 trainable elements are left"),
        (narrower, PARAMETERS, "0.0.bias has shape [8] instead of [16]"),
        (lambda model: model.double(), PARAMETERS, "0.0.bias is float64 instead of float32"),
        (lambda model: model.bfloat16(), PARAMETERS, "0.0.bias is bfloat16 instead of float32"),
        (skips, FUNCTION, "answers otherwise than the case's"),
    ],
)
def test_a_changed_model_is_refused(tmp_path: Path, convert: Any, check: str, expected: str) -> None:
    def with_its_dtype(model: nn.Module) -> nn.Module:
        converted: nn.Module = convert(model)
        dtype = next(converted.parameters()).dtype
        converted.register_forward_pre_hook(lambda _, points: (points[0].to(dtype),))
        return converted

    _, events = train(tmp_path, Converts(with_its_dtype))
    assert expected in failed(events)[check] and steps(events) == 0


def test_answers_are_held_alike_however_few_a_vendor_evaluates_at_once() -> None:
    """The distance between samples is the measure, of which one has none: far from nothing, all would be near."""
    wanted = [[1000.0 + torch.randn(1, 4)] for _ in range(16)]
    found = [[row + 1.0] for (row,) in wanted]
    ((got, want),) = _together(found, wanted)
    assert got[0].shape == want[0].shape == (16, 4) and apart(got, want) > 0.5
    assert max(apart(*each) for each in zip(found, wanted, strict=True)) < 0.01
    longer = [*wanted, [torch.randn(1, 5)]]
    assert list(_together(longer, longer)) == list(zip(longer, longer, strict=True)), "rows of unlike lengths"


@given(items=st.integers(1, 300), batch_size=st.integers(1, 80), world=st.integers(1, 16))
def test_ranks_compare_equally_many_batches(items: int, batch_size: int, world: int) -> None:
    """Of as many rows as are asked for, where there are so many; a sharded model would hang in one of some ranks."""
    lists = [evaluation_batches(items, batch_size, rank, world)[0] for rank in range(world)]
    batches, sizes = batches_to_compare(items, batch_size, world), [max(map(len, each)) for each in lists]
    assert batches >= 1 and batches * max(sizes) <= max(items, max(sizes))
    assert batches * min(sizes) >= min(ROWS, items // max(sizes) * min(sizes))


def test_an_answer_without_a_row_for_each_sample_is_compared_as_it_is() -> None:
    """As a language model's embeddings beside its logits: a vendor's adapter of such a case was accused of another
    function."""
    logits, table = torch.randn(24, 5), torch.randn(100, 3)
    wanted = [logits[:16], table]
    assert apart(as_long_as(wanted, [logits, table]), wanted) == 0
    assert apart(as_long_as(wanted, [logits, table + 1]), wanted) > 0.1
    for strange in ([logits], [logits[:8], table], [logits, table[:50]], [logits.sum(), table]):
        assert apart(as_long_as(wanted, strange), wanted) == float("inf")


class Wrapper(nn.Module):
    """As DDP and its like: the model behind one more name."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.module = model

    def forward(self, points: torch.Tensor) -> torch.Tensor:
        return self.module(points)  # type: ignore[no-any-return]


class Fused(nn.Module):
    """Linear and batch norm as one module whose state dict is that of the two; scales of its own beside it."""

    def __init__(self, body: nn.Module) -> None:
        super().__init__()
        linear, norm, _ = body.children()
        self.turned = nn.Parameter(linear.weight.detach().t().contiguous())  # type: ignore[operator, union-attr]
        self.bias, self.norm = linear.bias, norm

    def forward(self, points: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.norm(torch.addmm(self.bias, points, self.turned)))  # type: ignore[arg-type]

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        destination[f"{prefix}0.weight"] = self.turned.detach().t()
        destination[f"{prefix}0.bias"] = self.bias.detach()  # type: ignore[union-attr, operator]
        destination[f"{prefix}0._extra_state"] = torch.ones(3)

    def state_dict(self, *arguments: Any, prefix: str = "", **keywords: Any) -> Any:
        state = super().state_dict(*arguments, prefix=prefix, **keywords)
        for name in [name for name in state if name.startswith(f"{prefix}norm.")]:
            state[name.replace("norm.", "1.")] = state.pop(name)
        return state


def fuse(model: nn.Module) -> nn.Module:
    model[0] = Fused(model[0])  # type: ignore[index, operator]
    return model


@pytest.mark.parametrize(
    "convert, settings",
    [
        (lambda model: model, {}),
        (Wrapper, {}),
        (fuse, {}),
        (lambda model: nn.SyncBatchNorm.convert_sync_batchnorm(model), {"precision": "bf16"}),
        (lambda model: model.to(memory_format=torch.channels_last), {"channels_last": True}),
        (lambda model: model.bfloat16(), {"precision": "bf16"}),
        (lambda model: model, {"precision": "fp16"}),
        (lambda model: model, {"num_workers": 1}),
        (lambda model: model.bfloat16(), {"precision": "bf16", "eval_batch_size": 1}),
    ],
    ids=["same", "wrapped", "fused", "sync_bn", "channels_last", "bf16_weights", "fp16", "worker", "one_by_one"],
)
@pytest.mark.usefixtures("tidied")
def test_what_honest_vendors_do_passes(tmp_path: Path, convert: Any, settings: dict[str, Any]) -> None:
    _, events = train(tmp_path, Converts(convert), **settings)
    assert converged(events) and not failed(events)
    assert {event["name"] for event in events if event["event"] == "check"} == {PARAMETERS, WEIGHTS, FUNCTION, METRIC}
    (confirmed,) = (event for event in events if event["event"] == "confirmation")
    assert confirmed["metric"] >= 0.9
    (end,) = (event for event in events if event["event"] == "train_end")
    assert end["evaluation_seconds"] > confirmed["took_seconds"] > 0


def test_one_that_confirms_nothing_yet_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the case's own model is just below, training goes on to the next evaluation."""
    asked: list[Evaluated] = []

    def just_below(self: Any, model: nn.Module, said: Evaluated) -> tuple[Evaluated, bool]:
        asked.append(said)
        return (said if len(asked) > 1 else replace(said, values=dict.fromkeys(said.values, 0.899))), True

    monkeypatch.setattr("proofmark.training.ranks.model.referee.Referee.confirm", just_below)
    _, events = train(tmp_path, Converts(lambda model: model))
    first, second = (event for event in events if event["event"] == "confirmation")
    assert first["metric"] == 0.899 and second["step"] == first["step"] + 6 and converged(events)


def test_several_processes_agree(tmp_path: Path) -> None:
    ran = ran_on(2, "tests.unit.training.cheats", str(tmp_path))
    assert ran.returncode == 0, ran.stderr
    for parallel in ("ddp", "fsdp"):
        logs = [list(read_events(tmp_path / parallel / f"rank{rank}.jsonl")) for rank in (0, 1)]
        confirmed = [[event["metric"] for event in log if event["event"] == "confirmation"] for log in logs]
        assert confirmed[0] == confirmed[1] and confirmed[0][-1] >= 0.9
        assert all(converged(log) and not failed(log) for log in logs)


class TestApart:
    def test_whole_numbers_are_names(self) -> None:
        want = torch.arange(3000).reshape(3, 1000)
        assert apart([want.int()], [want]) == 0
        assert apart([want.roll(1, 0)], [want]) > 0.9
        near = want.clone()
        near[0, :30] = 7
        assert 0 < apart([near], [want]) < 0.01
        assert apart([want.float()], [want]) == float("inf")

    def test_masks_must_be_the_same(self) -> None:
        want = torch.tensor([[1.0, MASKED], [2.0, 3.0]])
        assert apart([want.clone()], [want]) == 0
        assert apart([torch.tensor([[1.0, 5.0], [2.0, 3.0]])], [want]) == float("inf")
        assert 0 < apart([torch.tensor([[1.1, MASKED], [2.0, 3.0]])], [want]) < 0.2

    def test_a_half_precisions_mask_is_one_in_any_type(self) -> None:
        want = torch.tensor([[1.0, -65504.0], [2.0, 3.0]], dtype=torch.float16)
        for got in (want.float(), torch.tensor([[1.0, MASKED], [2.0, 3.0]])):
            assert apart([got], [want]) == 0

    @pytest.mark.parametrize("got", [[], [torch.zeros(2)], [torch.zeros(3, 2)], [torch.zeros(2, 2).long()]])
    def test_other_shapes_and_kinds(self, got: list[torch.Tensor]) -> None:
        assert apart(got, [torch.zeros(2, 2)]) == float("inf")

    def test_nothing_is_compared_with_what_is_no_number(self) -> None:
        with pytest.raises(Exception, match="the case's own model returns something that is not a number"):
            apart([torch.zeros(2, 2)], [torch.full((2, 2), float("nan"))])
        assert apart([torch.full((2, 2), float("nan"))], [torch.ones(2, 2)]) == float("inf")
