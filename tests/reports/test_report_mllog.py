"""MLLOG lines, read by MLPerf's own parser and held to its rules for any training."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from mlperf_logging.compliance_checker import mlp_compliance, mlp_parser
from mlperf_logging.mllog import constants

from proofmark.training.outcome.examined import Examination
from proofmark.training.outcome.record import TrainingRecord
from suites.training.report.mllog import mllog
from suites.training.report.perflog import finished
from tests.training_records import BEGUN, make_run, make_training

RULES = "5.1.0"
COMMON = Path(mlp_compliance.__file__).parent / f"training_{RULES}" / "common.yaml"


def parsed(record: TrainingRecord, tmp_path: Path) -> list[Any]:
    """The lines as MLPerf's parser gives them; it refuses none."""
    path = tmp_path / "mllog.txt"
    path.write_text(mllog(record, record.runs[0]), encoding="utf-8")
    lines, errors = mlp_parser.parse_file(str(path), ruleset=RULES)
    assert not errors and len(lines) == len(path.read_text().splitlines())
    return lines


def test_mlperfs_rules_for_any_training(tmp_path: Path) -> None:
    """But for cache_clear: nobody cleared a cache, and the log does not say so."""
    checker = mlp_compliance.make_checker("training", RULES, True, False)
    checker.configured_checks(parsed(make_training(), tmp_path), str(COMMON))
    assert not checker.not_overwritable
    assert set(checker.overwritable) == {constants.CACHE_CLEAR}, checker.overwritable


def test_keys_in_the_order_of_their_times(tmp_path: Path) -> None:
    lines = parsed(make_training(), tmp_path)
    known = {value for name, value in vars(constants).items() if name.isupper()}
    assert {line.key for line in lines} <= known
    epoch = ["epoch_start", "eval_start", "eval_accuracy", "eval_stop", "epoch_stop"]
    others = ["seed", "global_batch_size", "gradient_accumulation_steps", "train_samples", "eval_samples"]
    others += ["opt_name", "opt_base_learning_rate", "opt_weight_decay"]
    submission = [f"submission_{key}" for key in ("benchmark", "org", "division", "status", "platform")]
    keys = [line.key for line in lines]
    assert sorted(keys[: keys.index("init_stop")]) == sorted(["init_start", *submission, *others])
    assert sorted(keys[keys.index("run_start") :]) == sorted(["run_start", *epoch, *epoch, "run_stop"])
    times = [line.timestamp for line in lines]
    assert times == sorted(times) and times[-1] == (BEGUN + 25) * 1000
    values = {line.key: line.value["value"] for line in lines}
    assert (values["train_samples"], values["eval_samples"], values["opt_name"]) == (100, 50, "adamw")


def test_no_queue_is_initialisation() -> None:
    queued = make_training(make_run(started=BEGUN - 3600, begun=BEGUN))
    assert mllog(queued, queued.runs[0]) == mllog(make_training(), make_training().runs[0])


@pytest.mark.parametrize(
    "changes, status",
    [
        ({}, constants.SUCCESS),
        ({"resumed_from": 4}, constants.ABORTED),
    ],
)
def test_a_success_is_a_time_that_may_be_ranked(tmp_path: Path, changes: dict[str, Any], status: str) -> None:
    last = parsed(make_training(make_run(**changes)), tmp_path)[-1]
    assert last.key == constants.RUN_STOP and last.value["metadata"]["status"] == status


def test_a_run_that_is_short_by_its_examination_is_no_success(tmp_path: Path) -> None:
    """One of five may be: the verdict shows the speed of the others."""
    short = make_run(examination=Examination(claimed=0.95, metric=0.85, weight=1e6, samples=50, of=50))
    record = make_training(short, *[make_run(seed=seed) for seed in range(1, 5)])
    assert parsed(record, tmp_path)[-1].value["metadata"]["status"] == constants.ABORTED
    assert finished(record, record.runs[0])["converged"] is False
    assert finished(record, record.runs[1])["converged"] is True
    figures = {figure.key: figure.value for figure in record.figures}
    assert figures["converged"] == "4 of 5" and str(figures["run_1"]).startswith("not converged")
    assert str(figures["run_2"]).startswith("converged")


@pytest.mark.parametrize("changes", [{"converged": False, "metric": 0.5}, {"ranks": []}])
def test_of_a_run_that_may_not_be_ranked_only_the_beginning_is_told(tmp_path: Path, changes: dict[str, Any]) -> None:
    lines = parsed(make_training(make_run(**changes)), tmp_path)
    assert {line.timestamp for line in lines} == {BEGUN * 1000} and lines[0].key == constants.INIT_START
    assert not {line.key for line in lines} & {constants.INIT_STOP, constants.RUN_START, constants.RUN_STOP}


def test_what_nobody_knows_is_left_out(tmp_path: Path) -> None:
    bare = {"dataset": None, "validation_items": None, "optimizer": None, "config": {}}
    run = make_run(train_began=None, train_ended=None, init_seconds=None, epochs=[])
    keys = {line.key for line in parsed(make_training(run, **bare), tmp_path)}
    assert keys == {"init_start", "seed", "global_batch_size"} | {key for key in keys if key.startswith("submission_")}
