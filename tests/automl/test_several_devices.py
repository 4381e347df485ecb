"""A trial on several devices of a machine: a process on each, one trial, every image once."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import psutil
import pytest
from torch.distributed.elastic.multiprocessing.errors import ProcessFailure

from proofmark.automl.network.graph import Graph
from proofmark.automl.network.module import fresh_weights
from proofmark.automl.network.seeds import small_network
from proofmark.automl.places import places_here, places_of_tasks
from proofmark.automl.search.running import IMPORTED, MODULE, TrialProcess
from proofmark.automl.trial.several import first_killed, threads_of_rank
from proofmark.automl.trial.spec import WEIGHTS, Parent, TrialSpec
from proofmark.automl.trial.tensors import read_weights
from proofmark.errors import UsageError
from proofmark.launch.job import Launcher, LocalLauncher
from proofmark.record.events.log import read_events
from proofmark.rules.case_file import load_case_file
from proofmark.rules.config import HostSettings, resolve
from proofmark.rules.legality import OverrideLayer
from proofmark.training.heartbeat import read_heartbeat
from proofmark.vendor.contract import Device
from proofmark.vendor.registry import find_vendor
from suites.automl import test_image_search
from tests.automl.searches import ROOT
from tests.unit.wall.test_wall import has_landlock
from tests.waiting import until

GRAPH = small_network(size=8, channels=1, width=4)


def process(
    folder: Path,
    epochs: int,
    nproc: int = 2,
    vendors: Path = ROOT / "vendors",
    launcher: Launcher | None = None,
    parent: Parent | None = None,
    graph: Graph = GRAPH,
    configured: dict[str, Any] | None = None,
    begins: bool = True,
    **host_settings: Any,
) -> TrialProcess:
    """A trial of the suite's own case, begun unless it is only to make itself ready."""
    path, case = ROOT / "suites/automl/image_search.yaml", test_image_search.TestImageSearch
    file = load_case_file(path, "automl", "embedded", case.common_file, case.parameters_type)
    host = HostSettings(None, None, str(folder / "cache"), None, None, **host_settings)
    config = resolve(file, "cpu", [OverrideLayer("--set", configured or {})], None, host).config
    common: tuple[Any, ...] = ((case.__module__, case.__qualname__), "cpu", str(vendors), config.as_dict())
    spec = TrialSpec(
        *common,
        str(folder),
        tuple(dict.fromkeys((str(vendors.parent), str(ROOT)))),
        trial=0,
        graph=graph.model_dump(mode="json"),
        parent=parent,
        hyperparameters={"batch_size": 64, "dropout": 0.0, "kernel_size": 3},
        epochs=epochs,
        patience=None,
        seed=0,
        nproc=nproc,
    )
    made = TrialProcess(spec, launcher or LocalLauncher(), 300.0, 600.0, MODULE, (*IMPORTED, *case.imported()))
    if begins:
        made.begin({}, None)
    return made


def ended(begun: TrialProcess) -> dict[str, Any]:
    deadline = time.monotonic() + 600
    while (end := begun.poll()) is None:
        assert time.monotonic() < deadline, "it does not end"
        time.sleep(0.05)
    return end


def trains(begun: TrialProcess, log: Path) -> bool:
    """Whether it has begun an epoch; it has not ended."""
    assert begun.poll() is None
    return any(event["event"] == "epoch_begin" for event in read_events(log))


