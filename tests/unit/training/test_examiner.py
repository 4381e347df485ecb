"""Weights are evaluated before recorded steps are done again, and neither is lost where there is no time for all."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import torch

from proofmark.record.events.log import Event, EventLog, read_events
from proofmark.training.job import submit
from proofmark.training.logs.outside import examination_of, replayed
from proofmark.training.logs.ranks.rank_log import RankLog
from proofmark.training.outcome.checks import REPLAYED, SEEDED
from proofmark.training.outcome.event_types import AGENT_EVENTS
from proofmark.training.outcome.verdict import judge
from proofmark.training.outside.examination import PATIENCE, examine
from proofmark.training.outside.replay import Replay
from proofmark.training.ranks.left import digest_of, last_weights, leave_weights, read_left
from proofmark.training.spec import BEFORE, STEP, WEIGHTS, TrainingSpec
from tests.training_records import make_run, make_training
from tests.unit.training.test_outside import CONFIG, DATA, HERE
from tests.unit.training.tokens import Tokens, trained

if TYPE_CHECKING:
    from proofmark.launch.job import Job

pytestmark = pytest.mark.usefixtures("warm")
IMPORTED = ("tests.unit.training.tokens", "proofmark.training.outside.replay")

REPLAYED_ONCE = 2
"""Passes of a step that is replayed as it was."""


class Interrupted(Tokens):
    """Its second step is not done again."""

    passes = 0

    def train_step(self, model: torch.nn.Module, *batch: Any) -> torch.Tensor:
        self.passes += 1
        if self.passes > REPLAYED_ONCE:
            self.interrupt()
        return super().train_step(model, *batch)

    def interrupt(self) -> None:
        raise NotImplementedError


class Killed(Interrupted):
    def interrupt(self) -> None:
        os.kill(os.getpid(), signal.SIGKILL)


class Slow(Interrupted):
    def interrupt(self) -> None:
        time.sleep(600)


class Broken(Interrupted):
    def interrupt(self) -> None:
        raise RuntimeError("not this one")


class Unloaded(Tokens):
    def build_dataset(self, config: Any, split: str) -> Any:
        os.kill(os.getpid(), signal.SIGKILL)


class Untrained(Tokens):
    def build_dataset(self, config: Any, split: str) -> Any:
        assert split == "validation", "its files were looked through for the ranks"
        return super().build_dataset(config, split)


def audited(folder: Path, case: type[Tokens], setup_timeout: float = 60.0, audit: bool = True) -> TrainingSpec:
    """A training's that has recorded its six steps and left weights."""
    named = ("tests.unit.training.test_examiner" if case is not Tokens else Tokens.__module__, case.__name__)
    spec = TrainingSpec(named, "nobody", "", CONFIG.as_dict(), str(folder), (), audited=audit)
    spec = replace(spec, setup_timeout=setup_timeout)
    spec.save(folder / "spec.json")
    trained(folder, HERE, audited=True)
    leave_weights(last_weights(Tokens().create_model(CONFIG), HERE), spec.own_directory(0, 0))
    return spec


def examined(spec: TrainingSpec) -> list[Event]:
    """What the agent notes of it."""
    folder = Path(spec.directory)
    log = EventLog(spec.node_directory(0) / "agent.jsonl")
    examine(folder / "spec.json", spec, 0, log, digest_of(read_left(spec.own_directory(0, 0) / WEIGHTS)), 0, DATA)
    return list(read_events(log.path, AGENT_EVENTS))


def test_weights_come_first_and_each_step_as_soon_as_it_is_known(tmp_path: Path) -> None:
    events = examined(audited(tmp_path, Tokens))
    assert "metric" in events[0] and "steps" not in events[0]
    assert all(later.items() >= {"metric": events[0]["metric"], "items": 11}.items() for later in events)
    assert [sum(step["due"] for step in event["steps"]) for event in events[1:]] == [6, 5, 4, 3, 2, 1, 0]
    assert all(step["update"] < 1e-9 for step in events[1]["steps"]), "what needs no gradients is known at once"
    found = examination_of(events, {"metric": 0.9})
    assert found and (found.replayed, found.left, found.without_replay) == (6, 0, None)
    assert {check.name: check.passed for check in replayed(events, RankLog(0), "fp32")} == {
        REPLAYED: True,
        SEEDED: True,
    }


