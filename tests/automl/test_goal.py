"""What a trial trains for: when it ends before its epochs do, and which weights it keeps."""

from __future__ import annotations

import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch._subclasses.fake_tensor import FakeTensorMode

from proofmark.automl.network.module import GraphNetwork, fresh_weights, momentum_of
from proofmark.automl.network.seeds import small_network
from proofmark.automl.trial.failing import why
from proofmark.automl.trial.goal import BestWeights
from proofmark.automl.trial.spec import MOMENTUM, WEIGHTS, TrialSpec
from proofmark.automl.trial.tensors import read_weights
from proofmark.errors import StepError
from proofmark.record.events.log import EventLog, read_events
from proofmark.record.parts import Identity
from proofmark.training.ranks.account import Position
from proofmark.training.ranks.model.strategy import Place

GRAPH = small_network(size=8, channels=1, width=4)


class Trained:
    """What a goal sees of a training of one rank: an evaluation before the first step, and one after each epoch."""

    def __init__(self, folder: Path, epochs: int = 9, patience: int | None = None, deadline: int | None = None) -> None:
        graph = GRAPH.model_dump(mode="json")
        self.spec = TrialSpec(
            ("", ""), "acme", "", {}, str(folder), (), 0, graph, None, {"batch_size": 8}, epochs, patience, 0
        )
        self.goal = BestWeights(self.spec, lambda: (10, 30), {}, deadline)
        self.log, self.place = EventLog(folder / "trial.jsonl"), Place(0, 0, 1, torch.device("cpu"))
        self.model = GraphNetwork(GRAPH, fresh_weights(GRAPH, 0))
        self.stepper = SimpleNamespace(optimizer=torch.optim.SGD(self.model.parameters(), lr=0.1, momentum=0.9))
        self.position = Position()
        self.data: Any = None

    def run(self, *metrics: float) -> int:
        """How many of those epochs it trains, whose metrics follow that of before the first step."""
        this: Any = self
        for epoch, metric in enumerate(metrics):
            self.position.epoch, self.position.samples = max(0, epoch - 1), 8 * epoch
            found: Any = SimpleNamespace(metric=metric)
            with torch.no_grad():
                for parameter in self.model.parameters():
                    parameter.fill_(epoch)
            self.goal.evaluated(this, found)
            if epoch and self.goal.is_over(this, found):
                return epoch
        return len(metrics) - 1

    def reasons(self) -> list[str]:
        return [event["reason"] for event in read_events(self.log.path) if event["event"] == "stopped_early"]


@pytest.mark.parametrize(
    ("metrics", "epochs"),
    [
        ([0.1, 0.5, 0.5, 0.5, 0.9], 3),  # two that are no better
        ([0.1, 0.5, 0.5, 0.6, 0.6, 0.6, 0.9], 5),  # one that is better begins anew
        ([0.1, 0.5, 0.5005, 0.5009, 0.7], 3),  # a thousandth is not enough
        ([0.1, 0.5, 0.5006, 0.5012, 0.5018, 0.5024, 0.503], 6),  # small steps add up
        ([0.1, 0.5, 0.4, 0.45, 0.9], 3),  # better than the one before, and not than the best
        ([0.1, 0.5, float("nan"), float("nan"), 0.9], 3),
    ],
)
def test_patience_is_epochs_without_a_better_evaluation(tmp_path: Path, metrics: list[float], epochs: int) -> None:
    trained = Trained(tmp_path, patience=2)
    assert trained.run(*metrics) == epochs
    stopped = epochs < len(metrics) - 1
    assert trained.reasons() == ["no better evaluation in 2 epochs"] * stopped


def test_without_patience_all_epochs_are_trained(tmp_path: Path) -> None:
    trained = Trained(tmp_path)
    assert trained.run(*[0.5] * 9) == 8 and not trained.reasons()


@pytest.mark.parametrize(("seconds", "epochs"), [(-1, 1), (3600, 3)])
def test_no_epoch_begins_when_the_searchs_time_is_over(tmp_path: Path, seconds: int, epochs: int) -> None:
    trained = Trained(tmp_path, deadline=time.perf_counter_ns() + seconds * 10**9)
    assert trained.run(0.1, 0.5, 0.6, 0.7) == epochs
    assert trained.reasons() == ["the search's time is over"] * (seconds < 0)


def test_nor_does_the_first_one(tmp_path: Path) -> None:
    """Of a trial that was begun in time, and came to it later; who only evaluates has no epoch."""
    over, on = time.perf_counter_ns() - 10**9, time.perf_counter_ns() + 3600 * 10**9
    late: Any = Trained(tmp_path, deadline=over)
    with pytest.raises(StepError, match="the search's time is over before its first epoch"):
        late.goal.epochs(late)
    for epochs, deadline in ((9, on), (9, None), (0, None)):
        trained: Any = Trained(tmp_path, epochs, deadline=deadline)
        assert trained.goal.epochs(trained) == epochs