def test_every_image_counts_once_and_the_weights_are_one_networks(tmp_path: Path) -> None:
    end = ended(process(tmp_path, epochs=1))
    assert (end["status"], end["reason"]) == ("finished", None)
    own = list(read_events(tmp_path / "noderank0" / "trial.jsonl"))
    (data,) = (event for event in own if event["event"] == "dataset")
    assert [epoch["images"] for epoch in end["epochs"]] == [0, data["items"]]
    assert {epoch["evaluated"] for epoch in end["epochs"]} == {data["validation_items"]}
    steps = next(event["total_steps"] for event in own if event["event"] == "steps")
    assert steps == -(-data["items"] // 128), "64 on each of two"
    assert all(check["passed"] for check in end["checks"]) and end["counted"] is not None
    assert end["isolation"]["network"] == "between ranks" or not has_landlock()
    weights = read_weights(tmp_path / "noderank0" / WEIGHTS)
    assert weights.keys() == fresh_weights(GRAPH, 0).keys()


def test_a_rank_that_is_killed_ends_its_trial_and_nothing_is_left(tmp_path: Path) -> None:
    begun, node = process(tmp_path, epochs=1000), tmp_path / "noderank0"
    until(lambda: trains(begun, node / "rank1.jsonl"), "its first epoch", every=0.1)
    other, killed = (pid_of(node / f"rank{rank}.heartbeat") for rank in range(2))
    os.kill(killed, signal.SIGKILL)
    end = ended(begun)
    assert (end["status"], end["reason"]) == ("failed", "rank 1 died of signal 9")
    until(lambda: not psutil.pid_exists(other), "the other rank's end")
    assert not [*node.glob("*.heartbeat")]


def test_of_ranks_that_are_found_dead_together_the_killed_one_is_the_cause() -> None:
    def failures(*deaths: tuple[int, int, int]) -> dict[int, ProcessFailure]:
        """Of ranks, their exit codes and when they were found."""
        found = {rank: ProcessFailure(rank, 1, code, "") for rank, code, _ in deaths}
        for rank, _, moment in deaths:
            found[rank].timestamp = moment
        return found

    assert first_killed(failures((0, 1, 100), (1, -9, 100))) == (1, 9)
    assert first_killed(failures((1, -11, 100), (0, -15, 100))) == (1, 11)
    assert first_killed(failures((1, -15, 100), (0, 1, 101))) == (1, 15)
    assert first_killed(failures((0, 1, 100), (1, -15, 100))) is None, "torchrun ended it"
    assert first_killed(failures((0, 1, 100), (1, -9, 130))) is None, "torchrun killed it when it did not end"


def test_ranks_share_the_cores_whatever_a_scheduler_gives_their_trial() -> None:
    shares = {("", 8): "4", ("8", 8): "4", ("1", 8): "1", ("2,1", 8): "4", ("0", 8): "4", ("", 1): "1"}
    assert {each: threads_of_rank(*each, 2) for each in shares} == shares


def test_a_nodes_processor_is_one_device_whatever_shares_it(monkeypatch: pytest.MonkeyPatch) -> None:
    found, cluster = find_vendor("cpu", ROOT / "vendors"), MagicMock()
    cluster.places.return_value = 3
    assert places_of_tasks(cluster, found, 2).devices == 3
    monkeypatch.setattr(type(found.vendor), "torch_device", lambda _: "accelerator")
    assert places_of_tasks(cluster, found, 2).devices == 6


@pytest.mark.parametrize(
    ("variable", "each", "expected"),
    [
        ("ACME_VISIBLE_DEVICES", 3, [{"ACME_VISIBLE_DEVICES": "0,1,2"}, {"ACME_VISIBLE_DEVICES": "3,4,5"}]),
        (None, 3, [{}]),
        (None, 8, [{}]),
        ("ACME_VISIBLE_DEVICES", 9, None),
        (None, 9, None),
    ],
)
def test_what_can_not_be_told_which_devices_it_has_has_the_first_ones(
    variable: str | None, each: int, expected: list[dict[str, str]] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = find_vendor("cpu", ROOT / "vendors")
    chips = [Device(number, "acme") for number in range(8)]
    for name, value in (("torch_device", lambda _: "acme"), ("devices", lambda _: chips)):
        monkeypatch.setattr(type(found.vendor), name, value)
    monkeypatch.setattr(type(found.vendor), "visible_devices_variable", variable)
    if expected is None:
        with pytest.raises(UsageError, match="at most the 8 devices .* found 9"):
            places_here(found, each)
    else:
        places = places_here(found, each)
        assert (list(places.environments), places.devices) == (expected, each * len(expected))


def pid_of(path: Path) -> int:
    beat = read_heartbeat(path)
    assert beat is not None
    return beat.pid


@pytest.fixture(autouse=True)
def _two_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
