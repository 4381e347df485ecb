"""Cheating engines, each right in every batch of the data and caught all the same; honest ones are never accused."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from proofmark.errors import StepError
from proofmark.inference.timing.bench import Bench
from proofmark.inference.timing.honesty_round import HonestyRound
from proofmark.inference.timing.measure import measure
from proofmark.measuring.honesty import probe
from proofmark.measuring.precision import perturbed
from proofmark.metric import Mean, Scoring
from proofmark.monitoring.contention import ContentionMeter
from proofmark.record.events.log import EventLog, read_events
from proofmark.record.parts import Contention
from proofmark.rules.config import EffectiveConfig
from tests.unit.inference.cheating_engines import WORK, Answer, Cheats, Data

pytestmark = pytest.mark.usefixtures("one_thread")


def evaluator(outputs: list[torch.Tensor], targets: torch.Tensor) -> tuple[float, float]:
    return float((outputs[0].argmax(-1) == targets).sum()), float(len(targets))


def scoring() -> Scoring:
    return Scoring(Mean(evaluator))


def bench_of(data: Data, tmp_path: Path, synchronize: Callable[[], None] = lambda: None) -> Bench:
    config = EffectiveConfig(
        "inference", "net", "embedded", "fake", {"warmup": 1}, {"precision": "fp32", "fp16": False, "log_freq": 100}
    )
    vendor: Any = SimpleNamespace(synchronize=synchronize, memory=lambda: (None, None), runs_on_processor=True)
    log = EventLog(tmp_path / "events.jsonl")
    first = next(iter(data.loader))[0]
    return Bench(config, data.loader, first, scoring, vendor, log, lambda **_: None)


def measured(
    data: Data,
    engine: Callable[[list[torch.Tensor]], Answer],
    tmp_path: Path,
    synchronize: Callable[[], None] = lambda: None,
    with_model: bool = True,
) -> tuple[list[str], list[float]]:
    """What the engine is accused of, and its accuracy in each round."""

    def reference(inputs: list[torch.Tensor]) -> Answer:
        with torch.no_grad():
            return [data.model(inputs[0])], 0.0

    bench = bench_of(data, tmp_path, synchronize)
    measure(bench, "framework", reference, 1)
    measure(bench, "engine", engine, 3, probed=True, reference=reference if with_model else None)
    events = list(read_events(bench.log.path))
    accusations = [event["what"] for event in events if event["event"] == "dishonest"]
    return accusations, [e["accuracy"] for e in events if e["event"] == "round" and e["of"] == "engine"]


EXPECTED = {
    "computes_in_fp16": "answers new inputs",
    "keeps_its_weights_in_fp16": "answers new inputs",
    "knows_when_it_is_timed": "no faster when timed",
    "computes_the_first_rows_only": "answers new inputs",
    "looks_up_the_short_batch": "answers new inputs",
    "caches_outputs": "no memorised data",
    "knows_the_data_by_heart": "no memorised data",
    "answers_one_probe_with_garbage": "answers new inputs",
    "ignores_its_input": "answers new inputs",
    "answers_the_previous_batch": "answers new inputs",
    "skips_samples": "answers new inputs",
    "returns_before_the_device_is_done": "waits for its device",
    "answers_nan": "answers NaN",
    "answers_more_columns": "another form",
    "answers_integers": "another form",
    "writes_into_its_input": "leaves its inputs alone",
    "reports_foo_time": "foo_time",
    "reports_negative_foo_time": "foo_time",
    "sleeps_inside_foo_time": "foo_time",
    "recognises_repeated_data": "no cached answers",
}

BY_PACE = (
    "knows_when_it_is_timed",
    "caches_outputs",
    "knows_the_data_by_heart",
    "returns_before_the_device_is_done",
    "reports_foo_time",
    "sleeps_inside_foo_time",
    "recognises_repeated_data",
)
"""They are found by how long they take; the others by what they answer."""


@pytest.fixture(autouse=True)
def the_honesty_round_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """One second chance, and no fresh batches in the timed rounds, which are in test_fresh_rounds.py."""
    monkeypatch.setattr("proofmark.measuring.mixed.MOST", 0)
    monkeypatch.setattr("proofmark.inference.timing.honesty_round.SECOND_CHANCES", 1)
    monkeypatch.setattr(ContentionMeter, "seen", lambda self: Contention(others=0.0, stolen=0.0, idle=0.1))


@pytest.mark.parametrize(
    "cheat, accusation",
    [pytest.param(*each, marks=[pytest.mark.quiet] if each[0] in BY_PACE else []) for each in EXPECTED.items()],
)
def test_a_cheating_engine_is_caught(cheat: str, accusation: str, tmp_path: Path) -> None:
    data = Data()
    accusations, _ = measured(data, getattr(Cheats, cheat)(data), tmp_path)
    assert any(accusation in line for line in accusations), accusations


def test_an_answer_of_another_form_is_told_before_anything_is_timed(tmp_path: Path) -> None:
    data = Data()
    with pytest.raises(StepError, match=r"the engine answers in another form than expected: float \(batch, \d+\), not"):
        measured(data, Cheats.answers_more_columns(data, warm=0), tmp_path)


@pytest.mark.quiet
def test_knowing_just_under_half_of_the_data_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By a clock that only work moves: its middling batch takes as long as an honest engine's."""
    clock = [0]
    monkeypatch.setattr("proofmark.measuring.window.time.perf_counter_ns", lambda: clock[0])
    data = Data(328)
    data.take = lambda seconds: clock.__setitem__(0, clock[0] + round(seconds * 1e9))
    accusations, _ = measured(data, Cheats.knows_nearly_half_of_the_data(data), tmp_path)
    assert any("no faster when timed" in line for line in accusations), accusations
    events = list(read_events(tmp_path / "events.jsonl"))
    batches = [event["batch_ns"] for event in events if event["event"] == "round" and event["of"] == "engine"]
    assert {sorted(each)[len(each) // 2] for each in batches} == {round(WORK * 1e9)}


@pytest.mark.quiet
def test_an_engine_whose_machine_becomes_busy_is_not_accused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor has it a speed: it may be one that is fast until it meets something new."""
    last = SimpleNamespace(randint=lambda first, last: last)  # where the honesty round comes
    monkeypatch.setattr("proofmark.inference.timing.measure.random", SimpleNamespace(SystemRandom=lambda: last))
    data = Data()
    known = {batch[0][0].numpy().tobytes() for batch in data.loader}
    busy: list[bool] = []

    def engine(inputs: list[torch.Tensor]) -> Answer:
        if busy or (len(inputs[0]) == 16 and inputs[0].numpy().tobytes() not in known):
            busy.append(True)
            time.sleep(WORK)
        return data.honest(inputs)

    accusations, accuracies = measured(data, engine, tmp_path)
    assert not accusations and len(accuracies) == 3
    lines = [event["what"] for event in read_events(tmp_path / "events.jsonl") if event["event"] == "disturbed"]
    assert any(re.fullmatch(r"timed again, the engine took \S+ ms a batch instead of \S+ ms", each) for each in lines)


@pytest.mark.quiet
def test_on_a_crowded_machine_nobody_is_accused_of_being_slow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ContentionMeter, "seen", lambda self: Contention(others=0.3, stolen=0.0, idle=0.1))
    data = Data()
    accusations, _ = measured(data, Cheats.knows_when_it_is_timed(data), tmp_path)
    events = list(read_events(tmp_path / "events.jsonl"))
    (message,) = (event["what"] for event in events if event["event"] == "disturbed")
    assert not accusations and message.startswith("other processes took 30% of the cores while the engine took ")
    (check,) = (event for event in events if event["event"] == "check" and event["name"] == "no faster when timed")
    assert check["passed"] and check["bound"] is None and check["figure"] > 1.25


class Waiting:
    """An engine whose threads wait for its next call on the processor until it is held still: another beside it takes
    twice as long."""

    def __init__(self, model: torch.nn.Module, beside: list[Waiting]) -> None:
        self._model, self._beside, self._waits = model, beside, False
        beside.append(self)

    def __call__(self, inputs: list[torch.Tensor]) -> Answer:
        self._waits = True
        time.sleep(WORK * sum(each._waits for each in self._beside))
        with torch.no_grad():
            return [self._model(inputs[0])], 0.0

    def rest(self) -> None:
        self._waits = False


@pytest.mark.quiet
def test_one_that_is_audited_rests_while_another_is_held_to_its_pace(tmp_path: Path) -> None:
    data, beside = Data(), list[Waiting]()
    bench, other = bench_of(data, tmp_path), perturbed(data.model, 0)
    engine = Waiting(data.model, beside)
    timing = measure(bench, "engine", engine, 3, probed=True)
    HonestyRound(bench, "engine", engine, None).audit(Waiting(other, beside), Waiting(other, []), timing)
    assert not [event for event in read_events(bench.log.path) if event["event"] in ("disturbed", "dishonest")]


@pytest.mark.quiet
@pytest.mark.parametrize("cheat", ["answers_the_previous_batch", "caches_outputs", "skips_samples"])
def test_without_a_model_it_is_caught_too(cheat: str, tmp_path: Path) -> None:
    data = Data()
    accusations, _ = measured(data, getattr(Cheats, cheat)(data), tmp_path, with_model=False)
    assert accusations


def test_every_cheat_is_expected_somewhere() -> None:
    assert {*EXPECTED, "knows_nearly_half_of_the_data"} == {name for name in vars(Cheats) if not name.startswith("_")}


def test_an_engine_that_is_right_only_at_first_is_as_good_as_its_worst_round(tmp_path: Path) -> None:
    data, calls = Data(), {"count": 0}

    def engine(inputs: list[torch.Tensor]) -> Answer:
        calls["count"] += 1
        answer = data.honest(inputs)[0][0]
        return [answer if calls["count"] < 10 else -answer], 0.0

    _, accuracies = measured(data, engine, tmp_path)
    assert min(accuracies) < 0.5


@pytest.mark.quiet
def test_an_asynchronous_device_that_is_waited_for_is_honest(tmp_path: Path) -> None:
    data, running = Data(), []

    def engine(inputs: list[torch.Tensor]) -> Answer:
        answer = torch.empty(len(inputs[0]), 10)

        def device() -> None:
            time.sleep(WORK)
            with torch.no_grad():
                answer.copy_(data.model(inputs[0]))

        running.append(threading.Thread(target=device))
        running[-1].start()
        return [answer], 0.0

    def synchronize() -> None:
        while running:
            running.pop().join()

    accusations, accuracies = measured(data, engine, tmp_path, synchronize)
    assert not accusations
    assert accuracies == [1.0, 1.0, 1.0]


@pytest.mark.quiet
def test_honest_engines_are_never_accused() -> None:
    """200 honesty rounds, at three precisions and with noise of the kind that a busy machine makes."""
    data, chance = Data(), torch.Generator().manual_seed(1)

    def compute(dtype: torch.dtype) -> Callable[[list[torch.Tensor]], Answer]:
        model = torch.nn.Linear(32, 10)
        model.load_state_dict(data.model.state_dict())
        model.to(dtype)

        @torch.no_grad()
        def engine(inputs: list[torch.Tensor]) -> Answer:
            time.sleep(float(torch.rand(1, generator=chance)) * 4e-4)
            return [model(inputs[0].to(dtype))], 0.0

        return engine

    for precision, dtype in (("fp32", torch.float32), ("bf16", torch.bfloat16), ("fp16", torch.float16)):
        for _ in range(70):
            checks, *_ = probe(data.loader, compute(dtype), lambda: None, compute(torch.float32), precision)
            assert [check for check in checks if not check.passed] == []
