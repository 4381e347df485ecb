"""What ranks leave is evaluated in a process without a vendor's code, and held against what they claim."""

from __future__ import annotations

import json
import math
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

from proofmark.errors import StepError
from proofmark.record.events.log import Event, EventLog, read_events
from proofmark.rules.config import EffectiveConfig
from proofmark.training.logs.outside import examination_of, examined, standing
from proofmark.training.outcome.checks import (
    CLOCK,
    OUTSIDE,
    PLAN,
    REPLAYED,
    SEEDED,
    as_good,
    keeps_the_plan,
    metric_bound,
)
from proofmark.training.outcome.event_types import AGENT_EVENTS
from proofmark.training.outcome.examined import Examination
from proofmark.training.outcome.replay_checks import takes_steps
from proofmark.training.outside import examination, metric
from proofmark.training.outside.examination import examine
from proofmark.training.outside.gradients import Compared
from proofmark.training.outside.metric import evaluated, filled
from proofmark.training.outside.replay import Replay
from proofmark.training.outside.replayed import Replayed
from proofmark.training.ranks.left import digest_of, last_weights, leave_weights, read_left
from proofmark.training.ranks.model.own import named_weights
from proofmark.training.ranks.model.strategy import Place
from proofmark.training.spec import BEFORE, RANDOM, RANDOM_OF, STEP, WEIGHTS, WHICH, TrainingSpec
from tests.training_records import passed
from tests.unit.training.dropping import Dropping
from tests.unit.training.tokens import ITEMS, Sequences, Tokens, trained
from tests.unit.training.torchrun import ran_on

pytestmark = pytest.mark.usefixtures("warm")
IMPORTED = ("tests.unit.training.tokens",)

HERE = Place(0, 0, 1, torch.device("cpu"))
SETTINGS = {
    "eval_batch_size": 4,
    "precision": "fp32",
    "gradient_accumulation_steps": 1,
    "global_batch_size": 5,
    "channels_last": False,
}
CONFIG = EffectiveConfig("training", "tokens", "embedded", "acme", {"schedule": "constant", "max_epoch": 2}, SETTINGS)


@pytest.mark.parametrize(
    "claimed, found, weight, error, passes",
    [
        (0.95, 0.95, 100, 0.0, True),
        (0.95, 0.935, 100, 0.0, True),  # two samples that are rounded otherwise
        (0.95, 0.9, 100, 0.0, False),
        (0.5, 0.99, 100, 0.0, False),  # better weights than those that were trained
        (0.95, 0.9, 100, 0.01, True),  # of some of the data
        (0.95, math.nan, 100, 0.0, False),
        (30.6, 30.0, None, 0.0, True),  # no mean: two samples' share of the value
        (30.7, 30.0, None, 0.0, False),
        (1e-3, 0.0, None, 0.0, False),
    ],
)
def test_a_claimed_metric_is_held_against_the_weights(
    claimed: float, found: float, weight: float | None, error: float, passes: bool
) -> None:
    check = as_good("top1", claimed, found, weight, 100, error, "fp32")
    assert (check.name, check.passed) == (OUTSIDE, passes)


@pytest.mark.parametrize("weight, samples", [(None, 0), (None, 0.5), (0, 100), (0.01, 100)])
def test_where_nothing_was_counted_no_sample_is_worth_anything(weight: float | None, samples: float) -> None:
    """A claim may then be off by the precision's share alone."""
    assert not as_good("map", 0.9, 0.5, weight, samples, 0.0, "fp32").passed
    assert as_good("map", 0.5, 0.5, weight, samples, 0.0, "fp32").passed
    assert metric_bound(0.5, weight, samples, "fp32") == pytest.approx(0.001)


