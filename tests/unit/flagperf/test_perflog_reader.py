"""FlagPerf's logs as records: what they say, what they leave out, and any rubbish."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proofmark.errors import UsageError
from proofmark.flagperf.__main__ import main as flagperf_main
from proofmark.flagperf.perflog_reader import read_perflog
from proofmark.literal import MISSING
from proofmark.record.parts import VerdictKind
from proofmark.training.outcome.record import Rates, SeedRun, TrainingRecord
from reports.content.withholding import without_speeds
from reports.html import write_html
from reports.terminal import summary_lines
from suites.training.report.perflog import perflog
from tests.training_records import make_run, make_training

FILE = "/workspace/flagperf/training/benchmarks/cpm/pytorch/run_pretraining.py"


def line(name: str, value: Any = None, time_ms: int = 1669034171032, rank: int = 0) -> str:
    """A line as FlagPerf prints it, bare NaN and all."""
    content = {"event": name} if value is None else {"event": name, "value": value}
    metadata = {"file": FILE, "lineno": 127, "time_ms": time_ms, "rank": rank}
    return f"[PerfLog] {json.dumps({**content, 'metadata': metadata})}"


STEP = {
    "loss": 2.679504871368408,
    "embedding_average": 0.916015625,
    "epoch": 1,
    "end_training": True,
    "global_steps": 3397,
    "num_trained_samples": 869632,
    "learning_rate": 0.000175375,
    "seq/s": 822.455385237589,
}
FINISHED = {
    "e2e_time": 1661.6114165782928,
    "training_sequences_per_second": 579.0933420700227,
    "converged": True,
    "final_loss": 3.066718101501465,
    "final_mlm_accuracy": 0.920166015625,
    "raw_train_time": 1501.713,
    "init_time": 148.937,
}


def flagperf(finished: dict[str, Any] | None = FINISHED, rank: int = 0) -> list[str]:
    """The end of a log as FlagPerf's guide shows it, other text in between."""
    lines = [
        "WARNING: setting OMP_NUM_THREADS to 1",
        line("SUBMIT_INFO", rank=rank),
        line("INIT_START", time_ms=1669032500000, rank=rank),
        line("TRAIN_START", time_ms=1669032669000, rank=rank),
        "see [PerfLog] below",
        f"0%| {line('STEP_END', STEP, rank=rank)} 12.3it/s",
        line("EVALUATE", rank=rank),
        line("TRAIN_END", time_ms=1669034171159, rank=rank),
        "main out out length is 2",
    ]
    return lines if finished is None else [*lines, line("FINISHED", finished, 1669034171646, rank)]


def read(folder: Path, *lines: str) -> TrainingRecord:
    path = folder / "rank0.out.log"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    record = read_perflog([path])
    saved = folder / "record.json"
    record.save(saved)
    assert TrainingRecord.load(saved) == record
    assert record.figures
    return record


def kind(record: TrainingRecord) -> VerdictKind:
    assert record.verdict is not None
    return record.verdict.kind


