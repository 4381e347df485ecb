"""A tiny case trained for real: torchrun, one process and two."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from proofmark.training.logs.collect import collect
from proofmark.training.outcome.record import TrainingRecord
from proofmark.vendor.hardware.processor import usable_cores
from tests.e2e.conftest import House, Ran, clean, one_line_answer
from tests.reports.xunit2 import ended, properties, suites
from tests.unit.wall.test_wall import behind, has_landlock


def kind(record: TrainingRecord) -> str:
    assert record.verdict is not None
    return str(record.verdict.kind)


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> tuple[House, Ran]:
    """Both scales that the CPU vendor offers, all reports switched on."""
    house = House(tmp_path_factory.mktemp("training") / "house")
    options = ("--junitxml=junit.xml", "--alluredir=allure", "--benchmark-json=benchmark.json")
    ran = house.run(*options, vendor="cpu", suite="training")
    assert house.becomes_empty()
    return house, ran


def test_passes_at_both_scales(session: tuple[House, Ran]) -> None:
    ran = session[1]
    assert ran.code == 0, ran.output
    clean(ran)
    for scale, world in (("1x1", 1), ("1x2", 2)):
        record = ran.training(scale)
        (run,) = record.runs
        assert kind(record) == "PASS" and run.converged, ran.output
        assert run.metric is not None and run.metric >= record.target
        assert record.world == world == len(run.ranks)
        kept = record.isolation["ranks"]
        assert kept.network == ("closed" if world == 1 else "between ranks") or not has_landlock()
        assert {rank.isolation for rank in run.ranks} == {kept.kind}
        assert not list(ran.run_dir.rglob("own[0-9]"))
        assert run.samples == run.samples_to_target and run.samples % 203 == 0  # whole epochs, short batches too
        assert run.rates and run.rates.pure_compute >= run.rates.no_eval >= run.rates.raw
        assert [host and host.cores for host in run.nodes] == [usable_cores()] and {r.node for r in run.ranks} == {0}
        shares = [rank.communication.share if rank.communication else None for rank in run.ranks]
        assert all(share is not None and 0 < share < 1 for share in shares) if world > 1 else shares == [None]


def test_a_log_cut_anywhere_is_no_pass(session: tuple[House, Ran], tmp_path: Path) -> None:
    folder = tmp_path / "1x2"
    shutil.copytree(session[1].run_dir / "training" / "tiny" / "1x2", folder)
    assert kind(collect(folder)) == "PASS"
    for log in ("events.jsonl", *(f"round1/noderank0/rank{rank}.jsonl" for rank in (0, 1))):
        whole = (folder / log).read_bytes()
        lines = whole.splitlines(keepends=True)
        for end in (len(lines) - 1, len(lines) - 2):
            (folder / log).write_bytes(b"".join(lines[:end]) + lines[end][:20])
            assert kind(collect(folder)) == "ERROR", f"{log}: {lines[end]!r}"
        (folder / log).write_bytes(whole)


def test_batches_are_global(session: tuple[House, Ran]) -> None:
    one, two = (session[1].training(scale) for scale in ("1x1", "1x2"))
    assert one.global_batch_size == two.global_batch_size == 16
    assert (one.train_batch_size, two.train_batch_size) == (16, 8)
    assert one.runs[0].losses and len(one.runs[0].losses) == one.runs[0].steps


def test_summary_and_reports(session: tuple[House, Ran]) -> None:
    house, ran = session
    assert "VERDICT PASS" in ran.output and "time to target" in ran.output
    page = (ran.run_dir / "report.html").read_text()
    assert "tiny 1x2" in page and "top1 against target" in page.lower() and "where the time went" in page.lower()
    rows = json.loads((house.root / "benchmark.json").read_text())["benchmarks"]
    assert len(rows) == 6 and all(row["extra_info"]["items_per_second"] > 0 for row in rows)
    for row in rows:  # its time is that of an item, and not the time to the target
        assert row["stats"]["ops"] == pytest.approx(row["extra_info"]["items_per_second"])
        assert row["extra_info"]["scale"] in row["name"] and len(row["extra_info"]["seconds_to_target"]) == 1


def test_each_scale_is_a_suite_in_junit_and_a_history_in_allure(session: tuple[House, Ran]) -> None:
    house, ran = session
    junit = suites(house.root / "junit.xml")
    assert sorted(junit) == ["training/tiny/1x1", "training/tiny/1x2"]
    assert {properties(suite)["verdict"] for suite in junit.values()} == {"PASS"}
    results = [json.loads(path.read_text()) for path in (house.root / "allure").glob("*-result.json")]
    assert len({result["historyId"] for result in results}) == len(results) == 14
    assert {result["titlePath"][1] for result in results} == {"tiny"}
    chip = ran.training("1x1").chip.name
    assert f"tiny: verdict (cpu, {chip}, 1x2, fp32, embedded)" in {result["name"] for result in results}


def test_logs_for_other_tools(session: tuple[House, Ran]) -> None:
    for scale in ("1x1", "1x2"):
        record, folder = session[1].training(scale), session[1].run_dir / "training" / "tiny" / scale / "round1"
        (run,) = record.runs
        perflog, mllog = ((folder / name).read_text() for name in ("perflog.txt", "mllog.txt"))
        assert perflog.count('"event": "EPOCH_END"') == len(run.epochs) == run.samples // 203
        assert perflog.count('"event": "STEP_END"') == len(run.notes) > run.steps // 2
        assert f'"final_top1": {run.metric}' in perflog.splitlines()[-1]
        assert mllog.count('"key": "eval_start"') == len(run.evaluations) - 1
        assert f'"eval_samples", "value": {record.validation_items}' in mllog and record.validation_items == 203
        assert '"status": "success"' in mllog.splitlines()[-1]


def overridden(house: House, scale: str, **values: Any) -> Path:
    path = house.root / "vendors/cpu/configs/training/tiny" / f"{scale}.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(values))
    return path


def test_illegal_overrides_are_refused_all_at_once(house: House) -> None:
    overridden(house, "1x1", target=0.1, seed=5, nonsense=1, global_batch_size="many", eval_batch_size=64)
    ran = house.run("-k", "1x1", vendor="cpu", suite="training")
    record = ran.training("1x1")
    assert ran.code == 16 and kind(record) == "FAIL_LEGALITY", ran.output
    assert sorted(p.key for p in record.problems) == [
        "eval_batch_size", "global_batch_size", "nonsense", "seed", "target",
    ]  # fmt: skip
    assert not record.runs
    clean(ran)


@pytest.mark.parametrize(("suite", "options"), [("training", ["-k", "1x1"]), ("inference", ["--compiler", "null"])])
def test_what_torch_computes_on_the_processor_is_no_chips(house: House, suite: str, options: list[str]) -> None:
    house.has_a_device_apart()
    ran = house.run(*options, suite=suite)
    verdict = (ran.training("1x1") if suite == "training" else ran.record("tiny")).verdict
    assert ran.code == 10 and verdict is not None and verdict.kind == "UNSUPPORTED", ran.output
    assert "torch_device() says 'cpu', and the figure would be the processor's" in verdict.reasons[0]
    clean(ran)


def test_a_precision_that_the_vendor_does_not_declare_is_not_trained(house: House) -> None:
    ran = house.run("-k", "1x1", "--precision", "tf32", vendor="cpu", suite="training")
    record = ran.training("1x1")
    assert ran.code == 10 and kind(record) == "UNSUPPORTED" and not record.runs, ran.output
    assert "vendor cpu does not train at tf32: it declares bf16, fp16, fp32" in ran.output
    assert "failed" not in ran.output and "withheld" in ran.output
    clean(ran)


def test_train_batch_size_changes_the_global_batch_on_record(house: House) -> None:
    overridden(house, "1x2", train_batch_size=16, parallel="fsdp", precision="bf16", gradient_accumulation_steps=2)
    ran = house.run("-k", "1x2", vendor="cpu", suite="training")
    record = ran.training("1x2")
    assert kind(record) == "PASS", ran.output
    assert record.global_batch_size == 64
    assert {o.key: o.origin for o in record.overrides}["global_batch_size"] == "train_batch_size at scale 1x2"


def test_target_never_reached(house: House) -> None:
    ran = house.run("-k", "1x1", "--set", "learning_rate=0.00001", "--repeat", "2", vendor="cpu", suite="training")
    record = ran.training("1x1")
    assert ran.code == 14 and kind(record) == "FAIL_ACCURACY", ran.output
    assert [run.seed for run in record.runs] == [0, 1]
    assert len(record.runs[0].evaluations) == 7, "the curve is there"
    assert "is below the target 0.9 after 1218 samples" in ran.output


def test_same_seed_same_losses(session: tuple[House, Ran], house: House) -> None:
    again = house.run("-k", "1x2", vendor="cpu", suite="training")
    runs = [ran.training("1x2").runs[0] for ran in (session[1], again)]
    assert runs[0].losses == runs[1].losses
    assert [e.metric for e in runs[0].evaluations] == [e.metric for e in runs[1].evaluations]


def test_a_vendors_own_test_of_two_processes(house: House) -> None:
    house.root.joinpath("exchange.py").write_text(
        "import torch, torch.distributed as dist\n"
        "dist.init_process_group('gloo')\n"
        "total = torch.ones(1)\n"
        "dist.all_reduce(total)\n"
        "print(f'rank {dist.get_rank()} has {total.item():g}', flush=True)\n"
        "dist.destroy_process_group()\n"
    )
    house.root.joinpath("suites/training/test_own.py").write_text(
        "def test_exchange(torchrun):\n"
        "    ran = torchrun('exchange', nproc=2)\n"
        "    assert ran.returncode == 0 and 'rank 1 has 2' in ran.stdout, ran.stdout\n"
    )
    ran = house.run("-k", "own", vendor="cpu", suite="training")
    assert ran.code == 0, ran.output


def test_a_run_list(house: House) -> None:
    house.root.joinpath("host.yaml").write_text("VENDOR: cpu\nCASES:\n  'tiny:pytorch:epyc-or-other:1:2:2': .\n")
    listed = ("--host-config", "host.yaml", "--profile", "embedded", "--junitxml=junit.xml")
    beside = house.end(house.start(*listed, "--scale=1x2", suite="training"))
    one_line_answer(beside, "--scale 1x2: the run list host.yaml says the scales: remove --scale, or add an entry")
    ran = house.end(house.start(*listed, suite="training"))
    assert "NOT RUN training/tiny/epyc-or-otherx1x2: scale epyc-or-otherx1x2 is for another chip than" in ran.output
    assert ran.code == 12, ran.output
    clean(ran)
    (suite,) = suites(house.root / "junit.xml").values()
    ((_, message),) = ended(suite, "error")
    assert suite.attrib["name"] == "training/tiny/epyc-or-otherx1x2" and "is for another chip" in message
    chip = house.root.joinpath("vendors/fake/__init__.py").read_text()
    assert "fake chip" in chip
    two = "'tiny:pytorch:chip:1:2:2': .\n  'tiny:pytorch:chip:2:1:1': ."
    house.root.joinpath("host.yaml").write_text(f"VENDOR: fake\nCASES:\n  {two}\n")
    ran = house.end(house.start(*listed, suite="training"))
    assert "NOT RUN training/tiny/chipx2x1: scale chipx2x1 needs 2 hosts; this launcher has 1" in ran.output
    assert ran.code == 12, "what could be run passes, and the rest was asked for"
    record = ran.training("chipx1x2")
    assert kind(record) == "PASS" and [run.seed for run in record.runs] == [0, 1], ran.output
    aside = "CASES: tiny:pytorch:chip:1:2:2: the embedded profile brings its own data, and ignores ."
    assert f"WARNING host.yaml: {aside}" in ran.output


def test_a_scale_that_nobody_named_is_skipped_where_there_are_too_few_hosts(house: House) -> None:
    overridden(house, "2x1", precision="bf16")
    ran = house.run("-k", "overrides_legal", vendor="cpu", suite="training")
    assert ran.code == 0 and "scale 2x1 needs 2 hosts; this launcher has 1" in ran.output, ran.output


@pytest.mark.parametrize(
    "settings",
    [
        {"precision": "fp16", "activation_checkpointing": True, "gradient_accumulation_steps": 3},
        {"parallel": "fsdp", "activation_checkpointing": True, "num_workers": 1},
    ],
    ids=lambda settings: "-".join(settings),
)
def test_ways_to_train_on_two_processes(house: House, settings: dict[str, Any]) -> None:
    overridden(house, "1x2", **settings)
    ran = house.run("-k", "1x2", vendor="cpu", suite="training")
    record = ran.training("1x2")
    assert kind(record) == "PASS", ran.output
    assert {override.key for override in record.overrides} == set(settings)
    assert record.isolation["ranks"].kind == "wall" or not has_landlock()
    assert all(
        rank.communication and (rank.communication.share is None) == bool(rank.communication.reason)
        for rank in record.runs[0].ranks
    )


def test_a_compiled_training(house: House) -> None:
    """By the back end that users get, on one process: each would compile the same anew."""
    settings = {"precision": "bf16", "compile": True}
    overridden(house, "1x1", **settings)
    record = house.run("-k", "1x1", vendor="cpu", suite="training").training("1x1")
    assert kind(record) == "PASS", record.verdict
    assert {override.key for override in record.overrides} == set(settings)


def test_data_is_told_the_epoch_also_after_a_resumption(house: House) -> None:
    slow = ("-k", "1x1", "--set", "learning_rate=0.00001", "--set", "checkpoint_steps=20")
    whole = house.run(*slow, vendor="cpu", suite="training")
    assert whole.training("1x1").runs[0].checkpoints[-1] == 60, "in the middle of epoch 4, the fifth of six"
    again = house.run(
        *slow, "--resume", str(whole.run_dir), vendor="cpu", suite="training", trouble="tiny.rank0.epoch4=raise"
    )
    (run,) = again.training("1x1").runs
    assert (run.resumed_from, run.steps) == (60, 60), again.output
    assert run.failure and "trouble in rank0.epoch4" in run.failure.cause


def test_the_standard_profile_needs_data(house: House) -> None:
    yaml = house.root / "suites/training/tiny.yaml"
    yaml.write_text(yaml.read_text() + "  standard:\n    parameters: {target: 0.9, flops: 480, max_epoch: 1}\n")
    standard = ("--profile", "standard")
    for options, expected in (
        ((), "profile standard needs the data set: --data-dir DIR"),
        (("--data-dir", "nowhere"), "no such directory"),
        (("--data-dir", ".", "--flops-convention", "flagperf"), "suite training has no MFU by FlagPerf's FLOPs"),
        (("--data-dir", ".", "--weights", "."), "case tiny, profile standard, starts with fresh weights"),
    ):
        one_line_answer(house.run(*standard, *options, vendor="cpu", suite="training"), expected)
    house.root.joinpath("host.yaml").write_text("CASES: {'tiny:pytorch:x:1:1:1': nowhere}\n")
    expected = "host.yaml: CASES: tiny:pytorch:x:1:1:1: no such directory: "
    one_line_answer(house.run(*standard, "--host-config", "host.yaml", vendor="cpu", suite="training"), expected)


LOOKS = """
import os