def test_weights_are_evaluated_on_all_data_or_on_some(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    case = Tokens()
    torch.manual_seed(3)
    leave_weights(last_weights(case.create_model(CONFIG), HERE), tmp_path)
    model, wrong = filled(case, CONFIG, read_left(tmp_path / WEIGHTS))
    assert not wrong and not model.training
    whole = evaluated(model, case, CONFIG, whole=True)
    (known,) = whole.values.values()
    assert (whole.samples, whole.of, known.error) == (11, 11, 0.0) and known.weight == 15 and known.metric is not None
    monkeypatch.setattr(metric, "DRAWN", 8)
    monkeypatch.setattr(metric, "ROWS", 2)
    some = [evaluated(model, case, CONFIG, whole=False) for _ in range(20)]
    assert {(found.samples, found.of) for found in some} == {(8, 11)}
    assert any(found.headline.error > 0 for found in some)
    monkeypatch.setattr(metric, "LEAST", 3)
    assert evaluated(model, case, CONFIG, whole=False, until=-math.inf).samples == 4, "as many as there must be"
    assert evaluated(model, case, CONFIG, whole=True, until=-math.inf).samples == 11
    for one in (found.headline for found in some):
        assert one.metric is not None and abs(one.metric - known.metric) <= 4 * one.error + 2 / (one.weight or 1)


class Summed(Tokens):
    def evaluator(self, outputs: list[torch.Tensor], targets: torch.Tensor) -> Any:
        return tuple(map(torch.tensor, super().evaluator(outputs, targets)))


def test_what_an_evaluator_sums_up_may_be_tensors() -> None:
    case = Summed()
    found = evaluated(case.create_model(CONFIG), case, CONFIG, whole=True).headline
    assert [type(part) for part in (found.metric, found.error, found.weight)] == [float] * 3


def test_weights_that_do_not_fit_are_named() -> None:
    case = Tokens()
    weights = {**named_weights(case.create_model(CONFIG)), "few": torch.zeros(10)}
    weights["1.bias"] = torch.zeros(1)
    assert filled(case, CONFIG, weights)[1] == ["1.bias", "few"]


@pytest.mark.parametrize("content, expected", [(None, "left no"), (b"rubbish", "can't be read")])
def test_what_is_not_there_or_no_weights_is_said(tmp_path: Path, content: bytes | None, expected: str) -> None:
    if content is not None:
        (tmp_path / WEIGHTS).write_bytes(content)
    with pytest.raises(StepError, match=expected):
        read_left(tmp_path / WEIGHTS)


@pytest.mark.parametrize("dtype, name", [(torch.float8_e4m3fn, "float8_e4m3fn"), (torch.uint16, "uint16")])
def test_numbers_of_a_form_that_no_training_leaves_are_refused(tmp_path: Path, dtype: torch.dtype, name: str) -> None:
    tensors = {"few": torch.ones(2).to(dtype), "counted": torch.ones(2, dtype=torch.int64)}
    save_file(tensors, tmp_path / WEIGHTS)
    with pytest.raises(StepError, match=f"final.safetensors, which rank 0 left, has few as {name}, which no training"):
        read_left(tmp_path / WEIGHTS)
    assert read_left(tmp_path / WEIGHTS, any_form=True).keys() == tensors.keys()
    for each in (torch.bool, torch.int64, torch.bfloat16, torch.float64):
        save_file({"few": torch.ones(2).to(each)}, tmp_path / WEIGHTS)
        assert read_left(tmp_path / WEIGHTS)["few"].dtype == each


def test_what_is_no_plain_file_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(tmp_path / WEIGHTS)
    with pytest.raises(StepError, match="final.safetensors, which rank 0 left, is not a regular file"):
        read_left(tmp_path / WEIGHTS)
    replay, which = recorded(tmp_path), tmp_path / "noderank0" / "own0" / STEP.format(2) / WHICH
    which.unlink()
    os.mkfifo(which)
    with pytest.raises(StepError, match="recorded-2/which.json is not a regular file"):
        list(replay.all(which.parents[1]))


DATA = {"items": ITEMS, "data": Sequences.identity.model_dump(mode="json")}
"""As the process says that has made it."""


def left(folder: Path, tensors: dict[str, torch.Tensor], digest: str | None = None) -> Event:
    """What the agent notes of weights that rank 0 left, when it had told their digest, or `digest`."""
    spec = TrainingSpec(("tests.unit.training.tokens", "Tokens"), "nobody", "", CONFIG.as_dict(), str(folder), ())
    spec.save(folder / "spec.json")
    own = spec.own_directory(0, 0)
    own.mkdir(parents=True)
    save_file(tensors, own / WEIGHTS)
    log = EventLog(spec.node_directory(0) / "agent.jsonl")
    examine(folder / "spec.json", spec, 0, log, digest_of(tensors) if digest is None else digest, 0, DATA)
    (event,) = read_events(spec.node_directory(0) / "agent.jsonl", AGENT_EVENTS)
    return event


def test_an_examination_of_more_data_than_a_million_items_is_read(tmp_path: Path) -> None:
    """As many as ImageNet's."""
    log = EventLog(tmp_path / "agent.jsonl")
    log.write("examined", items=1_281_167, samples=5000, of=50_000)
    log.close()
    (event,) = read_events(tmp_path / "agent.jsonl", AGENT_EVENTS)
    assert event["event"] == "examined" and event["items"] == 1_281_167


@pytest.mark.parametrize("digest, named", [("0" * 64, "000000000000"), ("", "none")])
def test_weights_that_were_written_after_the_end_are_not_looked_at(tmp_path: Path, digest: str, named: str) -> None:
    event = left(tmp_path, {"few": torch.zeros(1)}, digest)
    assert event["reason"] == (
        f"the weights that rank 0 left are not those whose digest it told when training ended ({named})"
    )
    assert "metric" not in event and "misfits" not in event


def test_a_digest_is_of_names_forms_and_values() -> None:
    weights = {"one": torch.arange(6.0).reshape(2, 3), "two": torch.ones((), dtype=torch.bfloat16)}
    others = (
        {**weights, "one": weights["one"].reshape(3, 2)},
        {**weights, "one": weights["one"] + torch.eye(2, 3) * 1e-6},
        {"one": weights["one"], "too": weights["two"]},
        {**weights, "two": torch.ones((), dtype=torch.float16)},
    )
    assert digest_of(dict(reversed(weights.items()))) == digest_of(weights)
    assert digest_of({**weights, "one": weights["one"].t().contiguous().t()}) == digest_of(weights)
    assert len({digest_of(each) for each in (weights, *others)}) == 5


def test_names_without_end_are_told_cut(tmp_path: Path) -> None:
    event = left(tmp_path, {f"{number}" * (1 << 16): torch.zeros(1) for number in range(8)})
    assert len(event["misfits"]) == 8 and max(map(len, event["misfits"])) == 200
    (check,) = examined(examination_of([event], {"metric": 0.9}), ["top1"], "fp32")
    assert (check.name, check.passed) == (OUTSIDE, False)


def test_where_nobody_said_which_data_it_was_nothing_is_borne_out(tmp_path: Path) -> None:
    """No metric either: the plan's samples are held against that."""
    spec = TrainingSpec(("tests.unit.training.tokens", "Tokens"), "nobody", "", CONFIG.as_dict(), str(tmp_path), ())
    (own := spec.own_directory(0, 0)).mkdir(parents=True)
    last = last_weights(Tokens().create_model(CONFIG), HERE)
    leave_weights(last, own)
    log = EventLog(spec.node_directory(0) / "agent.jsonl")
    examine(tmp_path / "spec.json", spec, 0, log, digest_of(last), 0, {})
    (event,) = read_events(log.path, AGENT_EVENTS)
    assert event["reason"] == "the process that loads its data has not said which that is" and "metric" not in event
    assert not list(own.iterdir())


def test_an_answer_that_is_too_long_accuses_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(examination, "LONGEST", 16)
    assert "its process gave no answer: more than" in left(tmp_path, {"few": torch.zeros(1)})["reason"]


def test_a_process_of_its_own_examines_what_was_left(tmp_path: Path) -> None:
    config = CONFIG.as_dict()
    spec = TrainingSpec(("tests.unit.training.tokens", "Tokens"), "nobody", "", config, str(tmp_path), ())
    spec.save(tmp_path / "spec.json")
    folder, own = spec.node_directory(0), spec.own_directory(0, 0)
    own.mkdir(parents=True)
    log = EventLog(folder / "agent.jsonl")
    weights = Tokens().create_model(CONFIG)
    last = last_weights(weights, HERE)
    leave_weights(last, own)
    examine(tmp_path / "spec.json", spec, 0, log, digest_of(last), 0, DATA)
    examine(tmp_path / "spec.json", spec, 0, log, digest_of(last), 0, DATA)  # nothing is left to look at
    (first,) = read_events(folder / "agent.jsonl", AGENT_EVENTS)
    found = examination_of([first], {"metric": 0.9})
    assert (
        found
        and found.whole
        and found.metric == evaluated(weights.eval(), Tokens(), CONFIG, whole=True).headline.metric
    )
    (check,) = examined(found, ["top1"], "fp32")
    assert not check.passed and "0.9; its weights have" in check.meaning
    assert first["items"] == 11


def test_what_could_not_be_looked_at_accuses_nobody(tmp_path: Path) -> None:
    spec = TrainingSpec(("tests.unit.training.tokens", "Tokens"), "nobody", "", CONFIG.as_dict(), str(tmp_path), ())
    spec.save(tmp_path / "spec.json")
    folder, own = spec.node_directory(0), spec.own_directory(0, 0)
    own.mkdir(parents=True)
    (own / WEIGHTS).write_bytes(b"rubbish")
    examine(tmp_path / "spec.json", spec, 0, EventLog(folder / "agent.jsonl"), "0" * 64, 0, DATA)
    (event,) = read_events(folder / "agent.jsonl", AGENT_EVENTS)
    assert "can't be read" in event["reason"]
    assert not list(examined(examination_of([event], {"metric": 0.9}), ["top1"], "fp32"))


def step(**changes: Any) -> dict[str, Any]:
    """What the replay of a recorded step showed."""
    return {"step": 1, "gradient": 0.001, "noise": 0.0, "update": 0.0, "seeded": True, "misfits": [], **changes}


@pytest.mark.parametrize(
    "changes, precision, failed",
    [
        ({}, "fp32", []),
        ({"gradient": 0.02}, "fp32", [REPLAYED]),
        ({"gradient": 0.02, "rounding": 0.003}, "fp32", []),
        ({"gradient": 0.04, "rounding": 0.003}, "fp32", [REPLAYED]),
        ({"gradient": 0.6, "rounding": 7.0}, "fp32", [REPLAYED]),
        ({"gradient": 0.02}, "bf16", []),
        ({"gradient": 0.2, "noise": 0.18}, "fp32", []),
        ({"gradient": 0.6, "noise": 0.18}, "fp32", [REPLAYED]),
        ({"gradient": 1.08 * 2.45, "noise": 2.45}, "fp32", []),
        ({"gradient": 4.0, "noise": 1.1e9}, "fp32", [REPLAYED]),
        ({"gradient": 0.9, "rounding": 0.5}, "bf16", []),
        ({"gradient": 0.9, "rounding": 0.01}, "bf16", [REPLAYED]),
        ({"astray": 0.4, "stray": "a"}, "fp32", []),
        ({"astray": 0.6, "stray": "a"}, "fp32", [REPLAYED]),
        ({"astray": 0.6, "stray": "a"}, "bf16", []),
        ({"astray": 1.0, "stray": "a"}, "bf16", [REPLAYED]),
        ({"update": 1.0}, "fp32", [REPLAYED]),
        ({"update": None, "seeded": None, "step": 7}, "fp32", []),
        ({"update": None, "seeded": None, "step": 7, "unseen": "it has another"}, "fp32", []),
        ({"update": None, "seeded": None, "step": 7, "state": "it counts none"}, "fp32", [REPLAYED]),
        ({"seeded": False}, "fp32", [SEEDED]),
        ({"misfits": ["few"]}, "fp32", [REPLAYED]),
    ],
)
def test_recorded_steps_are_held_against_their_replay(
    changes: dict[str, Any], precision: str, failed: list[str]
) -> None:
    checks = list(takes_steps([step(step=2), step(**changes)], precision))
    assert {check.name for check in checks if not check.passed} == set(failed)


def matrices(**lengths: float) -> dict[str, torch.Tensor]:
    """Of nine numbers each, of these lengths."""
    return {name: torch.arange(1.0, 10).reshape(3, 3) * length for name, length in lengths.items()}


def test_gradients_are_compared_matrix_by_matrix() -> None:
    """However much longer one of them is than all others."""
    trunk = {f"layer{number}": 1.0 for number in range(19)}
    wanted = matrices(head=4096.0, **trunk) | {"bias": torch.ones(3) * 1e-9}
    assert Compared.of(wanted, [wanted]).astray == 0
    alone = Compared.of(matrices(head=4096.0), [wanted])
    assert alone.gradient < 2e-3
    assert (alone.astray, alone.stray) == (1.0, "layer9")
    assert Compared.of(matrices(head=4096.0, **trunk | {"layer3": 0.0}), [wanted]).astray == 0, "one of twenty"
    assert Compared.of(wanted | {"layer3": -wanted["layer3"], "layer4": torch.zeros(3, 3)}, [wanted]).astray == 1.0
    assert Compared.of({name: each * math.nan for name, each in wanted.items()}, [wanted]).astray == 1e9
    across = wanted | {"layer3": wanted["layer3"] + torch.tensor([[50.0, -25, 0], [0, 0, 0], [0, 0, 0]])}
    assert Compared.of(across, [{"layer3": wanted["layer3"]}]).astray < 1e-6, "roundings go all ways"


def test_a_matrix_whose_replays_are_noise_tells_nothing() -> None:
    replays = [matrices(loud=share, still=1.0 + share / 100) for share in (9.0, -9.0, 8.0, -8.0, 1.0, 2.0)]
    still = matrices(loud=-3.0, still=1.0)
    assert Compared.of(still, replays).astray < 0.01
    assert Compared.of(still | {"still": torch.zeros(3, 3)}, replays).astray == 1.0


def test_dropout_is_heard_that_one_matrix_hides_in_the_vector_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    draws = iter([matrices(head=4096.0, trunk=share) for share in (1.0, -1.0, 1.1, -0.9, 1.0, -1.0, 1.0)])
    monkeypatch.setattr(Replay, "_gradients", lambda *_: next(draws))
    found = Replay.__new__(Replay)._compared(torch.nn.Linear(1, 1), {}, [], matrices(head=4096.0, trunk=-1.0), None)
    assert (found.gradient < 1e-3, found.astray) == (True, 0.0)


def done_again(replay: Replay, folder: Path) -> list[Replayed]:
    *_, found = replay.all(folder)
    return found


NONE = torch.zeros(1)
"""As of a device, whose dropout can't be drawn again."""

NO_STATE = torch.zeros_like(torch.get_rng_state())


@pytest.mark.parametrize(
    "case, state, passes",
    [
        (Dropping(), None, True),
        (Dropping(), NONE, True),
        (Dropping(), NO_STATE, True),
        (Tokens(), NONE, False),
    ],
    ids=["drawn again", "drawn", "drawn from rubbish", "left out"],
)
def test_a_training_without_its_dropout_is_told(
    tmp_path: Path, case: Tokens, state: torch.Tensor | None, passes: bool
) -> None:
    trained(tmp_path, HERE, audited=True, case=case)
    for path in tmp_path.rglob(RANDOM) if state is not None else ():
        save_file({RANDOM_OF.format(0): state}, path)
    replay = Replay(Dropping(), CONFIG, TrainingSpec(("", ""), "", "", {}, str(tmp_path), ()))
    found = [vars(each) for each in done_again(replay, tmp_path / "noderank0" / "own0")]
    *_, check = takes_steps(found, "fp32")
    assert check.passed == passes, check.meaning
    assert passes or "they drew less" in check.meaning


@pytest.mark.parametrize(
    "drops, elements, drawn", [(0.0, 4096, 0.41), (1.0, 4096, 1.08), (0.0, 1, None)], ids=["nothing", "as all", "few"]
)
def test_a_step_that_a_ranks_state_explains_is_held_to_dropout_that_is_drawn_anew(
    monkeypatch: pytest.MonkeyPatch, drops: float, elements: int, drawn: float | None
) -> None:
    """The state may be one that draws none. Where parameters are few, an honest draw may lie as near to the mean."""
    chance = torch.Generator().manual_seed(1)

    def draw(noise: float) -> dict[str, torch.Tensor]:
        return {"w": 1 + noise * torch.randn((elements, 1), generator=chance)}

    recorded = draw(0.3 * drops)
    draws = iter([recorded, *(draw(0.3) for _ in range(6))] * 4)
    monkeypatch.setattr(Replay, "_gradients", lambda *_: next(draws))
    replay = Replay.__new__(Replay)
    replay._drawn = 0
    found = [replay._compared(torch.nn.Linear(1, 1), {}, [], recorded, {}) for _ in range(3)]
    assert all(each.gradient == each.noise == 0 for each in found)
    assert [each.drawn for each in found] == [drawn and pytest.approx(drawn, abs=0.02)] * 3
    steps = [vars(Replayed(number, **vars(each))) for number, each in enumerate(found, 1)]
    *_, check = takes_steps(steps, "fp32")
    assert check.passed == (drawn != 0.41) and ("they drew less" in check.meaning) == (drawn == 0.41)


def test_ranks_on_a_processor_each_draw_their_dropout_again(tmp_path: Path) -> None:
    """What another rank drew is no noise then: where parameters are few, honest gradients were beyond its bound."""
    ran = ran_on(2, "tests.unit.training.dropping", str(tmp_path))
    assert ran.returncode == 0, ran.stdout + ran.stderr
    config = replace(CONFIG, configurations=SETTINGS | {"gradient_accumulation_steps": 2})
    replay = Replay(Dropping(), config, TrainingSpec(("", ""), "", "", {}, str(tmp_path), (), nproc=2))
    found = done_again(replay, tmp_path / "noderank0" / "own0")
    assert len(found) == 6
    assert all(each.noise == 0 and each.gradient is not None and each.gradient < 1e-6 for each in found), found


@pytest.mark.parametrize(
    "steps, trained, whole",
    [
        ([1, 2, 3, 40, 41, 42], 90, True),
        ([1, 2, 3, 4, 5, 6, 89, 90], 90, True),
        ([1, 2], 2, True),
        ([1, 2, 3, 4], 4, True),
        ([7, 8, 9, 40, 41, 42], 90, True),  # a resumed training
        ([1], 90, False),
        ([1, 2, 3], 90, False),
        ([1, 40, 41, 42], 90, False),
        ([1, 2, 3, 40, 42], 90, False),
        ([1, 2, 3, 40, 41], 90, False),
        ([1, 2, 3, 4, 5], 5, True),
        ([1, 2, 3, 4, 5, 6], 90, True),
        ([1, 2, 3, 4, 5, 6, 7, 8], 8, True),
        ([1, 2, 3, 4], 5, False),
        ([1, 2, 3, 6], 6, False),
        ([1, 2, 3, 90], 90, False),  # one in which training ended, alone
        ([1, 2, 3, 89, 90], 90, False),
        ([1, 2, 3, 90, 91, 92], 90, False),
        ([1, 2, 3, 1000], 100, False),
        ([1, 2, 3, 40, 41, 42, 60, 61], 90, False),
        ([1, 2, 3, 40, 41, 42, 60, 61, 62], 90, False),
        ([1, 2, 3, 40, 41, 42, 88, 89, 90], 90, False),
    ],
)
def test_no_recorded_step_is_missing(steps: list[int], trained: int, whole: bool) -> None:
    found = [step(step=each, seeded=None) for each in steps]
    (old,) = takes_steps(found, "fp32", trained)
    assert old.passed, "nobody knew of runs when it was examined"
    (check,) = takes_steps([each | {"unseen": None} for each in found], "fp32", trained)
    assert check.passed == whole
    assert whole or f"of its {trained} steps only {steps[0]}" in check.meaning


def test_steps_that_a_loss_scaler_skipped_show_nothing() -> None:
    assert not list(takes_steps([step(gradient=None, update=None, seeded=None)], "fp16"))
    assert not list(takes_steps([], "fp32"))


@pytest.mark.parametrize("steps, samples, passes", [(5, 21, True), (6, 22, True), (4, 16, True), (4, 20, False)])
def test_steps_and_samples_are_held_against_the_plan(steps: int, samples: int, passes: bool) -> None:
    """Eleven samples in batches of five: the third step of an epoch has one."""
    assert keeps_the_plan(steps, samples, items=11, global_batch=5).passed == passes


def test_what_is_verified_and_what_only_claimed() -> None:
    found = Examination(claimed=0.95, metric=0.95, weight=50.0, samples=40, of=50)
    held = tuple(map(passed, (CLOCK, OUTSIDE, PLAN)))
    by_name = {each.what: (each.verified, each.by) for each in standing(held, found, close=True)}
    assert by_name["time"] == (True, "the agent's clock")
    assert by_name["metric"] == (True, "the referee's process, from the last weights, on 40 samples drawn")
    assert by_name["samples"] == (False, "the ranks, as the plan has it for their steps")
    assert by_name["steps"] == by_name["initial weights"] == (False, "the ranks")
    (short,) = (each for each in standing(held, found) if each.what == "time")
    assert not short.verified
    assert short.by == "the ranks: the agent's clock does not tell their time to 2 % of it"
    refused = standing([passed(OUTSIDE, passed=False)], found, close=True)
    assert not any(each.verified for each in refused)


RECORDED = {"step": 2, "epoch": 0, "batch": 1}


def recorded(folder: Path) -> Replay:
    """The steps of a training of two epochs, recorded by its own rank."""
    trained(folder, HERE, audited=True)
    return Replay(Tokens(), CONFIG, TrainingSpec(("", ""), "", "", {}, str(folder), ()))


def test_recorded_steps_are_done_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "noderank0" / "own0"
    replay = recorded(tmp_path)
    found = done_again(replay, folder)
    assert [each.step for each in found] == [1, 2, 3, 4, 5, 6]
    assert all(each.gradient is not None and each.gradient < 1e-9 and each.noise == 0 for each in found)
    assert [each.seeded for each in found] == [True, *[None] * (len(found) - 1)]
    assert all(each.update is not None and each.update < 1e-9 for each in found)

    assert not any(each.rounding for each in found), "nobody asks where gradients are near"
    monkeypatch.setattr("proofmark.training.outside.replay.ROUNDED", {"fp32": -1.0})
    assert all(0 < each.rounding < 1e-4 for each in done_again(replay, folder))

    which = folder / STEP.format(2) / WHICH
    for content in (json.dumps(RECORDED | {"batch": 2}), json.dumps(RECORDED | {"epoch": -1}), "[]", "rubbish"):
        which.write_text(content)
        with pytest.raises(StepError, match="recorded-2/which.json"):
            list(replay.all(folder))
    which.write_text(json.dumps(RECORDED))
    far = folder / STEP.format(7)
    far.mkdir()
    (far / WHICH).write_text(json.dumps({"step": 7, "epoch": 2, "batch": 0}))
    with pytest.raises(StepError, match="recorded-7/which.json: .* is not among the training's 6 steps"):
        list(replay.all(folder))
    (far / WHICH).unlink()
    far.rmdir()
    save_file({"few": torch.zeros(10)}, folder / STEP.format(2) / BEFORE)
    assert done_again(replay, folder)[1].misfits


@pytest.mark.parametrize(
    "rows, expected",
    [
        (slice(None), "recorded-2: the weights that it begins with are not finite"),
        (None, "has gradients that are not"),
    ],
)
def test_a_step_of_no_finite_numbers_shows_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows: slice | None, expected: str
) -> None:
    folder = tmp_path / "noderank0" / "own0"
    replay = recorded(tmp_path)
    path = folder / STEP.format(2) / BEFORE
    before = read_left(path)
    before["1.weight"][rows or slice(None)] = math.nan if rows else 1e308
    save_file(before, path)
    with pytest.raises(StepError, match=expected):
        list(replay.all(folder))