@pytest.mark.parametrize("rank", [0, -1, 5])
def test_flagperfs_own_log(tmp_path: Path, rank: int) -> None:
    record = read(tmp_path, *flagperf(rank=rank))
    (run,) = record.runs
    assert (record.case, record.metric, record.target, record.nproc) == ("cpm", "mlm_accuracy", None, None)
    assert (run.converged, run.metric, run.steps, run.samples) == (True, 0.920166015625, 3397, 869632)
    assert (run.e2e_seconds, run.init_seconds, run.train_seconds) == (1661.6114165782928, 148.937, 1501.713)
    assert run.rates == Rates(raw=579.0933420700227, no_eval=None, pure_compute=None)
    assert run.no_eval_seconds is None and run.seed is None and record.host is None
    assert kind(record) is VerdictKind.INSUFFICIENT, "nobody here measured it"
    write_html([record], tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "(not recorded)" in page and "None" not in page
    assert "579.1 samples/s" in "\n".join(summary_lines([record]))


@pytest.mark.parametrize(
    "finished, reason",
    [(FINISHED, "no evaluation says when"), (FINISHED | {"converged": False}, "not every run reached the target")],
)
def test_a_log_that_begins_after_the_training_says_no_time_to_the_target(
    tmp_path: Path, finished: dict[str, Any], reason: str
) -> None:
    record = read(tmp_path, *(each for each in flagperf(finished) if "_START" not in each))
    assert [each.seconds for each in record.runs[0].evaluations] == [None] and record.seconds_to_target is None
    (figure,) = (each for each in record.figures if each.key == "seconds_to_target")
    assert (figure.value, figure.reason) == (None, reason)


@pytest.mark.parametrize(
    "finished, expected",
    [
        (None, VerdictKind.ERROR),
        ({}, VerdictKind.ERROR),
        ({"e2e_time": 3.0}, VerdictKind.ERROR),
        (FINISHED | {"converged": "true"}, VerdictKind.ERROR),
        (FINISHED | {"converged": False}, VerdictKind.FAIL_ACCURACY),
        (FINISHED | {"converged": False, "final_mlm_accuracy": float("nan")}, VerdictKind.FAIL_ACCURACY),
        (FINISHED | {"final_mlm_accuracy": float("nan")}, VerdictKind.ERROR),
        (FINISHED | {"throughput(ips)_raw": 5.0, "throughput(ips)_pure_compute": 4.0}, VerdictKind.ERROR),
        (FINISHED | {"training_sequences_per_second": -1.0}, VerdictKind.ERROR),
    ],
)
def test_never_a_pass(tmp_path: Path, finished: dict[str, Any] | None, expected: VerdictKind) -> None:
    assert kind(read(tmp_path, *flagperf(finished))) is expected


@pytest.mark.parametrize("name", ["final_acc1", "final_accuracy", "final_mAP", "acc", "rouge1", "rougeLsum"])
def test_names_of_metrics(tmp_path: Path, name: str) -> None:
    finished = {"e2e_time": 1.0, "converged": True, name: 0.8, "final_loss": 2.0}
    record = read(tmp_path, *flagperf(finished))
    assert (record.metric, record.runs[0].metric, record.better) == (name.removeprefix("final_"), 0.8, "higher")
    assert read(tmp_path, *flagperf({**finished, name: None, "val_loss": 2.1})).metric == name.removeprefix("final_")


def test_all_that_a_summary_is_judged_by(tmp_path: Path) -> None:
    finished = {"converged": True, "rouge1": 40.5, "rouge2": 18.1, "rougeL": 28.4, "rougeLsum": 37.9}
    record = read(tmp_path, *flagperf(finished))
    assert (record.metric, record.runs[0].metric) == ("rouge1", 40.5)
    assert record.runs[0].metrics == {"rouge2": 18.1, "rougeL": 28.4, "rougeLsum": 37.9}


@pytest.mark.parametrize(
    "rates, expected",
    [
        ({"training_tokens_per_second": 5000.0}, 5000.0),
        ({"training_tokens_per_second": 5000.0, "training_ntokens_per_second": 4500}, 4500.0),
        ({"training_tokens_per_second": 5000.0, "effective_tokens_per_second": 4000.0}, 4000.0),
        ({"training_tokens_per_second": -1.0}, None),
        ({"training_tokens_per_second": None}, None),
    ],
)
def test_a_token_rate_that_a_log_ends_with(tmp_path: Path, rates: dict[str, Any], expected: float | None) -> None:
    folder = tmp_path / "run20241121191924/transformer:pytorch:A100:1:8:1/round1/10.1.2.3_noderank0"
    folder.mkdir(parents=True)
    record = read(folder, *flagperf({**FINISHED, **rates}))
    each = expected and expected / 8
    assert (record.tokens_per_second, record.tokens_per_second_per_device) == (expected, each)
    assert record.runs[0].rates == Rates(raw=579.0933420700227, no_eval=None, pure_compute=None)
    assert record.item == "sample" and kind(record) is VerdictKind.INSUFFICIENT


def test_nan_is_null_and_a_torn_line_is_an_error(tmp_path: Path) -> None:
    nan = line("STEP_END", STEP | {"loss": float("nan")})
    assert "NaN" in nan
    record = read(tmp_path, *flagperf(None), nan, line("FINISHED", FINISHED))
    assert record.runs[0].losses[-1] == (3397, None)
    torn = read(tmp_path, *flagperf(), line("STEP_END", STEP)[:70])
    assert torn.corrupt_lines == 1 and kind(torn) is VerdictKind.ERROR


def test_where_the_evaluation_at_the_target_has_no_count_no_other_is_taken_for_it(tmp_path: Path) -> None:
    evaluated = [line("INIT_EVALUATION", {"acc1": 0.1}, 1669032600000), line("EVALUATE", {"eval_acc1": 75.6})]
    finished = {"train_time": 1501.0, "throughput(ips)_raw": 4475.0, "converged": True, "final_acc1": 75.6}
    record = read(tmp_path, line("TRAIN_START"), *evaluated, line("FINISHED", finished))
    (run,) = record.runs
    assert run.metric == 75.6 and run.seconds_to_target is None
    assert record.verdict and kind(record) is VerdictKind.INSUFFICIENT
    assert "1 of its evaluations do not say after how many samples" in "\n".join(record.verdict.reasons)


def rounds_of(folder: Path, *ended: dict[str, Any]) -> TrainingRecord:
    """Rounds of which each ended so, evaluated that many seconds after its training began."""
    paths = []
    for number, finished in enumerate(ended, 1):
        paths.append(folder / f"round{number}/10.1.2.3_noderank0/rank0.out.log")
        paths[-1].parent.mkdir(parents=True)
        seconds, samples = finished["raw_train_time"], {} if finished.get("uncounted") else {"num_trained_samples": 64}
        at = 1669032669000 + int(seconds * 1000)
        lines = [line("SUBMIT_INFO"), line("TRAIN_START", time_ms=1669032669000)]
        lines += [line("EVALUATE", {"mlm_accuracy": 0.92, **samples}, at), line("TRAIN_END", time_ms=at)]
        paths[-1].write_text("\n".join([*lines, line("FINISHED", FINISHED | finished, at)]))
    return read_perflog(paths)


def test_a_round_that_missed_the_target_counts_as_the_longest_in_the_mean(tmp_path: Path) -> None:
    """As in a training of our own: the mean leaves out the quickest and the slowest of five."""
    times = (100.0, 200.0, 210.0, 220.0, 50.0)
    ended = [{"raw_train_time": seconds, "converged": seconds > 50} for seconds in times]
    assert rounds_of(tmp_path / "five", *ended).seconds_to_target == pytest.approx(210)
    assert rounds_of(tmp_path / "all", *ended[:4]).seconds_to_target == pytest.approx(182.5)
    assert rounds_of(tmp_path / "two", ended[0], ended[4]).seconds_to_target is None
    uncounted = rounds_of(tmp_path / "one", *ended[:3], ended[3] | {"uncounted": True})
    assert uncounted.seconds_to_target is None, "the mean of the others is none of all"


def test_flagperfs_own_logger_is_no_case(tmp_path: Path) -> None:
    """Some lines name its file as the one that wrote them."""
    logger = line("INIT_START").replace(FILE, "/workspace/flagperf/training/benchmarks/driver/perf_logger.py")
    assert read(tmp_path, logger, *flagperf()).case == "cpm"
    assert read(tmp_path, logger).case == "unknown"


def test_the_last_run_of_a_log_counts(tmp_path: Path) -> None:
    assert kind(read(tmp_path, *flagperf(), *flagperf(None))) is VerdictKind.ERROR
    assert kind(read(tmp_path, *flagperf(None), *flagperf())) is VerdictKind.INSUFFICIENT


def test_a_round_is_its_first_rank(tmp_path: Path) -> None:
    paths = []
    for number, node, rank in [(1, 0, 1), (1, 0, 0), (1, 1, 0), (2, 0, 0)]:
        folder = tmp_path / f"round{number}" / f"10.1.2.{node}_noderank{node}"
        folder.mkdir(parents=True, exist_ok=True)
        paths.append(folder / f"rank{rank}.out.log")
        paths[-1].write_text("\n".join(flagperf(FINISHED | {"e2e_time": 100.0 * number + 10 * node + rank})))
        paths.append(folder / f"rank{rank}.err.log")
        paths[-1].write_text("a warning\n")
    record = read_perflog(paths)
    assert [run.e2e_seconds for run in record.runs] == [100.0, 200.0] and record.repeats == 2


@pytest.mark.parametrize("names", [("rank0.round1.log", "rank0.round2.log"), ("rank0.1.out.log", "rank0.2.out.log")])
def test_logs_of_several_rounds_that_lie_in_one_folder_are_a_run_each(tmp_path: Path, names: tuple[str, str]) -> None:
    for number, name in enumerate(names, 1):
        (tmp_path / name).write_text("\n".join(flagperf(FINISHED | {"e2e_time": 100.0 * number})))
    record = read_perflog([tmp_path / name for name in names])
    assert [run.e2e_seconds for run in record.runs] == [100.0, 200.0] and len(record.read_from) == 2


@pytest.mark.parametrize("name", ["rank{}.log", "rank{}.txt", "rank{}.round1.out.log", "rank{}_round1.log", "rank{}"])
def test_logs_of_several_ranks_that_are_renamed_alike_are_one_run(tmp_path: Path, name: str) -> None:
    for rank in (10, 1, 0):
        (tmp_path / name.format(rank)).write_text("\n".join(flagperf(FINISHED | {"e2e_time": 100.0 + rank})))
    record = read_perflog([tmp_path / name.format(rank) for rank in (10, 1, 0)])
    assert [run.e2e_seconds for run in record.runs] == [100.0] and record.read_from[0].endswith(name.format(0))


@given(
    st.lists(st.binary(max_size=80) | st.sampled_from([each.encode() for each in flagperf()]), max_size=12), st.data()
)
def test_rubbish_never_crashes_it(tmp_path_factory: pytest.TempPathFactory, pieces: list[bytes], data: Any) -> None:
    content = b"\n".join(pieces)
    cut = data.draw(st.integers(0, len(content)))
    path = tmp_path_factory.mktemp("logs") / "log"
    path.write_bytes(content[:cut] + data.draw(st.binary(max_size=3)) + content[cut:])
    try:
        record = read_perflog([path])
    except UsageError:
        return
    record.model_dump_json()
    assert kind(record) is not VerdictKind.PASS


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(), max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(sorted(FINISHED)), inner, max_size=3),
    max_leaves=4,
)
EVENTS = st.sampled_from("SUBMIT_INFO INIT_START TRAIN_START EPOCH_BEGIN EPOCH_END STEP_END EVALUATE FINISHED".split())
KEYS = sorted({*TrainingRecord.model_fields, *STEP, *FINISHED})


