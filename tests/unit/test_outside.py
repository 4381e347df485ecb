"""What ranks leave is evaluated in a process without a vendor's code, and held against what they claim."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch

from proofmark.errors import StepError
from proofmark.record.events import EventLog, read_events
from proofmark.rules.config import EffectiveConfig
from proofmark.training.checks import OUTSIDE, as_good
from proofmark.training.event_types import AGENT_EVENTS
from proofmark.training.logs.outside import examination_of, examined
from proofmark.training.outside import metric
from proofmark.training.outside.examination import examine
from proofmark.training.outside.left import leave_weights, read_left
from proofmark.training.outside.metric import evaluated, filled
from proofmark.training.ranks.model.own import named_weights
from proofmark.training.ranks.model.strategy import Place
from proofmark.training.spec import WEIGHTS, TrainingSpec
from tests.unit.tokens import Tokens

HERE = Place(0, 0, 1, torch.device("cpu"))
CONFIG = EffectiveConfig("training", "tokens", "embedded", "acme", {}, {"eval_batch_size": 4, "precision": "fp32"})


@pytest.mark.parametrize(
    "claimed, found, weight, error, passes",
    [
        (0.95, 0.95, 100, 0.0, True),
        (0.95, 0.935, 100, 0.0, True),  # two samples that are rounded otherwise
        (0.95, 0.9, 100, 0.0, False),
        (0.5, 0.99, 100, 0.0, False),  # better weights than those that were trained
        (0.95, 0.9, 100, 0.01, True),  # of some of the data
        (0.95, math.nan, 100, 0.0, False),
    ],
)
def test_a_claimed_metric_is_held_against_the_weights(
    claimed: float, found: float, weight: float, error: float, passes: bool
) -> None:
    check = as_good("top1", claimed, found, weight, error, "fp32")
    assert (check.name, check.passed) == (OUTSIDE, passes)


def test_weights_are_evaluated_on_all_data_or_on_some(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    case = Tokens()
    leave_weights(case.create_model(CONFIG), HERE, tmp_path)
    model, wrong = filled(case, CONFIG, read_left(tmp_path / WEIGHTS))
    assert not wrong and not model.training
    whole = evaluated(model, case, CONFIG, whole=True)
    assert (whole.samples, whole.of, whole.error) == (11, 11, 0.0) and whole.weight == 15
    monkeypatch.setattr(metric, "DRAWN", 8)
    monkeypatch.setattr(metric, "ROWS", 2)
    some = [evaluated(model, case, CONFIG, whole=False) for _ in range(20)]
    assert {(found.samples, found.of) for found in some} == {(8, 11)}
    assert any(found.error > 0 for found in some)
    assert all(abs(found.metric - whole.metric) <= 4 * found.error + 2 / found.weight for found in some)


def test_weights_that_do_not_fit_are_named() -> None:
    case = Tokens()
    weights = {**named_weights(case.create_model(CONFIG)), "few": torch.zeros(10)}
    weights["1.bias"] = torch.zeros(1)
    assert filled(case, CONFIG, weights)[1] == ["1.bias", "few"]


@pytest.mark.parametrize("content, told", [(None, "left no"), (b"rubbish", "can't be read")])
def test_what_is_not_there_or_no_weights_is_said(tmp_path: Path, content: bytes | None, told: str) -> None:
    if content is not None:
        (tmp_path / WEIGHTS).write_bytes(content)
    with pytest.raises(StepError, match=told):
        read_left(tmp_path / WEIGHTS)


def test_a_process_of_its_own_examines_what_was_left(tmp_path: Path) -> None:
    config = CONFIG.as_dict()
    spec = TrainingSpec(("tests.unit.tokens", "Tokens"), "nobody", "", config, str(tmp_path), ())
    spec.save(tmp_path / "spec.json")
    folder = spec.node_directory(0)
    folder.mkdir()
    log = EventLog(folder / "agent.jsonl")
    weights = Tokens().create_model(CONFIG)
    leave_weights(weights, HERE, folder)
    examine(tmp_path / "spec.json", spec, 0, log)
    examine(tmp_path / "spec.json", spec, 0, log)
    first, second = read_events(folder / "agent.jsonl", AGENT_EVENTS)
    found = examination_of([first], 0.9)
    assert found and found.whole and found.metric == evaluated(weights.eval(), Tokens(), CONFIG, whole=True).metric
    (check,) = examined(found, "top1", "fp32")
    assert not check.passed and "0.9; its weights have" in check.meaning
    assert "rank 0 left no final.safetensors" in second["reason"]
    missing = examination_of([second], 0.9)
    assert not list(examined(missing, "top1", "fp32")), "what could not be looked at accuses nobody"
