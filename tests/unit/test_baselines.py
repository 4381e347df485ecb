"""Which figures may be held against which, and what is too slow."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pytest_benchmark.stats import Stats
from pytest_benchmark.storage.file import FileStorage
from pytest_benchmark.utils import parse_compare_fail

from fixtures.outputs import baselines
from fixtures.outputs.baselines import COMPARISON, Comparison
from fixtures.outputs.benchmark import benchmark_names, hand_over, replayed_clock
from fixtures.outputs.reporting import NOT_COMPARED, RECORDS
from proofmark.record.envelope import CaseRecord
from proofmark.record.parts import Verdict, VerdictKind
from proofmark.rules.config import EffectiveConfig
from tests.reports.records import make_record
from tests.training_records import make_training

HERE = {"vendor": "acme", "chip": "A", "chip_units": 1, "processor": "p", "cores": 2}
STATS = dict.fromkeys(
    "min max mean stddev rounds median iqr q1 q3 iqr_outliers stddev_outliers ld15iqr hd15iqr ops total".split(), 1.0
)


def task(**configurations: Any) -> EffectiveConfig:
    return EffectiveConfig(
        "inference", "tiny", "embedded", "acme", {"target": 0.9}, {"batch_size": 4, **configurations}
    )


def entry(of: EffectiveConfig, **changes: Any) -> dict[str, Any]:
    config = {**of.as_dict()["parameters"], **of.as_dict()["configurations"]}
    info = {"suite": of.suite, "case": of.case, "profile": of.profile, "config_hash": of.hash, "config": config}
    stats = {**STATS, "outliers": "0;0"}
    return {"fullname": "test_core[tiny] 1a2b", "extra_info": {**info, **HERE, **changes}, "stats": stats}


def comparison(*entries: dict[str, Any], checks: tuple[str, ...] = ()) -> Comparison:
    return Comparison(True, [parse_compare_fail(check) for check in checks], {"0001_main.json": list(entries)})


def unlike(*entries: dict[str, Any], of: EffectiveConfig | None = None) -> str | None:
    return baselines._unlike(comparison(*entries), of or task(), HERE)


def test_a_like_baseline_is_found_among_others() -> None:
    assert unlike(entry(task(batch_size=32)), entry(task())) is None


def test_the_nearest_unlike_baseline_is_told() -> None:
    message = unlike(entry(task(batch_size=32), chip="B"), entry(task(batch_size=8)))
    assert message is not None and "batch_size: 8 there, 4 here" in message and "chip" not in message


@pytest.mark.parametrize("key", HERE)
def test_an_unlike_machine_is_refused(key: str) -> None:
    message = unlike(entry(task(), **{key: "another"}))
    assert message is not None and f"{key}: 'another' there, {HERE[key]!r} here" in message


def test_a_case_without_a_baseline_is_told() -> None:
    message = unlike(entry(task(), case="other"))
    assert message is not None and "inference/tiny is not among the figures of 0001_main.json" in message


def test_a_task_of_equal_settings_but_another_hash_is_another() -> None:
    assert unlike(entry(task(), config_hash="0")) is not None


class Measured(dict[str, Any]):
    """Stands in for pytest-benchmark's."""

    name = "core"

    def __init__(self, stats: dict[str, Any], fullname: str) -> None:
        super().__init__(stats)
        self.fullname = fullname


def slower(now: float, *checks: str, name: str = "test_core[tiny] 1a2b") -> list[str]:
    bench = Measured({**STATS, "min": now}, name)
    return list(baselines._slower(comparison(entry(task()), checks=checks), bench))


def test_what_is_slower_than_allowed_is_told() -> None:
    assert slower(1.04, "min:5%") == slower(0.1, "min:5%") == []
    (message,) = slower(1.06, "min:5%")
    assert "core: slower than --benchmark-compare-fail allows: min 1.06 s per item against 1 s" in message
    assert "(+6.0%)" in message
    assert len(slower(1.6, "min:5%", "min:0.5")) == 2
    assert slower(9.0) == []


def test_a_gate_that_has_nothing_to_hold_a_figure_against_does_not_pass_it() -> None:
    (message,) = slower(1.0, "min:5%", name="another")
    assert "there is no baseline" in message


@pytest.mark.parametrize("change", [{"stats": None}, {"extra_info": {}}, {"fullname": None}, {"stats": {"min": 1}}])
def test_an_entry_of_others_or_a_damaged_one_is_no_baseline(change: dict[str, Any]) -> None:
    assert baselines._is_ours(entry(task()))
    assert not baselines._is_ours({**entry(task()), **change})


@pytest.mark.parametrize(
    "asked, expected",
    [
        (True, "there is no such file"),
        ("0009", "there is no such file"),
        ("a/b/c", "isn't an existing file or acceptable glob"),
        ("damaged.json", "Failed to load damaged.json"),
        ("empty.json", "empty.json has no figures of Proofmark"),
        ("foreign.json", "foreign.json has no figures of Proofmark"),
    ],
)
def test_a_baseline_that_is_none_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asked: Any, expected: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("damaged.json").write_text("{")
    Path("empty.json").write_text('{"benchmarks": []}')
    Path("foreign.json").write_text(json.dumps({"benchmarks": [{"fullname": "x", "stats": STATS}]}))

    def warn(text: str) -> None:
        import warnings

        warnings.warn(text, stacklevel=1)

    assert expected in refusal(tmp_path, asked, warn)