@settings(deadline=None)
@given(st.lists(st.tuples(EVENTS, st.dictionaries(st.sampled_from(KEYS), JSON, max_size=6)), max_size=6))
def test_values_of_any_kind_never_crash_it(tmp_path_factory: pytest.TempPathFactory, events: list[Any]) -> None:
    record = read(tmp_path_factory.mktemp("logs"), line("INIT_START"), *(line(*event) for event in events))
    assert kind(record) is not VerdictKind.PASS


def test_deep_nesting_and_what_no_record_holds(tmp_path: Path) -> None:
    deep = "[PerfLog] " + '{"a":' * 100_000
    record = read(tmp_path, deep, line("SUBMIT_INFO", {"target": [], "config": {"a": "\ud800"}}), *flagperf())
    assert record.corrupt_lines == 2 and record.target is None and kind(record) is VerdictKind.ERROR


FIGURES = st.floats(1e-3, 1e9)
NOT_IN_A_LOG = {"checks", "split", "parameters", "ranks", "evaluations", "notes", "epochs", "rates", "contention"}
SAME = set(SeedRun.model_fields) - NOT_IN_A_LOG


@given(
    st.lists(FIGURES, min_size=5, max_size=5),
    st.lists(FIGURES, min_size=3, max_size=3).map(sorted),
    st.floats(0.9, 1),
    st.booleans(),
)
def test_our_own_perflog_gives_the_same_figures(
    tmp_path_factory: pytest.TempPathFactory, times: list[float], rates: list[float], metric: float, converged: bool
) -> None:
    names = ("e2e_seconds", "train_seconds", "no_eval_seconds", "pure_compute_seconds")
    changes: dict[str, Any] = dict(zip(names, times, strict=False))
    speeds = Rates(**dict(zip(Rates.model_fields, rates, strict=True)))
    run = make_run(rates=speeds, metric=metric if converged else 0.5, converged=converged, **changes)
    written = make_training(run)
    path = tmp_path_factory.mktemp("logs") / "perflog.txt"
    path.write_text(perflog(written, run), encoding="utf-8")
    record = read_perflog([path])
    (again,) = record.runs
    shown = run if converged else without_speeds(run)
    for name in SAME:
        assert getattr(again, name) == getattr(shown, name), name
    assert again.rates == shown.rates
    assert [(e.samples, e.seconds, e.metric) for e in again.evaluations] == [
        (e.samples, e.seconds, e.metric) for e in shown.evaluations
    ]
    assert again.notes == shown.notes and again.epochs == shown.epochs
    assert record.config == written.config and record.host == written.host and record.target == written.target
    assert kind(record) is (VerdictKind.INSUFFICIENT if converged else VerdictKind.FAIL_ACCURACY)


