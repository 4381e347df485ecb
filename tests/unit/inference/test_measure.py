"""How long a measurement lasts, when it is repeated, and what is measured beside it."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from proofmark.errors import StepError
from proofmark.inference.outcome.rounds import measurement_of
from proofmark.inference.timing import timing
from proofmark.inference.timing.bench import Bench
from proofmark.inference.timing.measure import measure
from proofmark.inference.timing.timing import LEAST_BATCHES, SEED_BYTES, TIME_BYTES
from proofmark.measuring.audible_loader import AudibleLoader
from proofmark.metric import Mean, Scoring
from proofmark.record.events.log import Event, EventLog, read_events
from proofmark.rules.config import EffectiveConfig
from tests.unit.inference.test_loop import Loader, engine, evaluate

SECONDS = 0.002
"""That the device takes for a batch."""


def slow(inputs: list[torch.Tensor]) -> tuple[list[torch.Tensor], float]:
    time.sleep(SECONDS)
    return engine(inputs)


class Work:
    """A clock of windows that only work moves: how long the machine takes for it decides nothing."""

    def __init__(self) -> None:
        self.ns = 0

    def does(self, seconds: float) -> None:
        self.ns += round(seconds * 1e9)

    def slow(self, inputs: list[torch.Tensor]) -> tuple[list[torch.Tensor], float]:
        self.does(SECONDS)
        return engine(inputs)


@pytest.fixture
def work(monkeypatch: pytest.MonkeyPatch) -> Work:
    made = Work()
    monkeypatch.setattr("proofmark.measuring.window.time", SimpleNamespace(perf_counter_ns=lambda: made.ns))
    return made


class Measured:
    """A made-up case to measure, and what was written down."""

    def __init__(self, tmp_path: Path, runs_on_processor: bool = True, **configurations: Any) -> None:
        self.log = EventLog(tmp_path / "events.jsonl")
        self.notes: list[str] = []
        self.loader: Any = Loader(40, 4)
        vendor: Any = SimpleNamespace(
            synchronize=lambda: None, memory=lambda: (None, None), runs_on_processor=runs_on_processor
        )
        config = EffectiveConfig(
            "inference",
            "net",
            "embedded",
            "fake",
            {"warmup": 1, "max_noise": 1e6},
            {"precision": "fp32", "fp16": False, "log_freq": 1000, "min_seconds": 0.0, **configurations},
        )
        first = next(iter(self.loader))[0]
        report: Callable[..., None] = lambda **figures: self.notes.append(figures.get("note", ""))  # noqa: E731
        self.bench = Bench(config, self.loader, first, lambda: Scoring(Mean(evaluate)), vendor, self.log, report)

    def events(self, kind: str) -> list[Event]:
        """Those of a kind."""
        return [event for event in read_events(self.log.path) if event["event"] == kind]


class Batches(list[Any]):
    """A loader of these."""

    @property
    def dataset(self) -> Any:
        return range(sum(len(targets) for _, targets in self))


def test_a_round_lasts_by_as_many_passes_as_that_takes(tmp_path: Path) -> None:
    case = Measured(tmp_path, min_seconds=0.1)
    measure(case.bench, "engine", slow, 2)
    rounds = case.events("round")
    assert [event["number"] for event in rounds] == [1, 2]
    for event in rounds:
        assert sum(event["batch_ns"]) >= 0.1e9
        assert event["items"] == 40 * event["passes"] and len(event["batch_ns"]) == 10 * event["passes"]
        assert event["weight"] == 40
    assert all(event["seconds"] >= 0.1 for event in case.events("loader"))


def test_a_target_rests_while_the_loader_is_timed(tmp_path: Path) -> None:
    """Whatever it did meanwhile would slow down what is not its own."""
    case, rested = Measured(tmp_path), list[int]()

    def target(inputs: list[torch.Tensor]) -> tuple[list[torch.Tensor], float]:
        return engine(inputs)

    vars(target)["rest"] = lambda: rested.append(len(case.events("loader")))
    measure(case.bench, "engine", target, 3)
    assert rested == [0, 1, 2]


def test_a_framework_that_answers_in_the_same_memory_is_accused_of_nothing(tmp_path: Path) -> None:
    """As one does that returns an input, or a constant, beside its answer: answers are copied under the clock."""
    case, anchors = Measured(tmp_path, warmup=2), torch.ones(1, 3)

    def framework(inputs: list[torch.Tensor]) -> tuple[list[torch.Tensor], float]:
        return [inputs[0] * 2, inputs[0], anchors.expand(len(inputs[0]), -1)], 0.0

    measure(case.bench, "framework", framework, 2)
    assert case.events("dishonest") == [] and [event["accuracy"] for event in case.events("round")] == [1, 1]


@pytest.mark.parametrize(
    "shapes, unlike",
    [([(4, 8), (4, 6)], "(4, 6)"), ([(4, 8), (2, 8), (4, 8)], "after a short"), ([(4, 8), (6, 8)], "(6")],
)
def test_of_batches_that_are_not_alike_the_loader_is_named_and_nobody_accused(
    tmp_path: Path, shapes: list[tuple[int, int]], unlike: str
) -> None:
    """As of one that pads each to its own longest, or has a sampler that makes them of as many tokens."""
    case = Measured(tmp_path)
    batches = Batches([([torch.ones(shape)], torch.ones(shape[0])) for shape in shapes])
    case.bench.first = [torch.ones(4, 8)]
    case.bench.loader = AudibleLoader(batches, case.bench.report, case.bench.first)
    with pytest.raises(StepError, match=re.escape(unlike)) as raised:
        measure(case.bench, "framework", engine, 1)
    assert str(raised.value).startswith("build_dataloader: a batch is ") and case.events("dishonest") == []


@pytest.mark.parametrize("runs_on_processor, alone", [(True, 2), (False, 1)])
def test_the_loader_alone_has_as_many_threads_as_it_has_in_a_round(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, runs_on_processor: bool, alone: int
) -> None:
    """Else a round that loads with all of them is faster than what it waits for."""
    case = Measured(tmp_path, runs_on_processor)
    seen: dict[tuple[int, int], set[int]] = {}

    class Counting(Loader):
        def __iter__(self) -> Any:
            for batch in super().__iter__():
                edges = len(case.events("round_begin")), len(case.events("round_end"))
                seen.setdefault(edges, set()).add(torch.get_num_threads())
                yield batch

    case.bench.loader = Counting(40, 4)  # type: ignore[assignment]
    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        measure(case.bench, "framework", engine, 1)
    finally:
        torch.set_num_threads(threads)
    assert seen[0, 0] == seen[1, 0] == {alone}


def test_a_round_has_enough_batches_to_hold_fresh_ones_against_others(tmp_path: Path) -> None:
    """However long one takes: the vendor chooses how large they are."""
    case = Measured(tmp_path, min_seconds=0.001)
    measure(case.bench, "engine", slow, 2, reference=engine)
    for event in case.events("round"):
        assert event["passes"] == 3 and len(event["batch_ns"]) >= LEAST_BATCHES and event["fresh"]


def test_a_round_that_turns_out_too_short_does_not_count(tmp_path: Path, work: Work) -> None:
    """The engine's first calls take a hundred times as long as the later ones: too few passes are planned."""
    calls: list[int] = []

    def warms_up(inputs: list[torch.Tensor]) -> tuple[list[torch.Tensor], float]:
        calls.append(1)
        work.does(100 * SECONDS if len(calls) < 2 else SECONDS)
        return engine(inputs)

    case = Measured(tmp_path, min_seconds=0.5)
    measure(case.bench, "engine", warms_up, 1)
    (event,) = case.events("round")
    assert sum(event["batch_ns"]) >= 0.5e9 and event["passes"] > 1
    assert len(calls) > 1 + len(event["batch_ns"]), "a shorter round was run and left out"


