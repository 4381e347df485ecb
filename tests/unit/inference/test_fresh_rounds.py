"""Timed rounds with fresh batches among the data's, by a clock that only work moves."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from proofmark.inference.outcome.rounds import full_batches
from proofmark.inference.timing.bench import Bench
from proofmark.inference.timing.measure import measure
from proofmark.measuring.drawn import drawn_anew
from proofmark.measuring.fresh_pace import fresh_pace
from proofmark.measuring.mixed import FEW, Mixed
from proofmark.measuring.pace import GRACE
from proofmark.measuring.probes import splice
from proofmark.monitoring.contention import ContentionMeter
from proofmark.record.events.log import Event, EventLog, read_events
from proofmark.record.parts import Check, Contention
from proofmark.rules.config import EffectiveConfig
from tests.unit.inference.cheating_engines import Answer, Data
from tests.unit.inference.test_honesty import scoring

ITEMS, WORK = 1608, 0.002
"""Seconds that a batch of 16 takes."""

pytestmark = pytest.mark.usefixtures("one_thread")


class Measured:
    """An engine in three timed rounds of a hundred batches."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.data = Data(ITEMS)
        self._clock, self._folder = 0, folder
        monkeypatch.setattr("proofmark.measuring.window.time.perf_counter_ns", lambda: self._clock)
        monkeypatch.setattr("proofmark.inference.timing.honesty_round.SECOND_CHANCES", 0)
        monkeypatch.setattr("proofmark.inference.timing.honesty_round.APPEALS", 1)
        monkeypatch.setattr(ContentionMeter, "seen", lambda self: Contention(others=0.0, stolen=0.0, idle=0.1))
        self.samples = {row.numpy().tobytes() for row in self.data.dataset.tensors[0]}

    def take(self, seconds: float) -> None:
        self._clock += round(seconds * 1e9)

    @torch.no_grad()
    def answer(self, inputs: list[torch.Tensor]) -> list[torch.Tensor]:
        return [self.data.model(inputs[0])]

    def knows(self, share: float) -> Callable[[list[torch.Tensor]], Answer]:
        """An engine that computes what it has not learnt by heart."""
        known = set(sorted(self.samples)[: round(share * len(self.samples))])

        def engine(inputs: list[torch.Tensor]) -> Answer:
            new = sum(row.numpy().tobytes() not in known for row in inputs[0])
            self.take(WORK * new / len(inputs[0]))
            return self.answer(inputs), 0.0

        return engine

    def events(
        self, engine: Callable[[list[torch.Tensor]], Answer], beside: bool = False, repeat: int = 3
    ) -> list[Event]:
        config = EffectiveConfig(
            "inference",
            "net",
            "embedded",
            "fake",
            {"warmup": 1},
            {"precision": "fp32", "fp16": False, "log_freq": 1000},
        )
        vendor: Any = SimpleNamespace(
            synchronize=lambda: None, memory=lambda: (None, None), runs_on_processor=not beside
        )
        log = EventLog(self._folder / "events.jsonl")
        loader, order = drawn_anew(self.data.loader)
        first = next(iter(self.data.loader))[0]
        bench = Bench(config, loader, first, scoring, vendor, log, lambda **_: None, order=order)
        reference = lambda inputs: (self.answer(inputs), 0.0)  # noqa: E731
        measure(bench, "engine", engine, repeat, probed=True, reference=reference)
        return list(read_events(log.path))


@pytest.fixture
def measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Measured:
    return Measured(tmp_path, monkeypatch)


def rounds(events: list[Event]) -> list[Event]:
    return [event for event in events if event["event"] == "round"]


def paced(events: list[Event]) -> Check:
    check = fresh_pace([full_batches(event) for event in rounds(events)])
    assert check is not None
    return check


def accusations(events: list[Event]) -> list[str]:
    return [event["what"] for event in events if event["event"] == "dishonest"]


def test_an_honest_engine_answers_and_scores_every_sample(measured: Measured) -> None:
    events = measured.events(measured.knows(0.0))
    assert accusations(events) == [] and paced(events).passed
    for event in rounds(events):
        assert event["accuracy"] == 1.0 and len(event["batch_ns"]) == 101
        assert event["items"] == ITEMS + event["filled"] == 101 * 16
        assert 0 < len(event["fresh"]) <= 2 * FEW
        assert event["full"] == 101 and len(event["seeds"]) == 1
    places = [tuple(event["fresh"]) for event in rounds(events)]
    assert len(set(places)) == 3, "they are drawn for each round"
    (check,) = [event for event in events if event.get("name") == "answers alike when timed"]
    assert check["passed"] and check["figure"] < 1e-5