@pytest.mark.parametrize(
    "case, seconds, expected",
    [
        (Killed, 60, "its process died of signal 9"),
        (Slow, 15, "it took longer than 4 times --setup-timeout 15: give it more"),
        (Broken, 60, "RuntimeError: not this one"),
    ],
)
def test_steps_that_there_was_no_time_for_cost_no_evaluation_and_pass_for_nothing(
    tmp_path: Path, case: type[Tokens], seconds: float, expected: str
) -> None:
    events = examined(audited(tmp_path, case, seconds))
    found = examination_of(events, {"metric": 0.9})
    assert found and found.whole and (found.replayed, found.left, found.reason) == (1, 5, None)
    said = found.without_replay or ""
    assert said.startswith("5 of 6 recorded steps were not done again: ") and expected in said
    checks = list(replayed(events, RankLog(0), "fp32"))
    assert [check.name for check in checks] == [SEEDED], "what was done again bears nothing out"
    run = make_run(examination=found.model_copy(update={"claimed": found.metric}), checks=checks)
    verdict = judge(make_training(run, audited=True))
    assert verdict.kind == "ERROR" and said in " ".join(verdict.reasons), verdict.reasons
    missed = examination_of(events, None)
    assert missed and missed.metric is None and missed.without_replay == said, "which needs no weights"
    wrong = [{**step, "update": 1.0} if step["step"] == 6 else step for step in events[-1]["steps"]]
    (_, check) = replayed([{**events[-1], "steps": wrong}], RankLog(0), "fp32")
    assert not check.passed, "a step that is wrong is told, whatever there was no time for"


def test_without_an_audit_nobody_looks_through_the_data_again(tmp_path: Path) -> None:
    (event,) = examined(audited(tmp_path, Untrained, audit=False))
    assert "metric" in event and "reason" not in event and event["items"] == 11


def test_where_nothing_was_said_nothing_is_known(tmp_path: Path) -> None:
    """An examiner that dies at once."""
    (event,) = examined(audited(tmp_path, Unloaded))
    assert "its process died of signal 9" in event["reason"] and "steps" not in event
    assert not list(replayed([event], RankLog(0), "fp32"))


def test_an_examination_that_ended_before_its_steps_says_so(tmp_path: Path) -> None:
    """Its recorded steps are not whole."""
    spec = audited(tmp_path, Tokens)
    (spec.own_directory(0, 0) / STEP.format(2) / BEFORE).write_bytes(b"rubbish")
    events = examined(spec)
    found = examination_of(events, {"metric": 0.9})
    assert found and found.whole and found.left is None
    assert (found.without_replay or "").startswith("its recorded steps were not done again: ")
    assert not list(replayed(events, RankLog(0), "fp32"))


def test_one_of_each_run_comes_before_a_second_of_any(tmp_path: Path) -> None:
    """And those that chance has drawn before the first ones."""
    spec = audited(tmp_path, Tokens)
    own = spec.own_directory(0, 0)
    gap = own / STEP.format(4)
    for path in gap.iterdir():
        path.unlink()
    gap.rmdir()
    order, before = [], {1, 2, 3, 5, 6}
    for steps in Replay(Tokens(), CONFIG, spec).all(own):
        due = {step.step for step in steps if step.due}
        order += sorted(before - due)
        before = due
    assert order == [5, 1, 6, 2, 3]


def test_other_nodes_wait_for_as_long_as_an_examination_may_take(tmp_path: Path) -> None:
    jobs: list[Job] = []

    class Launcher:
        def submit(self, job: Job) -> None:
            jobs.append(job)

    config = {**CONFIG.as_dict(), "host": {**CONFIG.as_dict()["host"], "cache_dir": str(tmp_path)}}
    spec = TrainingSpec(("", ""), "", "", config, str(tmp_path), (), setup_timeout=100.0)
    submit(spec, Launcher())  # type: ignore[arg-type]
    assert jobs[0].ending > PATIENCE * 100
