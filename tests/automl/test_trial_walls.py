"""A trial of others' code: what it can reach of what is not its own."""

from __future__ import annotations

import os
import shutil
import signal
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import psutil
import pytest

from proofmark.automl.network.module import fresh_weights
from proofmark.automl.outcome.record import EpochRecord, Items
from proofmark.automl.outcome.scoring import score_of
from proofmark.automl.outcome.verdict import judge
from proofmark.automl.trial import rank
from proofmark.automl.trial.spec import WEIGHTS, TrialSpec
from proofmark.automl.trial.tensors import read_weights
from proofmark.record.events.log import read_events
from proofmark.vendor.torch_extensions import AUTOLOAD
from proofmark.wall.isolation import Isolation
from tests.automl import test_examined
from tests.automl.automl_records import record, trial
from tests.automl.searches import ROOT
from tests.automl.test_several_devices import GRAPH, ended, pid_of, process, trains
from tests.waiting import until

FULL = "it filled its own directory with more than the 0.01 GiB of --scratch-limit, and was ended"

CHEAT = ROOT / "tests/cheats/trainings"

ADAPTED = """

def _adapter():
    from vendors.cpu.adapter import Adapter

    return Adapter()


vendor.training_adapter = _adapter
"""

HONEST = """
from proofmark.vendor import TrainingAdapter


class Adapter(TrainingAdapter):
    def create_optimizer(self, case, model, config):
        optimizer = case.create_optimizer(model, config)
        for group in optimizer.param_groups:
            group["foreach"] = True
        return optimizer

    def train_step(self, case, model, inputs, targets):
        return case.train_step(model, [each.contiguous() for each in inputs], targets)
"""


def vendors_with(folder: Path, adapter: str) -> Path:
    """The vendors' folder of a house, whose processor has an adapter."""
    vendors = folder / "vendors"
    shutil.copytree(ROOT / "vendors/cpu", vendors / "cpu")
    (vendors / "__init__.py").touch()
    (vendors / "cpu" / "adapter.py").write_text(adapter)
    with (vendors / "cpu" / "__init__.py").open("a") as stream:
        stream.write(ADAPTED)
    return vendors


@pytest.mark.parametrize(
    "cheat, expected",
    [("reaches_out", "RuntimeError: came past nothing of 16"), ("fills_its_directory", FULL)],
)
def test_it_is_refused_and_its_trial_fails(tmp_path: Path, cheat: str, expected: str) -> None:
    vendors, folder = vendors_with(tmp_path, (CHEAT / f"{cheat}.py").read_text()), tmp_path / "search"
    for made in (tmp_path / ".cache", folder):
        made.mkdir()
    (tmp_path / ".cache" / "own.key").touch()
    end = ended(process(folder, epochs=1, nproc=1, vendors=vendors, scratch_limit=0.01))
    assert (end["status"], end["reason"]) == ("failed", expected)
    assert (end["isolation"]["kind"], end["isolation"]["network"]) == ("wall", "closed")
    assert not (folder / "noderank0" / "own0").exists()


def test_an_honest_one_trains_behind_it_and_leaves_its_weights(tmp_path: Path) -> None:
    end = ended(process(tmp_path, epochs=1, nproc=1))
    assert (end["status"], end["reason"]) == ("finished", None)
    assert (end["isolation"]["kind"], end["isolation"]["network"]) == ("wall", "closed")
    node = tmp_path / "noderank0"
    assert read_weights(node / WEIGHTS).keys() == fresh_weights(GRAPH, 0).keys()
    assert not (node / "own0").exists()


@pytest.mark.parametrize("nproc", [1, 2])
def test_workers_that_load_are_outside_of_it(tmp_path: Path, nproc: int) -> None:
    end = ended(process(tmp_path, epochs=2, nproc=nproc, configured={"num_workers": 1}))
    assert (end["status"], end["reason"], end["isolation"]["kind"]) == ("finished", None, "wall")
    assert end["epochs"][-1]["accuracy"] > end["epochs"][0]["accuracy"]


def test_an_examination_looks_at_data_whoever_loads(tmp_path: Path) -> None:
    end = ended(process(tmp_path, epochs=0, nproc=1, configured={"num_workers": 1}))
    assert (end["status"], end["reason"]) == ("finished", None)
    (searched,) = (
        event for event in read_events(tmp_path / "noderank0" / "trial.jsonl") if event["event"] == "searched"
    )
    assert searched["images"] == searched["of_all"] == 288, "what trials are chosen by, too"


