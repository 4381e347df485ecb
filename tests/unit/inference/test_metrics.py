"""Metrics that are no mean: torchmetrics' as they are, one's own, of several values, in both suites."""

from __future__ import annotations

import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from proofmark.errors import StepError
from proofmark.inference.timing.bench import Bench
from proofmark.inference.timing.loop import timed_round
from proofmark.inference.timing.measure import measure
from proofmark.inference.timing.scored import RoundMetric
from proofmark.inference.timing.short import ShortRounds
from proofmark.measuring.drawn import drawn_anew
from proofmark.measuring.mixed import Mixed
from proofmark.metric import Mean, Scoring
from proofmark.record.events.log import EventLog, read_events
from proofmark.rules.aims import Aim, aims_of
from proofmark.rules.config import EffectiveConfig
from proofmark.training.outcome.rank_event_types import RANK_EVENTS
from proofmark.training.outside import metric
from proofmark.training.outside.metric import evaluated
from proofmark.training.ranks.model.evaluation import as_scored
from tests.unit.inference.cheating_engines import Answer, Data
from tests.unit.training.corpus import METRICS, TASK, OfOnesOwn
from tests.unit.training.test_outside import CONFIG, HERE
from tests.unit.training.tokens import trained
from tests.unit.training.torchrun import ran_on

LOGITS, KINDS = torch.eye(4)[[0, 1, 2, 2]], torch.tensor([0, 1, 2, 3])


def test_a_metric_gets_numbers_in_float32_and_names_as_they_are() -> None:
    """A float32 has no room for names beyond 2 ** 24."""
    score, name = as_scored((torch.ones(2, dtype=torch.bfloat16), torch.tensor([3, 2**24 + 1])))
    assert score.dtype is torch.float32 and name.tolist() == [3, 2**24 + 1]


class Answering:
    """A metric that computes this."""

    def __init__(self, computed: Any) -> None:
        self.computed = computed

    def update(self, outputs: Any, targets: torch.Tensor, /) -> None:
        if self.computed == "update":
            raise RuntimeError("no such class")

    def compute(self) -> Any:
        if self.computed == "compute":
            raise ValueError("too few samples\nmore")
        return self.computed


def values(computed: Any, *names: str) -> dict[str, float | None]:
    scoring = Scoring(Answering(computed), {name: Aim() for name in names})
    scoring.update([LOGITS], KINDS)
    return scoring.values()


@pytest.mark.parametrize(
    "computed, names, found",
    [
        (0.5, ["mse"], {"mse": 0.5}),
        (torch.tensor([0.5]), ["mse"], {"mse": 0.5}),
        (3, ["count"], {"count": 3.0}),
        ({"b": 1, "a": torch.tensor(-2.0), "classes": torch.arange(9)}, ["a", "b"], {"a": -2.0, "b": 1.0}),
        ({"a": math.nan, "b": torch.tensor(math.inf)}, ["a", "b"], {"a": None, "b": None}),
    ],
)
def test_values_by_the_names_that_the_case_gives(computed: Any, names: list[str], found: dict[str, Any]) -> None:
    assert values(computed, *names) == found


@pytest.mark.parametrize(
    "computed, names, expected",
    [
        (0.5, ["a", "b"], "metric Answering: compute returns one value; the case names a, b"),
        ({"a": 1}, ["a", "b"], "metric Answering: compute returns a; the case names b too"),
        ({}, ["a"], "metric Answering: compute returns nothing; the case names a too"),
        ({"a": torch.ones(80)}, ["a"], r"metric Answering: a is a Tensor of shape \(80,\); expected one number"),
        ({"a": None}, ["a"], "metric Answering: a is a NoneType; expected one number"),
        ("compute", ["a"], "metric Answering: compute raises ValueError: too few samples$"),
        ("update", ["a"], "metric Answering: update raises RuntimeError: no such class$"),
    ],
)
def test_what_is_no_value_is_told_in_a_line(computed: Any, names: list[str], expected: str) -> None:
    with pytest.raises(StepError, match=expected):
        values(computed, *names)


def test_torchmetrics_fit_as_they_are() -> None:
    from torchmetrics import MetricCollection
    from torchmetrics.classification import MulticlassAccuracy, MulticlassAUROC

    known = MetricCollection({"accuracy": MulticlassAccuracy(4, average="micro"), "auroc": MulticlassAUROC(4)})
    scoring = Scoring(known, {"auroc": Aim(target=0.5), "accuracy": Aim()})  # type: ignore[arg-type]
    for rows in (slice(0, 1), slice(1, 4)):
        scoring.update([LOGITS[rows]], KINDS[rows])
    assert scoring.values() == {"auroc": pytest.approx((1 + 1 + 5 / 6 + 0.5) / 4), "accuracy": 0.75}