from suites.training import test_tiny


class TestLooks(test_tiny.TestTiny):
    def build_dataset(self, config, split):
        assert os.listdir(config.host.data_dir) == ["labels"]
        return super().build_dataset(config, split)

    def create_model(self, config):
        if "noderank0" in os.environ.get("HOME", ""):  # a rank
            print("a rank sees", os.listdir(config.host.data_dir))
        return super().create_model(config)
"""


@behind
def test_a_rank_sees_no_data_set(house: House) -> None:
    """Who loads for it does."""
    suite, data = house.root / "suites/training", house.root / "data"
    data.mkdir()
    (data / "labels").touch()
    standard = "  standard:\n    parameters: {target: 0.9, flops: 480, max_epoch: 1}\n"
    (suite / "looks.yaml").write_text((suite / "tiny.yaml").read_text() + standard)
    (suite / "test_looks.py").write_text(LOOKS)
    options = ("-k", "TestLooks and 1x1", "--profile", "standard", "--data-dir", str(data))
    ran = house.run(*options, vendor="cpu", suite="training")
    record = TrainingRecord.load(ran.run_dir / "training" / "looks" / "1x1" / "record.json")
    assert kind(record) == "ERROR" and record.runs[0].failure is not None
    assert f"PermissionError: [Errno 13] Permission denied: '{data}'" in record.runs[0].failure.cause


def test_a_broken_file_of_a_scale_ends_the_session_before_anything_runs(house: House) -> None:
    overridden(house, "1x2").write_text("learning_rate: [1\n")
    one_line_answer(house.run("-k", "1x1", vendor="cpu", suite="training"), "1x2.yaml")


def test_a_hang_timeout_that_is_none_is_refused(house: House) -> None:
    expected = "--hang-timeout: expected at least 1 second, found nan"
    one_line_answer(house.run("--hang-timeout=nan", vendor="cpu", suite="training"), expected)


def test_a_scale_that_nobody_offers_is_told(house: House) -> None:
    for named, expected in (("1x4", True), ("1x2", False)):
        ran = house.run("-k", f"nothing and {named}", vendor="cpu", suite="training")
        assert ran.code == pytest.ExitCode.NO_TESTS_COLLECTED
        assert (f"no training case is offered at scale {named}: --scale {named} adds it" in ran.output) == expected


def test_another_seed_may_do_better_where_one_diverged(house: House) -> None:
    ran = house.run("-k", "1x1", "--repeat", "2", vendor="cpu", suite="training", trouble="tiny.rank0.loss3=yes")
    record = ran.training("1x1")
    assert ran.code == 14 and len(record.runs) == 2, ran.output