def test_an_engine_that_the_referees_own_work_slows_is_not_accused(
    measured: Measured, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It takes half as long again right after inputs were spliced, a fresh one's call as likely as another."""
    done: list[bool] = []
    monkeypatch.setattr("proofmark.measuring.mixed.splice", lambda *given: done.append(True) or splice(*given))

    def engine(inputs: list[torch.Tensor]) -> Answer:
        measured.take(WORK * (1.5 if done else 1.0))
        done.clear()
        return measured.answer(inputs), 0.0

    check = paced(measured.events(engine))
    assert check.passed and check.figure == pytest.approx(WORK / (WORK + GRACE), rel=0.15)


def test_knowing_a_fifth_of_the_data_is_found(measured: Measured) -> None:
    check = paced(measured.events(measured.knows(0.2)))
    assert not check.passed and check.figure == pytest.approx(WORK / (WORK * 0.8 + GRACE), rel=0.03)


def test_a_short_batch_is_asked_for_by_itself_and_scored(measured: Measured) -> None:
    """Once in each round, untimed: an engine that was built for one size is wrong there."""

    def engine(inputs: list[torch.Tensor]) -> Answer:
        measured.take(WORK)
        (answer,) = measured.answer(inputs)
        return [answer if len(answer) == 16 else -answer], 0.0

    for event in rounds(measured.events(engine)):
        assert event["accuracy"] == pytest.approx(1 - 8 / ITEMS)


def test_answering_by_heart_right_after_a_fresh_batch_is_found(measured: Measured) -> None:
    """Where one of the data's comes, so that no fresh one is ever quick; it computes what comes elsewhere."""
    after = [False]

    def engine(inputs: list[torch.Tensor]) -> Answer:
        fresh = sum(row.numpy().tobytes() in measured.samples for row in inputs[0]) < len(inputs[0]) / 2
        measured.take(WORK / 100 if after[0] and not fresh else WORK)
        after[0] = fresh
        return measured.answer(inputs), 0.0

    check = paced(measured.events(engine, repeat=6))
    assert not check.passed and check.figure == pytest.approx(1.3, abs=0.2)


@pytest.mark.parametrize("beside", [False, True])
def test_no_call_shows_by_its_size_that_it_is_not_a_fresh_one(
    measured: Measured, monkeypatch: pytest.MonkeyPatch, beside: bool
) -> None:
    """Where half a batch is left of a pass, an engine could know half of that by heart."""
    timed, untimed = set[int](), set[int]()
    whole = Mixed.__iter__

    def watched(mixed: Mixed) -> Iterator[Any]:
        for batch in whole(mixed):
            timed.add(len(batch[0][0]))
            yield batch

    monkeypatch.setattr(Mixed, "__iter__", watched)

    def engine(inputs: list[torch.Tensor]) -> Answer:
        untimed.add(len(inputs[0]))
        measured.take(WORK)
        return measured.answer(inputs), 0.0

    events = measured.events(engine, beside)
    assert accusations(events) == [] and timed == {16} and untimed == {8, 16}
    loaded = [event["items"] for event in events if event["event"] == "loader"]
    assert len(loaded) == 3 and not any(items % 16 for items in loaded), "the loader alone has batches as rounds have"
    assert beside == any(event["event"] == "alone" for event in events)


def test_waiting_until_just_under_the_old_bound_is_found(measured: Measured) -> None:
    """It knows all by heart, and takes its time: 20 % faster than it computes."""

    def engine(inputs: list[torch.Tensor]) -> Answer:
        known = all(row.numpy().tobytes() in measured.samples for row in inputs[0])
        measured.take(WORK / 1.2 if known else WORK)
        return measured.answer(inputs), 0.0

    assert not paced(measured.events(engine)).passed


def test_garbage_for_what_it_does_not_know_is_found(measured: Measured) -> None:
    """Quick and wrong where it is not in the data."""

    def engine(inputs: list[torch.Tensor]) -> Answer:
        known = all(row.numpy().tobytes() in measured.samples for row in inputs[0])
        measured.take(WORK)
        return (measured.answer(inputs) if known else [torch.zeros(len(inputs[0]), 10)]), 0.0

    found = accusations(measured.events(engine))
    assert any("fails 'answers alike when timed'" in each for each in found), found