class Timed:
    """Rounds of an honest engine, scored by torchmetrics."""

    def __init__(self, folder: Path, items: int = 1608) -> None:
        self.data = Data(items)
        aims = {"kappa": {"target": -1.0}, "auroc": {}}
        parameters = {"warmup": 1, "max_noise": 1e6, "metric": "kappa", "target": -1.0, "metrics": aims}
        settings = {"precision": "fp32", "fp16": False, "log_freq": 1000}
        self.config = EffectiveConfig("inference", "net", "embedded", "fake", parameters, settings)
        vendor: Any = SimpleNamespace(synchronize=lambda: None, memory=lambda: (None, None), runs_on_processor=True)
        loader, order = drawn_anew(self.data.loader)
        first, self.log = next(iter(self.data.loader))[0], EventLog(folder / "events.jsonl")
        self.bench = Bench(self.config, loader, first, self.scoring, vendor, self.log, lambda **_: None, order=order)

    def scoring(self) -> Scoring:
        from torchmetrics import CohenKappa, MetricCollection
        from torchmetrics.classification import MulticlassAUROC

        known: Any = {"kappa": CohenKappa("multiclass", num_classes=10), "auroc": MulticlassAUROC(10)}
        return Scoring(MetricCollection(known, compute_groups=False), aims_of(self.config.parameters))  # type: ignore[arg-type]

    @torch.no_grad()
    def honest(self, inputs: list[torch.Tensor]) -> Answer:
        return [self.data.model(inputs[0]) * 0.1 + inputs[0].reshape(len(inputs[0]), -1)[:, :10]], 0.0


@pytest.mark.usefixtures("one_thread")
def test_a_round_is_scored_over_all_of_the_data_and_none_but_it(tmp_path: Path) -> None:
    """With fresh batches among it; the last short one, too."""
    timed = Timed(tmp_path)
    measure(timed.bench, "engine", timed.honest, 2, probed=True, reference=timed.honest)
    due = timed.scoring()
    due.update(timed.honest([timed.data.dataset.tensors[0]])[0], timed.data.dataset.tensors[1])
    expected = due.values()
    rounds = [event for event in read_events(timed.log.path) if event["event"] == "round"]
    assert len(rounds) == 2 and all(event["fresh"] for event in rounds)
    for event in rounds:
        assert event["accuracy"] == pytest.approx(expected["kappa"], abs=1e-6)
        assert event["weight"] == 0
        assert event["others"] == {"auroc": pytest.approx(expected["auroc"], abs=1e-6)}
    assert timed.bench.accuracy == rounds[-1]["accuracy"]