def test_a_log_that_contradicts_itself(tmp_path: Path) -> None:
    written = perflog(make_training(make_run(metric=0.5)), make_run(metric=0.5))
    record = read(tmp_path, *written.splitlines())
    assert kind(record) is VerdictKind.ERROR and record.verdict is not None
    assert "said to have converged, but top1 0.50000 is below the target 0.9" in record.verdict.reasons[0]


@pytest.mark.parametrize(
    "finished, code",
    [
        (FINISHED, VerdictKind.INSUFFICIENT),
        (None, VerdictKind.ERROR),
        ({"converged": False}, VerdictKind.FAIL_ACCURACY),
    ],
)
def test_the_command_ends_with_the_verdicts_exit_code(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    finished: dict[str, Any] | None,
    code: VerdictKind,
) -> None:
    path = tmp_path / "log"
    path.write_text("\n".join(flagperf(finished)))
    (tmp_path / "other").write_text("nothing\n")
    assert flagperf_main(["read", str(path)]) == code.exit_code
    printed = capsys.readouterr()
    assert printed.err.startswith(f"{code}: ") and len(printed.err.splitlines()) == 1
    assert TrainingRecord.model_validate_json(printed.out).runs[0].steps == 3397
    for bad, expected in ((tmp_path / "none", "cannot be read"), (tmp_path / "other", "has no whole [PerfLog] line")):
        assert flagperf_main(["read", str(path), str(bad)]) == 4
        refused = capsys.readouterr()
        assert refused.err.startswith("ERROR: ") and expected in refused.err
        assert len(refused.err.splitlines()) == 1 and not refused.out