def refusal(folder: Path, asked: Any, warn: Any = print) -> str:
    session = SimpleNamespace(storage=FileStorage(folder / "baselines", SimpleNamespace(warning=warn)))
    config: Any = SimpleNamespace(_benchmarksession=session)
    with pytest.raises(pytest.UsageError, match="--benchmark-compare") as refused:
        baselines._load(config, Comparison(asked, []))
    return str(refused.value)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -1.0, True, False, 10**400])
def test_a_baseline_that_nothing_is_slower_than_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    odd = entry(task())
    odd["stats"]["mean"] = value
    Path("odd.json").write_text(json.dumps({"benchmarks": [entry(task()), odd]}))
    message = refusal(tmp_path, "odd.json")
    assert message.startswith(
        "--benchmark-compare odd.json: odd.json: benchmarks[1].stats.mean: expected a number from 0 up"
    )
    assert "found " in message and "--benchmark-save" in message and "\n" not in message and len(message) < 300


def test_a_gate_without_a_baseline_is_refused() -> None:
    option = SimpleNamespace(benchmark_compare=[], benchmark_compare_fail=[parse_compare_fail("min:5%")])
    config: Any = SimpleNamespace(option=option, stash={})
    with pytest.raises(pytest.UsageError, match="needs --benchmark-compare"):
        baselines.pytest_configure(config)


def test_pytest_benchmark_itself_compares_nothing() -> None:
    option = SimpleNamespace(benchmark_compare="0001", benchmark_compare_fail=None)
    config: Any = SimpleNamespace(option=option, stash={})
    baselines.pytest_configure(config)
    assert option.benchmark_compare == [] and config.stash[COMPARISON].asked == "0001"


def finished(*records: CaseRecord, **measured: str) -> Any:
    """The configuration of a session that was to compare; `measured` has full names of figures by their run."""
    benches = [SimpleNamespace(extra_info={"run": run}, fullname=name, name="core") for run, name in measured.items()]
    stash = {COMPARISON: comparison(entry(task())), RECORDS: [(record, Path()) for record in records]}
    config = SimpleNamespace(stash=stash, _benchmarksession=SimpleNamespace(benchmarks=benches))
    session: Any = SimpleNamespace(config=config)
    next(baselines.pytest_sessionfinish(session))
    return config


def test_a_run_that_was_to_be_compared_and_was_not_is_told() -> None:
    record = make_record()
    for partial, why in ((True, "only some tests of the case were selected"), (False, "--benchmark-disable")):
        config = finished(record.model_copy(update={"partial": partial}))
        ((run, message),) = config.stash[NOT_COMPARED]
        assert run == record.run_name and message.startswith("--benchmark-compare: ") and why in message
    assert NOT_COMPARED in finished(record, **{record.run_name: "of another machine"}).stash
    assert NOT_COMPARED not in finished(record, **{record.run_name: entry(task())["fullname"]}).stash


def test_of_a_run_whose_speed_is_withheld_nothing_was_to_be_compared() -> None:
    failed = Verdict(kind=VerdictKind.FAIL_ACCURACY)
    record = make_record().model_copy(update={"verdict": failed})
    assert NOT_COMPARED not in finished(record).stash
    assert NOT_COMPARED not in finished(record.model_copy(update={"partial": True})).stash, "its verdict counts"


def test_names_tell_unlike_runs_apart() -> None:
    """Each difference gives another full name and another table; the name itself has what people tell runs by."""
    records = [
        make_record(),
        make_record(vendor="acme"),
        make_record(compiler="inductor"),
        make_record(precision="bf16"),
        make_record(profile="standard"),
        make_record(config={"batch_size": 32}),
        make_training(),
        make_training(scale="1x8"),
        make_training(global_batch_size=7),
    ]
    found = [benchmark_names(record, "core", "suites/x.py::T::test_core") for record in records]
    for key in ("name", "fullname", "group"):
        assert len({names[key] for names in found}) == len(records), key
    assert found[0]["name"] == "test_core[resnet50, cpu, onnxruntime, fp16, embedded, batch 64]"
    other_hash = benchmark_names(make_record(config_hash="0" * 64), "core", "suites/x.py::T::test_core")
    assert other_hash["name"] == found[0]["name"] and other_hash["fullname"] != found[0]["fullname"]


class Replayed:
    """Stands in for pytest-benchmark's fixture: what its clock shows of each round goes into its statistics."""

    def __init__(self) -> None:
        self.extra_info = dict[str, Any]()
        self.stats: Any = Stats()  # type: ignore[no-untyped-call]

    def pedantic(self, target: Any, setup: Any, rounds: int) -> None:
        for _ in range(rounds):
            arguments, _ = setup()
            target(*arguments)
            self.stats.update(replayed_clock())


def test_mean_and_ops_are_of_all_items_and_all_seconds() -> None:
    """2,000 samples at 100/s and 10,000 at 80/s are 82.8/s, not 88.9/s."""
    benchmark, node = Replayed(), SimpleNamespace(nodeid="test_core", stash={})
    hand_over(benchmark, node, make_training(), "raw", [2_000, 10_000], [20.0, 125.0])
    assert benchmark.extra_info["items_per_second"] == pytest.approx(12_000 / 145, rel=1e-12)
    assert benchmark.stats.ops == pytest.approx(12_000 / 145, rel=1e-12)
    assert benchmark.stats.mean == pytest.approx(145 / 12_000, rel=1e-12)
    assert benchmark.extra_info["items_per_second_rounds"] == [100.0, 80.0]