def test_a_record_says_what_was_not_looked_at() -> None:
    seen, unseen = step(), step(step=2, update=None, unseen="it keeps other things")
    event = {"event": "examined", "metric": 0.95, "error": 0.0, "weight": 50.0, "samples": 50, "of": 50}
    found = [examination_of([{**event, "steps": steps}], {"metric": 0.95}) for steps in ([seen, unseen], [seen], [])]
    assert [each and (each.updates, each.unseen) for each in found] == [
        (1, "it keeps other things"),
        (1, None),
        (None, None),
    ]
    by_name = {each.what: each.by for each in standing([passed(REPLAYED)], found[0])}
    assert by_name["steps"].endswith("by some that were recorded; updates of some were not: it keeps other things")


def test_every_value_that_is_judged_is_held_against_the_weights() -> None:
    others = {
        "perplexity": {"metric": 9.0, "error": 0.0, "weight": 5.0},
        "shown": {"metric": 1.0, "error": 0.0, "weight": 5.0},
    }
    event = {
        "event": "examined",
        "metric": 0.95,
        "error": 0.0,
        "weight": 50.0,
        "samples": 50,
        "of": 50,
        "others": others,
    }
    said = {"metric": 0.95, "others": {"perplexity": 7.0, "shown": 99.0}}
    found = examination_of([event], said)
    top1, perplexity = examined(found, ["top1", "perplexity"], "fp32")
    assert top1.passed and not perplexity.passed
    assert perplexity.meaning.startswith("its perplexity is said to be 7; its weights have 9")
    (of_metric,) = (each for each in standing([top1, perplexity], found) if each.what == "metric")
    assert not of_metric.verified, "one of the two isn't borne out"