def test_a_log_below_a_folder_whose_name_is_no_utf_8(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """From a Windows machine: unpackers keep the bytes. What is printed is ASCII, which any terminal writes alike."""
    printed = []
    for name in (b"plain", "\u8bad\u7ec3".encode("gbk")):
        folder = tmp_path / os.fsdecode(name)
        folder.mkdir()
        (folder / "rank0.out.log").write_text("\n".join(flagperf({**FINISHED, "final_loss": None})), encoding="utf-8")
        code = flagperf_main(["read", str(folder / "rank0.out.log")])
        said = capsys.readouterr()
        assert said.out.isascii() and (code, said.err.split(":")[0]) == (12, "INSUFFICIENT")
        (tmp_path / "record.json").write_text(said.out, encoding="gbk")
        printed.append(TrainingRecord.load(tmp_path / "record.json"))
    assert printed[0].corrupt_lines == printed[1].corrupt_lines and printed[0].verdict == printed[1].verdict
    assert printed[1].read_from[0].endswith(r"\udcc1\udcb7/rank0.out.log")


def test_a_case_by_its_folder_and_all_its_metrics(tmp_path: Path) -> None:
    folder = tmp_path / "run20241121191924/mask_rcnn:pytorch_1.13:A100:2:8:1/round1/10.1.2.3_noderank0"
    folder.mkdir(parents=True)
    finished = {
        "e2e_time": 14642.0,
        "converged": True,
        "final_map_bbox": 0.376,
        "final_map_segm": 0.336,
        "final_x": None,
    }
    record = read(folder, *flagperf(finished))
    assert (record.case, record.scale, record.nnodes, record.nproc) == ("mask_rcnn", "A100x2x8", 2, 8)
    assert (record.metric, record.runs[0].metric) == ("map_bbox", 0.376)
    assert record.runs[0].metrics == {"map_segm": 0.336, "x": None}
    figures = {figure.key: figure for figure in record.figures}
    assert figures["final_metric_map_segm"].value == 0.336 and figures["final_metric_x"].reason == "no evaluation"
    (message,) = [figure.value for figure in record.figures if figure.key == "run_1"]
    assert message == f"converged, map_bbox 0.37600, map_segm 0.33600, x {MISSING}, 869632 samples"
    assert kind(record) is VerdictKind.INSUFFICIENT


@pytest.mark.parametrize("other", ["bert:pytorch_1.8:A100:1:8:1", "cpm:pytorch_1.8:A100:2:8:1"])
def test_logs_of_several_cases_are_no_one_run(tmp_path: Path, other: str) -> None:
    """As a pattern over all of a session's folders has them."""
    folders = [tmp_path / name / "round1" / "a_noderank0" for name in ("cpm:pytorch_1.8:A100:1:8:1", other)]
    for folder in folders:
        folder.mkdir(parents=True)
        (folder / "rank0.out.log").write_text("\n".join(flagperf()))
    with pytest.raises(UsageError, match="is of another case or scale than .*; read one case at a time"):
        read_perflog([folder / "rank0.out.log" for folder in folders])


TOKENS = [
    " iteration 9/ 10 | elapsed time per iteration (ms): 5120.1 |",
    "System tokens per second: 28000.0",
    "Tokens/p/s: 3500.0",
    "2024-11-21 System tokens per second: 29589.6",
    "Tokens/p/s: 3698.7",
    "MFU: 56.9%",
]


def test_a_rate_of_a_device_that_the_systems_contradicts_is_left_with_its_mfu(tmp_path: Path) -> None:
    """FlagPerf's own mistake on several nodes: by one node's devices, and times the nodes."""
    folder = tmp_path / "run20241121191924/llama3_8B:megatron:A100:2:8:1/round1/10.1.2.3_noderank0"
    folder.mkdir(parents=True)
    (folder / "rank0.log.txt").write_text("\n".join(TOKENS))
    record = read_perflog([folder / "rank0.log.txt"])
    assert (record.tokens_per_second, record.tokens_per_second_per_device) == (29589.6, 29589.6 / 16)
    assert record.utilisation.mfu is None and "3698.7 tokens/s of a device" in (record.utilisation.reason or "")


@pytest.mark.parametrize("name", ["rank0.log.txt", "noderank0.out.log"])
def test_a_language_models_rates(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "run20241121191924/llama3_8B:megatron:A100:1:8:1/round1/10.1.2.3_noderank0"
    folder.mkdir(parents=True)
    (folder / name).write_text("\n".join(TOKENS))
    record = read_perflog([folder / name])
    assert (record.case, record.scale, record.item, record.runs) == ("llama3_8B", "A100x1x8", "token", ())
    assert (record.tokens_per_second, record.tokens_per_second_per_device) == (29589.6, 3698.7)
    assert record.utilisation.mfu == 0.569 and record.target is None and record.seconds_to_target is None
    assert record.started == 1732216764.0 and record.seconds is None
    assert kind(record) is VerdictKind.INSUFFICIENT
    assert "29,590 tokens/s" in "\n".join(summary_lines([record]))
    write_html([record], tmp_path / "report.html")


@pytest.mark.parametrize(
    "line_of, mfu, expected",
    [
        ("MFU: -3.21", None, VerdictKind.INSUFFICIENT),
        ("MFU: 56.9", None, VerdictKind.INSUFFICIENT),
        ("MFU: nan", None, VerdictKind.INSUFFICIENT),
        ("MFU: 0.4", 0.4, VerdictKind.INSUFFICIENT),
        ("Tokens/p/s: -1", None, VerdictKind.ERROR),
        ("System tokens per second: nan", None, VerdictKind.ERROR),
        ("Tokens/p/s: 1e999", None, VerdictKind.ERROR),
    ],
)
def test_a_rate_that_cannot_be_is_null(tmp_path: Path, line_of: str, mfu: float | None, expected: VerdictKind) -> None:
    (tmp_path / "rank0.log.txt").write_text(f"Tokens/p/s: 100\n{line_of}\n")
    record = read_perflog([tmp_path / "rank0.log.txt"])
    assert record.utilisation.mfu == mfu and kind(record) is expected
    assert (record.case, record.scale, record.tokens_per_second) == ("unknown", "unknown", None)
    if mfu is None and expected is VerdictKind.INSUFFICIENT:
        assert "is not a share of a peak" in str(record.utilisation.reason)


def test_logs_of_two_kinds_are_no_one_case(tmp_path: Path) -> None:
    (tmp_path / "one").write_text("\n".join(flagperf()))
    (tmp_path / "two").write_text("Tokens/p/s: 100\n")
    with pytest.raises(UsageError, match="one: has no tokens per second, as other logs have"):
        read_perflog([tmp_path / "one", tmp_path / "two"])


def test_what_another_log_calls_alike_is_told_once(tmp_path: Path) -> None:
    finished = {"final_a": 1.0, "final_b.c": 2.0, "final_B_c": 3.0, "final_\u7cbe": 4.0, "final_val_ppl": 5.0}
    record = read(tmp_path, *flagperf({"converged": True, **finished}))
    assert list(record.others) == ["b.c", "val_ppl"] and record.others["val_ppl"].better == "lower"
    assert record.runs[0].metrics == {"b.c": 2.0, "B_c": 3.0, "\u7cbe": 4.0, "val_ppl": 5.0}