def test_a_round_has_no_more_batches_than_the_log_has_room_for(
    tmp_path: Path, work: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where first calls tell of very many passes, as many as there is room for may be long enough."""
    monkeypatch.setattr(timing, "MARGIN", 1e6)
    monkeypatch.setattr(timing, "ROOM", 4 * (10 * TIME_BYTES + SEED_BYTES))
    case = Measured(tmp_path, min_seconds=0.03)
    measure(case.bench, "engine", work.slow, 1)
    (event,) = case.events("round")
    assert event["passes"] == 4 and len(event["batch_ns"]) == 40


@pytest.mark.parametrize("passes, seconds", [(4, 1.0), (0, 0.0)])
def test_a_round_that_would_need_more_batches_than_that_is_refused(
    tmp_path: Path, work: Work, monkeypatch: pytest.MonkeyPatch, passes: int, seconds: float
) -> None:
    monkeypatch.setattr(timing, "ROOM", passes * (10 * TIME_BYTES + SEED_BYTES))
    case = Measured(tmp_path, min_seconds=seconds)
    expected = rf"a round of {seconds:g} s has more batches than .*: set a larger batch_size, or a smaller min_seconds"
    with pytest.raises(StepError, match=expected):
        measure(case.bench, "engine", work.slow, 1)
    assert not case.events("round")


def test_what_the_loader_does_is_measured_before_each_round(tmp_path: Path) -> None:
    case = Measured(tmp_path)
    measure(case.bench, "engine", slow, 3)
    assert [event["items"] for event in case.events("loader")] == [40, 40, 40]
    order = [event["event"] for event in read_events(case.log.path) if event["event"] in ("loader", "round")]
    assert order == ["loader", "round"] * 3


@pytest.mark.parametrize(
    "disturbed, ranked, measured", [(1, True, 2), (2, True, 3), (3, True, 3), (3, False, 1), (0, True, 1)]
)
def test_a_disturbed_measurement_is_made_anew_and_no_more_than_three_times(
    disturbed: int, ranked: bool, measured: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = iter([["rounds scatter"]] * disturbed + [[]] * 3)
    monkeypatch.setattr("proofmark.inference.timing.measure.noise_of", lambda *_: next(left))
    case = Measured(tmp_path)
    measure(case.bench, "engine", slow, 2, ranked=ranked)
    assert [event["attempt"] for event in case.events("round")] == [0, 0, 1, 1, 2, 2][: 2 * measured]
    again = [(event["of"], event["what"]) for event in case.events("repeated")]
    assert again == [("engine", ["rounds scatter"])] * (measured - 1)
    assert case.notes.count("measuring again: rounds scatter") == measured - 1


@pytest.mark.usefixtures("tidied")
@pytest.mark.parametrize(
    "on_processor, workers, alone", [(True, 0, False), (True, 1, True), (False, 0, True), (False, 1, True)]
)
def test_what_was_loaded_beside_the_core_is_held_against_the_core_alone(
    on_processor: bool, workers: int, alone: bool, tmp_path: Path
) -> None:
    case = Measured(tmp_path, on_processor, num_workers=workers)
    measure(case.bench, "engine", slow, 2)
    found = case.events("alone")
    assert len(found) == alone
    measured = measurement_of(
        case.events("round"), case.events("loader"), warmup_batches=0, warmup_seconds=0.0,
        core_alone=found[0]["items_per_second"] if found else None,
    )  # fmt: skip
    assert measured is not None and (measured.core_lost is not None) == alone
    if alone:
        assert 0 < found[0]["items_per_second"] <= 4 / SECONDS