def test_the_best_epochs_weights_are_kept_and_never_those_of_before_the_first_step(tmp_path: Path) -> None:
    trained = Trained(tmp_path)
    trained.run(0.99, 0.5, 0.7, 0.7, 0.6)
    trained.goal.save(tmp_path)
    trained.goal.tell(trained.log, (0.0, 1.0))
    (chosen,) = (event for event in read_events(trained.log.path) if event["event"] == "chosen")
    assert (chosen["metric"], chosen["epoch"]) == (0.7, 2), "the first of equal ones"
    kept = read_weights(tmp_path / WEIGHTS)
    assert {float(tensor.max()) for name, tensor in kept.items() if name.endswith(("weight", "bias"))} == {2.0}


def test_momentum_is_kept_and_taken_on_of_a_network_that_is_compiled(tmp_path: Path) -> None:
    trained = Trained(tmp_path)
    network, state = trained.model, trained.stepper.optimizer.state
    trained.model = torch.compile(network)  # type: ignore[assignment]
    for parameter in network.parameters():
        state[parameter]["momentum_buffer"] = torch.ones_like(parameter)
    trained.run(0.1, 0.5)
    trained.goal.save(tmp_path)
    kept = read_weights(tmp_path / MOMENTUM)
    assert kept.keys() == network.by_name().keys()
    state.clear()
    this: Any = trained
    trained.data = SimpleNamespace(validation=SimpleNamespace(identity=Identity(name="none", sha256="0" * 64)))
    BestWeights(trained.spec, lambda: (10, 30), kept, None).ready(this)
    assert all(state[parameter]["momentum_buffer"].all() for parameter in network.parameters())


def test_the_momentum_that_is_kept_takes_no_memory_of_a_device(tmp_path: Path) -> None:
    trained = Trained(tmp_path)
    parameter = trained.model.by_name()["dense.bias"]
    with FakeTensorMode():  # it has any device
        buffer = torch.ones(parameter.shape, device="cuda")
    trained.stepper.optimizer.state[parameter]["momentum_buffer"] = buffer
    (kept,) = momentum_of(trained.model, trained.stepper.optimizer).values()
    assert (buffer.device.type, kept.device.type) == ("cuda", "cpu")


def test_ranks_whose_trial_has_let_go_are_no_group_any_more(tmp_path: Path) -> None:
    """Whose buffers lie on their devices, while the first of them saves."""
    trained = Trained(tmp_path)
    trained.place = Place(0, 0, 2, torch.device("cpu"))
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    this: Any = trained
    trained.goal.ended(this)
    assert not dist.is_initialized()


def test_what_layers_compute_in_is_noted_as_they_are_compiled_and_compiles_nothing_anew(tmp_path: Path) -> None:
    """But for numbers of another kind, and for other shapes."""
    trained = Trained(tmp_path)
    this: Any = trained
    trained.data = SimpleNamespace(validation=SimpleNamespace(identity=Identity(name="none", sha256="0" * 64)))
    trained.goal.ready(this)
    compiled = list[torch.fx.GraphModule]()

    def keep(graph: torch.fx.GraphModule, _: Any) -> Any:
        compiled.append(graph)
        return graph.forward

    network: Any = torch.compile(trained.model.train(), backend=keep)
    for low in (False, False, True, True):
        with torch.autocast("cpu", torch.bfloat16, enabled=low):
            network(torch.ones(2, 1, 8, 8))
    trained.goal.tell(trained.log, (0.0, 1.0))
    (computed,) = (event for event in read_events(trained.log.path) if event["event"] == "computed")
    assert computed["dtypes"] == ["bfloat16", "float32"] and len(compiled) == 2


def test_a_trial_that_was_no_number_at_any_time_has_no_weights(tmp_path: Path) -> None:
    trained = Trained(tmp_path)
    trained.run(0.1, *[float("nan")] * 3)
    trained.goal.save(tmp_path)
    trained.goal.tell(trained.log, (0.0, 1.0))
    (chosen,) = (event for event in read_events(trained.log.path) if event["event"] == "chosen")
    assert chosen["metric"] is None and not (tmp_path / WEIGHTS).exists()


def test_memory_that_is_not_there_is_told_as_that() -> None:
    with pytest.raises(RuntimeError) as failed:
        torch.empty(1 << 50)
    assert why(failed.value).startswith("it ran out of memory: ")
    assert why(MemoryError()) == "it ran out of memory: the host has no more"
    assert why(ValueError("no such layer\nat all")) == "ValueError: no such layer"
