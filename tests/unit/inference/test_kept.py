"""What is left of a run that failed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from proofmark.inference.outcome import kept
from proofmark.inference.outcome.record import RunRecord
from proofmark.record.parts import Verdict, VerdictKind
from proofmark.rules.config import HostSettings
from proofmark.training.outcome.kept import of_training
from tests.reports.records import make_record
from tests.training_records import make_run, make_training
from tests.unit.inference.test_plan import config


def judged(kind: VerdictKind) -> RunRecord:
    return make_record(verdict=Verdict(kind=kind))


@pytest.fixture
def run_dir(tmp_path: Path) -> Path:
    (tmp_path / "engine-0a1b").mkdir()
    for name in ("model.onnx", "model.onnx.data", "engine-0a1b/plan", "worker.log", "events.jsonl"):
        (tmp_path / name).write_text("x")
    return tmp_path


def names(record: RunRecord, run_dir: Path) -> dict[str, str]:
    settings = config(host=HostSettings(cache_dir=str(run_dir / "cache")))
    return {each.what: each.path for each in kept.of_case(record, settings, run_dir)}


def test_of_a_failed_case_everything_there_is(run_dir: Path) -> None:
    assert names(judged(VerdictKind.FAIL_ACCURACY), run_dir) == {
        "the exported model": "model.onnx",
        "the compiled engine": "engine-0a1b",
        "all that was measured": "events.jsonl",
        "what the case's process printed": "worker.log",
    }


def test_weights_that_were_trained_are_named_where_the_cache_has_them(run_dir: Path) -> None:
    host = HostSettings(cache_dir=str(run_dir / "cache"))
    settings = replace(config(host=host), parameters={"training": {"epochs": 4}})
    failed = judged(VerdictKind.ERROR)
    assert "the trained weights" not in [each.what for each in kept.of_case(failed, settings, run_dir)]
    path = run_dir / "cache" / "weights" / "inference" / "net-embedded.safetensors"
    path.parent.mkdir(parents=True)
    path.touch()
    first = kept.of_case(failed, settings, run_dir)[0]
    assert (first.what, first.path) == ("the trained weights", str(path))


@pytest.mark.parametrize("kind", ["PASS", "UNSUPPORTED", "AMBIGUOUS", "INSUFFICIENT"])
def test_of_one_that_did_not_fail_nothing(run_dir: Path, kind: str) -> None:
    assert names(judged(VerdictKind(kind)), run_dir) == {}


def test_of_a_run_that_came_to_nothing_nothing(tmp_path: Path) -> None:
    (tmp_path / "engine-0a1b").mkdir()
    (tmp_path / "worker.log").touch()
    failed = judged(VerdictKind.ERROR).model_copy(update={"framework": None, "engine": None})
    assert names(failed, tmp_path) == {}


def test_what_takes_much_space_is_removed_with_what_belongs_to_it(run_dir: Path) -> None:
    kept.remove_artifacts(run_dir)
    assert sorted(path.name for path in run_dir.iterdir()) == ["events.jsonl", "worker.log"]


@pytest.mark.parametrize("shared", [False, True])
def test_of_a_failed_training_checkpoints_and_logs(tmp_path: Path, shared: bool) -> None:
    record = make_training(make_run(converged=False, metric=0.5))
    run_dir, beyond = tmp_path / "run", tmp_path / "shared" if shared else None
    for step in ("step-000000002", "step-000000004", "step-0000000006.draft"):
        folder = beyond / "round1" if beyond else run_dir / "round1" / "checkpoints"
        (folder / step).mkdir(parents=True)
    (run_dir / "round1").mkdir(parents=True, exist_ok=True)
    found = {each.what: each.path for each in of_training(record, run_dir, beyond)}
    inside = "round1/checkpoints/step-000000004"
    assert found == {
        "a checkpoint, to go on from with --resume": str(beyond / "round1/step-000000004") if beyond else inside,
        "losses, evaluations and logs of all ranks": "round1",
    }
    assert of_training(make_training(), run_dir, beyond) == ()
