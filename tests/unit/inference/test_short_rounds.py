"""The speed gate's rounds: an engine that was judged and answers otherwise from then on has no rates."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader

from proofmark.errors import StepError
from proofmark.inference.timing.bench import Bench, form_of
from proofmark.inference.timing.short import FullBatches, ShortRounds
from proofmark.measuring.drawn import drawn_anew
from proofmark.metric import Mean, Scoring
from proofmark.record.events.log import EventLog, read_events
from proofmark.rules.config import EffectiveConfig
from tests.unit.inference.cheating_engines import Answer, Data
from tests.unit.inference.test_honesty import scoring

pytestmark = pytest.mark.usefixtures("one_thread")

Engine = Callable[[list[torch.Tensor]], Answer]


class Timed:
    """Rounds of an engine that is honest until `turned`."""

    def __init__(self, folder: Path) -> None:
        self.data, self.turned = Data(1608), False
        config = EffectiveConfig("inference", "net", "embedded", "fake", {"warmup": 1}, {"precision": "fp32"})
        vendor: Any = SimpleNamespace(synchronize=lambda: None, runs_on_processor=True)
        loader, order = drawn_anew(self.data.loader)
        first, self.log = next(iter(self.data.loader))[0], EventLog(folder / "events.jsonl")
        self.bench = Bench(config, loader, first, scoring, vendor, self.log, lambda **_: None, order=order)
        self.bench.form, self.bench.accuracy = form_of(self.honest(first)[0]), 1.0

    @torch.no_grad()
    def honest(self, inputs: list[torch.Tensor]) -> Answer:
        return [self.data.model(inputs[0])], 0.0

    def rounds(self, then: Engine, reference: bool = True) -> ShortRounds:
        def engine(inputs: list[torch.Tensor]) -> Answer:
            return then(inputs) if self.turned else self.honest(inputs)

        return ShortRounds(self.bench, engine, self.honest if reference else None)

    def constant(self, inputs: list[torch.Tensor]) -> Answer:
        return [torch.ones(len(inputs[0]), 10)], 0.0

    @torch.no_grad()
    def remembers(self, inputs: list[torch.Tensor]) -> Answer:
        """Right for each sample of the data, by heart, and a constant for any other."""
        answer = self.data.model(inputs[0])
        for row, values in enumerate(inputs[0]):
            if values.numpy().tobytes() not in self.known:
                answer[row] = 1.0
        return [answer], 0.0

    def hurries(self, inputs: list[torch.Tensor]) -> Answer:
        """Right always, and much slower where it does not know the data: more than a busy machine hides."""
        if any(row.numpy().tobytes() not in self.known for row in inputs[0]):
            time.sleep(0.01)
        return self.honest(inputs)

    @property
    def known(self) -> set[bytes]:
        if not hasattr(self, "_known"):
            self._known = {row.numpy().tobytes() for row in self.data.dataset.tensors[0]}
        return self._known


def many(rounds: ShortRounds, times: int = 20) -> None:
    """Each looks at some rows, by chance."""
    for _ in range(times):
        rounds.time()


@pytest.fixture
def timed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Timed:
    monkeypatch.setattr("proofmark.inference.timing.short.SECONDS", 0.02)
    monkeypatch.setattr("proofmark.inference.timing.short.SETTLING", 0.0)
    return Timed(tmp_path)


def test_an_honest_engine_has_its_rates(timed: Timed) -> None:
    for reference in (True, False):
        rounds = timed.rounds(timed.honest, reference)
        timed.turned = True
        for _ in range(8):
            rounds.time()
    events = [event for event in read_events(timed.log.path) if event["event"] == "short_round"]
    assert len(events) == 16 and all(0 < each["core_ns"] <= each["whole_ns"] for each in events)
    assert all(each["items"] % 16 == 0 and each["items"] >= 48 for each in events)


@pytest.mark.parametrize("batches", [1, 3, 150])
def test_of_a_round_nothing_is_left_to_be_loaded(timed: Timed, batches: int) -> None:
    """Workers would load it beside the other side's turn, and the next round wait for it under its clock."""
    plain = timed.data.loader
    loader: Any = DataLoader(
        plain.dataset, batch_size=16, collate_fn=plain.collate_fn, num_workers=2, persistent_workers=True
    )
    drawn, order = drawn_anew(loader)
    for bench in (replace(timed.bench, loader=drawn, order=order), replace(timed.bench, loader=loader, order=None)):
        assert [len(inputs[0]) for inputs, _ in FullBatches(bench, batches)] == [16] * batches
    assert drawn._iterator._tasks_outstanding == 0  # type: ignore[attr-defined]
    loader._iterator = None


@pytest.mark.parametrize("way", ["constant", "remembers"])
def test_an_engine_that_answers_otherwise_once_it_is_judged_has_none(timed: Timed, way: str) -> None:
    rounds = timed.rounds(getattr(timed, way))
    rounds.time()
    timed.turned = True
    with pytest.raises(StepError, match="the target answers otherwise than the framework to the same inputs"):
        many(rounds)


def test_an_engine_that_has_learnt_the_data_has_none(timed: Timed) -> None:
    rounds = timed.rounds(timed.hurries)
    timed.turned = True
    with pytest.raises(StepError, match=r"fails 'no slower when fresh': .* inputs that nobody has seen take it longer"):
        many(rounds, times=100)


def test_a_rounds_first_batch_is_no_safer_to_know_by_heart_than_others(timed: Timed) -> None:
    """A round of a slow engine has three, and it sees where one begins."""
    begins = [False]

    def engine(inputs: list[torch.Tensor]) -> Answer:
        if not begins[0] or any(row.numpy().tobytes() not in timed.known for row in inputs[0]):
            time.sleep(0.01)
        begins[0] = False
        return timed.honest(inputs)

    vars(engine)["rest"] = lambda: begins.__setitem__(0, True)
    with pytest.raises(StepError, match=r"fails 'no slower when fresh'"):
        many(ShortRounds(timed.bench, engine), times=200)


def test_without_a_model_the_score_of_all_rounds_tells(timed: Timed) -> None:
    rounds = timed.rounds(timed.constant, reference=False)
    timed.turned = True
    with pytest.raises(StepError, match=r"the target scores 0\.\d+ in \d+ samples, where it was judged by 1\.0000"):
        many(rounds)


def test_what_few_samples_are_scored_by_is_judged_by_those(timed: Timed) -> None:
    """As recall: of the four positives a short round has none as a rule, or one that is missed."""
    (answers,), _ = timed.honest([timed.data.dataset.tensors[0]])
    ranked = answers.amax(-1).sort(descending=True).values
    least, missed = ranked[3:5].mean(), ranked[1:3].mean()

    def recall(outputs: list[torch.Tensor], targets: torch.Tensor) -> tuple[float, float]:
        highest = outputs[0].amax(-1)
        return float(((highest > least) & (highest < missed)).sum()), float((highest > least).sum())

    timed.bench.scoring = lambda: Scoring(Mean(recall))
    timed.bench.accuracy = 0.5
    for _ in range(20):
        timed.rounds(timed.honest, reference=False).time()


def test_a_side_rests_while_the_other_has_its_turn(tmp_path: Path) -> None:
    timed, rested = Timed(tmp_path), list[int]()

    def engine(inputs: list[torch.Tensor]) -> Answer:
        return timed.honest(inputs)

    vars(engine)["rest"] = lambda: rested.append(sum(1 for _ in read_events(timed.log.path)))
    rounds = ShortRounds(timed.bench, engine)
    for _ in range(2):
        rounds.time()
    assert rested == [0, 1, 2], "after it was loaded, and after each round"
