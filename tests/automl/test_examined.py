"""A search's best weights are evaluated in a process that doesn't import the vendor."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import pytest
import torch

from proofmark.automl.case import AutoMLCase
from proofmark.automl.logs.event_types import TRIAL_EVENTS
from proofmark.automl.logs.trial_log import outcome
from proofmark.automl.network.graph import Graph
from proofmark.automl.network.module import fresh_weights
from proofmark.automl.network.seeds import small_network
from proofmark.automl.trial.goal import BestWeights
from proofmark.automl.trial.made_case import TrialCase
from proofmark.automl.trial.spec import WEIGHTS, Parent, TrialSpec
from proofmark.automl.trial.tensors import save
from proofmark.automl.trial.work import Prepared
from proofmark.errors import UsageError
from proofmark.record.events.log import EventLog, read_events
from proofmark.record.parts import Identity
from proofmark.rules.config import EffectiveConfig
from proofmark.training.feeding.on_request import fork_server
from proofmark.training.heartbeat import HeartbeatWriter
from proofmark.vendor.contract import Processor

GRAPH = small_network(size=8, width=4)
PARAMETERS = {"target": 0.5, "better": "higher", "schedule": "constant", "metric": "top1", "momentum": 0.9}
SETTINGS = {"precision": "fp32", "compile": False, "channels_last": False, "num_workers": 0, "log_freq": 10}
SETTINGS |= {"eval_batch_size": 4, "learning_rate": 0.1, "weight_decay": 0.0}


class Images:
    """Nine images of noise."""

    epoch = 0
    identity = Identity(name="noise", sha256="0" * 64, items=9)

    def __len__(self) -> int:
        return 9

    def __getitems__(self, indices: list[int]) -> tuple[list[torch.Tensor], torch.Tensor]:
        return [torch.ones(len(indices), 3, 8, 8)], torch.tensor(indices) % 2


class Case(AutoMLCase):
    def build_dataset(self, config: Any, split: str) -> Any:
        return Images()

    def seed_network(self, config: Any) -> Graph:
        return small_network(size=8, width=4)

    def evaluator(self, outputs: list[torch.Tensor], targets: torch.Tensor) -> tuple[float, float]:
        return float((outputs[0].argmax(-1) == targets).sum()), float(len(targets))


def trial(folder: Path, epochs: int) -> TrialSpec:
    graph = small_network(size=8, width=4)
    save(fresh_weights(graph, 0), folder / WEIGHTS)
    text = graph.model_dump(mode="json")
    config = EffectiveConfig("automl", "noise", "embedded", "nobody", PARAMETERS, SETTINGS)
    common: tuple[Any, ...] = ((__name__, "Case"), "nobody", str(folder), config.as_dict(), str(folder), ())
    given = {"kernel_size": 3, "batch_size": 4, "dropout": 0.0}
    return TrialSpec(
        *common, trial=1, graph=text, parent=Parent(text, [], str(folder)), hyperparameters=given, epochs=epochs,
        patience=None, seed=1,
    )  # fmt: skip


def served(spec: TrialSpec) -> list[socket.socket]:
    """Where a rank of the trial asks for its images: who loads them is forked of this process."""
    ends: list[socket.socket] = []
    for _ in ("train", *spec.looks_at):
        its, end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ends.append(end)
        fork_server(its, Images, 0, 64, "batch_size", ends)
    return ends


def computed(folder: Path, epochs: int) -> list[dict[str, Any]]:
    spec = trial(folder, epochs)
    log = EventLog(folder / "trial.jsonl")
    spec.own_directory(0, 0).mkdir(parents=True)
    Prepared.of(spec, 0, served(spec)).compute(0, log, HeartbeatWriter(folder / "rank0.heartbeat"), None)
    return list(read_events(log.path))


def test_an_evaluation_alone_needs_no_vendor(tmp_path: Path) -> None:
    events = {event["event"]: event for event in computed(tmp_path, 0)}
    assert events["chosen"]["metric"] in (4 / 9, 5 / 9)
    assert (events["items"]["train"], events["items"]["search"]) == (9, 9)
    assert events["chosen_on"]["sha256"] == "0" * 64
    searched = events["searched"]
    assert (searched["accuracy"], searched["images"], searched["of_all"]) == (events["chosen"]["metric"], 9, 9)


def test_it_is_in_full_precision_on_any_processor(tmp_path: Path) -> None:
    """Whatever its trial was trained in, and a vendor's way left: others would take very long there."""
    lower = {"precision": "bf16", "compile": True}
    for epochs in (0, 1):
        spec = trial(tmp_path, epochs)
        spec.config["configurations"] |= lower
        save({name: each.bfloat16() for name, each in fresh_weights(GRAPH, 0).items()}, tmp_path / WEIGHTS)
        configured = EffectiveConfig.from_dict(spec.training().config)
        assert (configured.precision, configured.compile) == (("bf16", True) if epochs else ("fp32", False))
        model = TrialCase(Case(), spec).create_model(configured)
        assert {parameter.dtype for parameter in model.parameters()} == {torch.float32}


def test_its_data_is_identified_before_a_vendor_is_there(tmp_path: Path) -> None:
    spec = trial(tmp_path, 1)
    log = EventLog(tmp_path / "trial.jsonl")
    Prepared.of(spec, 0, served(spec)).identify(log)
    (event,) = read_events(log.path, TRIAL_EVENTS)
    assert (event["event"], event["train"], event["evaluated"]) == ("data", "0" * 64, "0" * 64)
    assert outcome(tmp_path, 1, succeeded=False, hung=None)["data"] == {"train": "0" * 64, "evaluated": "0" * 64}
    log.write("data", train="1" * 64, evaluated="1" * 64)
    assert outcome(tmp_path, 1, succeeded=False, hung=None)["data"] is None, "who says it twice is not believed"


def test_what_its_vendor_adapts_is_what_its_ranks_said_first_or_last(tmp_path: Path) -> None:
    log = EventLog(tmp_path / "trial.jsonl")
    for steps in (["train_step"], [], ["backward", "train_step"]):
        log.write("adapted", steps=steps)
    assert outcome(tmp_path, 1, succeeded=False, hung=None)["adapted"] == ["train_step", "backward"]


def test_a_long_trial_notes_few_losses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Six steps in two epochs: a note of the first one, every second one, and before each evaluation."""
    monkeypatch.setitem(SETTINGS, "log_freq", 1)
    monkeypatch.setattr(BestWeights, "most_notes", 3)
    monkeypatch.setattr("proofmark.automl.trial.work._computes_on", lambda *_: (Processor(), None))
    noted = [event for event in computed(tmp_path, 2) if event["event"] == "steps"]
    assert [(event["first"], len(event["losses"])) for event in noted] == [(step, 1) for step in (1, 2, 3, 4, 6)]


def test_a_trial_that_trains_needs_one(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="nobody"):
        computed(tmp_path, 1)
