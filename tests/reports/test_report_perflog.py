"""`[PerfLog]` lines: FlagPerf's events, names and units, and nothing that a JSON parser refuses."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from proofmark.flagperf.perflog_reader import read_perflog
from proofmark.record.parts import VerdictKind
from proofmark.training.outcome.figures import figures
from proofmark.training.outcome.record import SeedRun, TrainingRecord
from suites.training.report.perflog import perflog
from tests.training_records import BEGUN, make_run, make_training


def refuse(constant: str) -> None:
    raise AssertionError(f"{constant} is no JSON")


def lines_of(record: TrainingRecord, run: SeedRun | None = None) -> list[dict[str, Any]]:
    """Each line's content, read as strictly as JSON is meant."""
    lines = perflog(record, run or record.runs[0]).splitlines()
    assert all(line.startswith("[PerfLog] {") for line in lines)
    return [json.loads(line.removeprefix("[PerfLog] "), parse_constant=refuse) for line in lines]


def test_events_in_the_order_of_their_times() -> None:
    lines = lines_of(make_training())
    assert [line["event"] for line in lines] == [
        "SUBMIT_INFO", "INIT_START", "INIT_EVALUATION", "INIT_END", "TRAIN_START",
        "EPOCH_BEGIN", "STEP_END", "EVALUATE", "EPOCH_END",
        "EPOCH_BEGIN", "STEP_END", "EVALUATE", "EPOCH_END",
        "TRAIN_END", "FINISHED",
    ]  # fmt: skip
    times = [line["metadata"]["time_ms"] for line in lines]
    assert times == sorted(times) and times[0] == BEGUN * 1000 and times[-1] == (BEGUN + 26.25) * 1000
    assert all(set(line["metadata"]) == {"file", "lineno", "time_ms", "rank"} for line in lines)
    assert {line["metadata"]["file"] for line in lines} == {"suites/training/report/perflog.py"}


def test_an_hour_in_a_queue_is_before_its_initialisation() -> None:
    """Which its seconds count from, as the end of all does."""
    direct, queued = (lines_of(make_training(make_run(**of))) for of in ({}, {"started": BEGUN - 3600, "begun": BEGUN}))
    assert [line["event"] for line in queued] == [line["event"] for line in direct]
    times = [line["metadata"]["time_ms"] for line in queued]
    assert times[0] == (BEGUN - 3600) * 1000
    assert times[1:] == [line["metadata"]["time_ms"] for line in direct][1:]
    missed = make_run(started=BEGUN - 3600, begun=BEGUN, converged=False, metric=0.5)
    shown = [line["metadata"]["time_ms"] for line in lines_of(make_training(missed))]
    assert shown[:2] == times[:2] and set(shown[2:]) == {None}


def test_finished_info() -> None:
    assert lines_of(make_training())[-1]["value"] == {
        "e2e_time": 26.25,
        "init_time": 5.0,
        "raw_train_time": 20.0,
        "train_time": 20.0,
        "train_no_eval_time": 18.0,
        "pure_training_computing_time": 10.0,
        "training_sequences_per_second": 10.0,
        "throughput(ips)_raw": 10.0,
        "throughput(ips)_no_eval": 200 / 18,
        "throughput(ips)_pure_compute": 20.0,
        "converged": True,
        "final_top1": 0.95,
        "final_loss": 0.5,
    }


def test_a_run_that_was_resumed_says_so_beside_its_times() -> None:
    """Those of its training have what was before, the whole and its initialisation do not."""
    record = make_training(make_run(resumed_from=20))
    assert lines_of(record)[-1]["value"]["resumed_from_step"] == 20
    (times,) = (figure for figure in figures(record) if figure.key == "run_1_times")
    assert times.note == "e2e and init since it was resumed, the others with those before"


def test_the_effective_configuration_is_submitted() -> None:
    value = lines_of(make_training(config={"learning_rate": 0.02, "limit": math.nan, "name": "a\nb\u2028c"}))[0][
        "value"
    ]
    assert value["config"] == {"learning_rate": 0.02, "limit": None, "name": "a\nb\u2028c"}
    assert value["vendor"] == "acme" and value["target"] == 0.9 and value["seed"] == 0


def test_no_speed_where_the_verdict_withholds_it() -> None:
    record = make_training(make_run(converged=False, metric=0.5))
    assert record.verdict and record.verdict.kind is VerdictKind.FAIL_ACCURACY
    lines = lines_of(record)
    assert lines[0]["value"]["verdict"]["kind"] == "FAIL_ACCURACY"
    assert [line["event"] for line in lines] == [line["event"] for line in lines_of(make_training())], "none is lost"
    assert {line["metadata"]["time_ms"] for line in lines} == {BEGUN * 1000, None}
    assert {line["value"]["train_time"] for line in lines if line["event"] == "EVALUATE"} == {None}
    values = {name: figure for name, figure in lines[-1]["value"].items() if figure is not None}
    assert values == {"converged": False, "final_top1": 0.5, "final_loss": 0.5}


def test_a_run_that_broke_off_is_not_finished() -> None:
    run = make_run(converged=None, train_ended=None, epochs=[], rates=None)
    events = [line["event"] for line in lines_of(make_training(run))]
    assert "TRAIN_START" in events and not {"TRAIN_END", "EPOCH_END", "FINISHED"} & set(events)


def test_what_has_no_time_has_no_line() -> None:
    nothing = dict.fromkeys(("init_seconds", "train_began", "train_ended", "converged", "rates", "metric"))
    run = make_run(**nothing, epochs=[], evaluations=[], notes=[], losses=[])
    assert [line["event"] for line in lines_of(make_training(run))] == ["SUBMIT_INFO", "INIT_START"]


def test_all_values_of_a_metric_are_there_and_read_back(tmp_path: Path) -> None:
    aims = {"ppl": {"target": 8.0, "better": "lower"}, "bleu": {}}
    run = make_run(metrics={"ppl": 7.5, "bleu": None})
    last = run.evaluations[-1].model_copy(update={"others": {"ppl": 7.5, "bleu": None}})
    record = make_training(run.model_copy(update={"evaluations": (*run.evaluations[:-1], last)}), others=aims)
    (evaluation,) = (line["value"] for line in lines_of(record)[-6:] if line["event"] == "EVALUATE")
    assert (evaluation["top1"], evaluation["ppl"], evaluation["bleu"]) == (0.95, 7.5, None)
    (tmp_path / "rank0.log").write_text(perflog(record, record.runs[0]), encoding="utf-8")
    read = read_perflog([tmp_path / "rank0.log"])
    assert read.others == record.others and read.runs[0].metrics == {"ppl": 7.5, "bleu": None}
    assert read.runs[0].evaluations[-1].others == {"ppl": 7.5, "bleu": None}
