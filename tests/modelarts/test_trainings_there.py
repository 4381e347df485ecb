"""The tiny case at the stand-in, as a user runs it: one option, and the record of a run here."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path
from statistics import harmonic_mean

import pytest

from tests.e2e.conftest import House, Ran, one_line_answer
from tests.modelarts.bench import Bench
from tests.modelarts.stand_in import SK, StandIn
from tests.modelarts.test_jobs_there import no_secret_below


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Path:
    """One of a test's own costs its sessions some seconds each: a single test has one."""
    path = tmp_path / "home"
    path.mkdir()
    if request.node.name == test_a_training_on_two_nodes.__name__:
        monkeypatch.setenv("HOME", str(path))
    return path


class There:
    """Sessions of a house whose cases go to the stand-in."""

    def __init__(self, house: House, bench: Bench) -> None:
        self.house, self.bench = house, bench

    def start(self, *options: str, scale: str = "2x1", trouble: str = "", suite: str = "training", **changes: object):
        variables = {**self.bench.content["environment"], "HOUSE": str(self.house.root), "TROUBLE": trouble}
        variables["TROUBLE_MARK"] = str(self.house.mark)
        file = self.bench.write(environment=variables, **changes)
        launched = ["--launcher", "modelarts", "--cloud-config", str(file)]
        launched += ["--isolation", "process"] if trouble else []  # its mark lies outside
        scaled = ("--scale", scale, "-k", scale) if suite == "training" else ()
        return self.house.start("--vendor", "cpu", *launched, *scaled, *options, suite=suite)

    def run(self, *options: str, **changes: object) -> Ran:
        return self.house.end(self.start(*options, **changes))


@pytest.fixture
def there(house: House, bench: Bench) -> There:
    return There(house, bench)


def test_a_training_on_two_nodes(there: There, stand_in: StandIn) -> None:
    ran = there.run()
    assert ran.code == 0, ran.output
    record = ran.training("2x1")
    assert record.verdict is not None and record.verdict.kind == "PASS"
    (run,) = record.runs
    assert [node.name for node in run.launched] == ["worker-0", "worker-1"]
    assert run.converged and [rank.node for rank in run.ranks] == [0, 1] and run.monitoring is not None
    assert run.instances is not None and run.instances.mode == "sum" and run.metric == run.instances.accuracies[0]
    folder = ran.run_dir / "training/tiny/2x1/round1"
    said = [json.loads(path.read_text()) for path in sorted(folder.glob("noderank*/result*.json"))]
    throughput = sum(rank["samples"] / rank["seconds"] for rank in said)
    assert len(said) == 2 and sum(rank["samples"] for rank in said) == run.samples
    assert run.rates is not None and run.instances.throughput == pytest.approx(throughput)
    assert run.rates.raw <= throughput * (1 + 1e-6), "all ranks have the slowest one's time"
    assert run.e2e_seconds < time.time() - run.started
    assert "Running" in ran.output and "Completed" in ran.output and "throughput_list" in ran.output
    assert json.loads((folder / "train_result_info.json").read_text())["train_result_info"]["accuracy"] == run.metric
    assert len(list((folder / "log").glob("modelarts-job-*-worker-*.log"))) == 2
    assert SK not in ran.output
    no_secret_below(ran.run_dir)
    no_secret_below(there.house.cache)


def test_a_training_on_each_of_two_servers(there: There) -> None:
    """Of whom each takes cores from the other: how quiet it was is not the question here."""
    ran = there.run(scale="1x1", aggregate="per_server_mean", servers=2)
    record = ran.training("1x1")
    assert record.verdict is not None and str(record.verdict.kind) in ("PASS", "AMBIGUOUS"), ran.output
    assert ran.code == record.verdict.kind.exit_code
    (run,) = record.runs
    assert run.instances is not None and run.instances.mode == "per_server_mean"
    (server,) = run.servers
    assert [run.metric, server.metric] == list(run.instances.accuracies) and run.converged and server.converged
    assert {check.name for check in server.checks} == {check.name for check in run.checks}
    assert run.rates is not None and server.rates is not None and run.samples == server.samples
    assert record.rates["raw"].value == pytest.approx(harmonic_mean([run.rates.raw, server.rates.raw])), "all over all"


def test_a_rank_that_ends_badly(there: There, stand_in: StandIn) -> None:
    ran = there.run(trouble="tiny.rank1.step3=exit3")
    assert ran.code == 17, ran.output
    (run,) = ran.training("2x1").runs
    assert run.failure is not None and run.failure.cause == "rank 1 on worker-1 ended with exit code 3", ran.output
    assert len(list((ran.run_dir / "training/tiny/2x1/round1/log").iterdir())) == 2


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda number: number.name)
def test_an_interrupt_ends_the_job(there: There, stand_in: StandIn, number: signal.Signals) -> None:
    stand_in.held = "Running"
    session = there.start()
    there.bench.until(lambda: stand_in.jobs and stand_in.job.phase == "Running", "job that runs")
    os.kill(session.pid, number)
    there.bench.until(lambda: stand_in.job.phase == "Terminated", "end of the job")
    ran = there.house.end(session)
    assert ran.code == 2 and stand_in.asked["stop"] == 1, ran.output


def test_what_cannot_be_is_told_in_one_line(there: There, stand_in: StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    one_line_answer(there.run(suite="inference"), "takes whole jobs only; these are run from here: inference")
    one_line_answer(there.run(flavor="modelarts.vm.cpu.8u"), "there is no flavor modelarts.vm.cpu.8u here")
    one_line_answer(
        there.house.run("--cloud-config", str(there.bench.file)), "--cloud-config is for --launcher modelarts"
    )
    one_line_answer(there.house.run("--launcher", "modelarts"), "needs --cloud-config FILE")
    directory = str(there.house.root)
    given = there.run("--resume", directory, "--data-dir", directory)
    none = "nodes of --launcher modelarts have no directory of this machine"
    one_line_answer(given, f"--resume: {none}")
    assert f"--data-dir: {none}: theirs is `data_url` in" in given.output
    stand_in.max_nodes = 1
    own = there.house.root / "vendors/cpu/configs/training/tiny/2x1.yaml"  # is offered, and to be skipped
    own.parent.mkdir(parents=True)
    own.touch()
    alone = there.run("-k", "tiny", "--preflight-only", scale="1x1", nodes=1)
    assert alone.code == 0 and ": 1 x modelarts.vm.cpu.2u can be asked for" in alone.output, alone.output
    stand_in.max_nodes = 4
    looked = there.run("--preflight-only")
    assert looked.code == 0 and "can be asked for" in looked.output and not stand_in.jobs, looked.output