@pytest.mark.parametrize("epochs", [0, 1])
@pytest.mark.parametrize("workers", [0, 1])
def test_who_sees_held_out_images_runs_no_vendors_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, epochs: int, workers: int
) -> None:
    """Not even an extension of torch; all others are handed what they train on."""
    spec, seen = test_examined.trial(tmp_path, epochs), dict[str, Any]()
    spec.config["configurations"]["num_workers"] = workers
    spec.config["host"]["data_dir"] = str(tmp_path / "data")

    def close_in(spec: TrialSpec, own: Path, wall: Any, extensions: bool = True) -> Isolation:
        seen.update(readable=wall.readable, extensions=extensions)
        return Isolation.none("a test's")

    monkeypatch.setattr(rank, "close_in", close_in)
    monkeypatch.setenv(AUTOLOAD, "0")  # a rank holds extensions back for good
    monkeypatch.setattr("proofmark.training.feeding.on_request.fork_server", lambda *_: None)
    rank._close_in(spec, 0)
    looks = Path(spec.config["host"]["data_dir"]) in seen["readable"]
    assert (looks, seen["extensions"]) == (not epochs, bool(epochs))
    monkeypatch.setattr("proofmark.automl.trial.handed_out.Counters", MagicMock())
    assert len(rank._loaded_beside(spec, 0)) == (2 if epochs else 3)


def test_a_vendors_own_steps_at_a_lower_precision(tmp_path: Path) -> None:
    """A trial is adapted as a training is, and in what its layers computed is seen."""
    vendors, folder = vendors_with(tmp_path, HONEST), tmp_path / "search"
    folder.mkdir()
    end = ended(process(folder, epochs=2, nproc=1, vendors=vendors, configured={"precision": "bf16"}))
    assert (end["status"], end["reason"]) == ("finished", None)
    assert end["dtypes"] == ["bfloat16"] and all(check["passed"] for check in end["checks"])
    assert end["epochs"][-1]["accuracy"] > end["epochs"][0]["accuracy"]


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        ('return case.train_step(model, inputs, targets) * float("nan")', "the loss of step 1 is not a finite number"),
        ("import torch; return torch.empty(1 << 50)", "it ran out of memory: "),
        ("raise KeyError('no such kernel')", "KeyError: 'no such kernel'"),
    ],
)
def test_what_goes_wrong_within_a_step_is_told(tmp_path: Path, step: str, expected: str) -> None:
    adapter = f"""
from proofmark.vendor import TrainingAdapter


class Adapter(TrainingAdapter):
    def train_step(self, case, model, inputs, targets):
        {step}
"""
    vendors, folder = vendors_with(tmp_path, adapter), tmp_path / "search"
    folder.mkdir()
    end = ended(process(folder, epochs=2, nproc=1, vendors=vendors))
    assert end["status"] == "failed" and end["reason"].startswith(expected), end["reason"]


SKIMS = """
from dataclasses import replace

import torch
from proofmark.training.ranks import trainer
from proofmark.training.feeding.batches import GlobalBatches
from proofmark.vendor import TrainingAdapter


class Adapter(TrainingAdapter):
    def __init__(self):
        evaluate, found = trainer.evaluate, []

        def once(*arguments):
            found.append(replace(found[0], items=1) if found else evaluate(*arguments))
            return found[-1]

        GlobalBatches.__len__ = lambda _: 1
        GlobalBatches.size = lambda *_: 1
        GlobalBatches.shares = lambda *_: iter([[]])
        trainer.Stepper.step = lambda *_: torch.zeros(())
        trainer.evaluate = once
"""
"""Trains on one image an epoch by its own count, and computes none; each counted as 1,280,000 the original's way."""


def test_one_that_skims_its_epochs_earns_nothing_and_is_found(tmp_path: Path) -> None:
    vendors, folder = vendors_with(tmp_path, SKIMS), tmp_path / "search"
    folder.mkdir()
    end = ended(process(folder, epochs=50, nproc=1, vendors=vendors))
    assert (end["status"], end["reason"]) == ("failed", "it tells of 50 images to train on, and was handed 0")
    assert [(epoch["images"], epoch["evaluated"]) for epoch in end["epochs"][1:]] == [(1, 1)] * 50
    fields = ("images", "evaluated", "accuracy", "loss", "seconds")
    epochs = tuple(EpochRecord(ended=5.0, **{key: epoch[key] for key in fields}) for epoch in end["epochs"])
    cheat, items = trial(1, epochs=epochs, asked=50), Items(1_000, epochs[0].evaluated)
    assert score_of([cheat], 10.0, 0.1, items).compatible is None
    others = {"train_items": items.train, "search_items": items.search}
    verdict = judge(record(cheat, trial(0, epochs=()), **others))
    assert verdict.kind == "ERROR", verdict
    assert any(
        "trial 1 did not finish epochs that it tells of: 50 of its 51 evaluations" in each for each in verdict.reasons
    )


@pytest.mark.parametrize("killed, expected", [("rank", "it died of signal 9"), ("trial", "its process died")])
def test_one_that_is_killed_ends_and_nothing_of_it_runs_on(tmp_path: Path, killed: str, expected: str) -> None:
    begun, node = process(tmp_path, epochs=1000, nproc=1), tmp_path / "noderank0"
    until(lambda: trains(begun, node / "trial.jsonl"), "its first epoch", every=0.1)
    (first,) = (event for event in read_events(node / "trial.jsonl") if event["event"] == "trial_begin")
    rank = pid_of(node / "rank0.heartbeat")
    os.kill(rank if killed == "rank" else first["pid"], signal.SIGKILL)
    end = ended(begun)
    assert end["status"] == "failed" and end["reason"].startswith(expected)
    until(lambda: not psutil.pid_exists(rank), "its rank's end")
    assert not [*node.glob("own*")]