@pytest.mark.parametrize("passes", [1, 4])
def test_what_a_pass_costs_is_the_same_however_many_a_round_has(tmp_path: Path, passes: int) -> None:
    """Each is fed to a metric of its own: a sum stays that of the data, whatever of it was answered after the round."""
    timed, computed = Timed(tmp_path), list[int]()

    class Counting:
        items = 0

        def update(self, outputs: Any, targets: torch.Tensor, /) -> None:
            self.items += len(targets)

        def compute(self) -> int:
            computed.append(self.items)
            return self.items

    timed.bench.scoring = lambda: Scoring(Counting(), {"items": Aim()})
    mixed = Mixed(timed.bench.loader, timed.bench.full(passes), timed.bench.first)
    metric = RoundMetric(timed.bench, mixed, 1608 * passes)
    with timed.bench.running_on(passes):
        timed_round(mixed, timed.honest, lambda: None, metric, passes=passes, beside=False)
    held = [(noted.position, *noted.held) for noted in mixed.noted if noted.held is not None]
    assert held and len(computed) == passes and max(computed) <= 1608
    of_passes = [range(position * 16, min(position * 16 + 16, 1608 * passes)) for position, *_ in held]
    assert sum(computed) + sum(map(len, of_passes)) == 1608 * passes
    for position, inputs, targets in held:
        metric.add(position, timed.honest(inputs)[0], targets)
    assert metric.values() == {"items": 1608}
    assert len(computed) == passes + len({item // 1608 for items in of_passes for item in items})


def test_a_pass_of_which_all_gave_way_is_computed_when_it_is_there(tmp_path: Path) -> None:
    """Where a batch is all of the data: of no samples there is no value."""
    timed = Timed(tmp_path, 16)
    mixed = Mixed(timed.bench.loader, timed.bench.full(9), timed.bench.first)
    metric = RoundMetric(timed.bench, mixed, 16 * 9)
    with timed.bench.running_on(9):
        timed_round(mixed, timed.honest, lambda: None, metric, passes=9, beside=False)
    held = [(noted.position, *noted.held) for noted in mixed.noted if noted.held is not None]
    assert held
    for position, inputs, targets in held:
        metric.add(position, timed.honest(inputs)[0], targets)
    due = timed.scoring()
    due.update(timed.honest([timed.data.dataset.tensors[0]])[0], timed.data.dataset.tensors[1])
    assert metric.values() == pytest.approx(due.values(), abs=1e-6)


@pytest.mark.parametrize(
    "answered, found", [([0.1, 0.1, 0.1], 0.1), ([1.0, 0.5, 0.0], 0.5), ([1.0, math.nan, 1.0], None)]
)
def test_a_rounds_value_is_the_mean_of_its_passes(tmp_path: Path, answered: list[float], found: float | None) -> None:
    timed, left = Timed(tmp_path), iter([answered[0], None, *answered[1:]])
    timed.bench.scoring = lambda: Scoring(Answering(next(left)), {"a": Aim()})
    metric = RoundMetric(timed.bench, None, 1608 * len(answered))
    for inputs, targets in [batch for _ in answered for batch in timed.data.loader]:
        metric.update(inputs, targets)
    assert metric.values() == {"a": found}


@pytest.mark.usefixtures("one_thread")
def test_the_gates_rounds_feed_a_metric_that_they_do_not_compute(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("proofmark.inference.timing.short.SECONDS", 0.02)
    timed = Timed(tmp_path)
    monkeypatch.setattr(Scoring, "values", lambda self: pytest.fail("of some of the data"))
    ShortRounds(timed.bench, timed.honest, timed.honest).time()
    assert [event["event"] for event in read_events(timed.log.path)] == ["short_round"]


@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize("better, turned", [("lower", True), ("higher", False)])
def test_a_mean_that_is_better_lower_is_held_from_its_own_side(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, better: Any, turned: bool
) -> None:
    """An engine that is wrong everywhere has a larger error, which is no better."""
    monkeypatch.setattr("proofmark.inference.timing.short.SECONDS", 0.02)
    timed = Timed(tmp_path)
    timed.bench.scoring = lambda: Scoring(
        Mean(lambda outputs, targets: (len(targets), len(targets))), {"e": Aim(better=better)}
    )
    timed.bench.accuracy = 0.0
    if not turned:
        ShortRounds(timed.bench, timed.honest).time()
        return
    with pytest.raises(StepError, match="scores 1.0000 in"):
        ShortRounds(timed.bench, timed.honest).time()


def test_ranks_come_to_what_one_process_does(tmp_path: Path) -> None:
    """Of eleven samples one rank has six, the other five."""
    ran = ran_on(2, "tests.unit.training.corpus", str(tmp_path))
    assert ran.returncode == 0, ran.stderr
    for name, case in METRICS.items():
        (tmp_path / "alone").mkdir(exist_ok=True)
        trained(tmp_path / "alone", HERE, TASK, case=case())
        alone, *ranks = evaluations(tmp_path / "alone"), *(evaluations(tmp_path / name, rank) for rank in (0, 1))
        assert len(alone) == 3 and ranks[0] == ranks[1]
        for one, other in zip(alone, ranks[0], strict=True):
            assert one.keys() == other.keys() == {"accuracy", "perplexity", "words"}
            assert one == pytest.approx(other, rel=1e-5), name
        assert alone[0]["words"] == 4 and alone[-1]["perplexity"] < alone[0]["perplexity"]
        (tmp_path / "alone" / "rank0.jsonl").unlink()


def evaluations(folder: Path, rank: int = 0) -> list[dict[str, float]]:
    events = read_events(folder / f"rank{rank}.jsonl", RANK_EVENTS)
    return [{"accuracy": e["metric"], **e["others"]} for e in events if e["event"] == "evaluation"]


def test_outside_the_ranks_what_is_no_mean_is_of_all_data(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of some of it the figure is another: here the distinct words, which are fewer."""
    case = OfOnesOwn()
    config = EffectiveConfig(
        "training", "tokens", "standard", "acme", {**CONFIG.parameters, **TASK}, CONFIG.configurations
    )
    torch.manual_seed(3)
    model = case.create_model(config).eval()
    whole = evaluated(model, case, config, whole=True)
    assert list(whole.values) == ["accuracy", "perplexity", "words"] and whole.samples == whole.of == 11
    assert {(value.error, value.weight) for value in whole.values.values()} == {(0.0, None)}, (
        "no sample's worth is known"
    )
    for limit in ("DRAWN", "LEAST", "ROWS"):
        monkeypatch.setattr(metric, limit, 1)
    assert evaluated(model, case, config, whole=False, until=-math.inf) == whole
