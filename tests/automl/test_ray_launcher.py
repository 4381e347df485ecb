"""A Ray that does not do as it should: seen by a driver that waits for no one without end. Stubs, without a Ray."""

from __future__ import annotations

import collections
import itertools
import json
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import pytest

from proofmark.automl.search.running import TrialProcess
from proofmark.automl.trial.spec import LOG
from proofmark.errors import ProofmarkError, UsageError
from proofmark.launch.job import Job
from proofmark.launch.ray import cluster as clusters
from proofmark.launch.ray import launcher as launching
from proofmark.launch.ray.driver import Driver
from proofmark.launch.ray.driver_process import DriverProcess
from proofmark.launch.ray.launcher import KEPT, RETRIES, RayLauncher
from proofmark.launch.ray.task import _devices
from proofmark.process.environment import passed_on
from tests.automl.searches import STUB, spec_maker

REST: dict[str, Any] = {"graph": {}, "parent": None, "hyperparameters": {}, "epochs": 1, "patience": None, "seed": 0}


class RayError(Exception):
    """What all of Ray's errors are."""


class Here:
    """A driver in this process, of a Ray that is none."""

    def __init__(self, ray: Any) -> None:
        self._driver = Driver(ray)

    def ask(self, method: str, *arguments: Any, within: float = 0.0) -> Any:
        able, value = self._driver.answer(method, arguments)
        if not able:
            raise ProofmarkError(f"--launcher ray: {value}")
        return value

    def close(self) -> None:
        self.ask("close")


NO_CODE: Any = SimpleNamespace(contents={}, files={})


@pytest.fixture
def ray(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Takes tasks and runs none; `ray.get` answers what was heard of them."""
    monkeypatch.setattr(launching, "LOOK", 0.0)
    made = MagicMock()
    made.exceptions = SimpleNamespace(RayError=RayError)
    made.wait.return_value, made.get.return_value = ([], []), []
    return made


def begun(folder: Path, ray: Any, seconds: float | None = None, setup: float = 60.0) -> TrialProcess:
    launcher = RayLauncher(Here(ray), NO_CODE, {"num_cpus": 1}, together=False)
    spec = spec_maker(folder / "cache")(folder, trial=0, **REST)
    trial = TrialProcess(spec, launcher, hang=-1.0, setup=setup, module=STUB)
    trial.begin({}, seconds)
    return trial


def reason(trial: TrialProcess) -> Any:
    end = trial.poll()
    return end and end["reason"]


def test_what_passes_here_passes_where_a_trial_runs(tmp_path: Path, ray: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a task's environment it is Ray that says which devices it has."""
    monkeypatch.setenv("PROOFMARK_PASSES", "ACME_VISIBLE_DEVICES")
    begun(tmp_path, ray)
    sent = [each for call in ray.mock_calls for each in call.args if isinstance(each, dict) and "environment" in each]
    (environment,) = (orders["environment"] for orders in sent)
    assert passed_on({**environment, "ACME_VISIBLE_DEVICES": "5"})["ACME_VISIBLE_DEVICES"] == "5"


def test_a_trial_that_no_node_runs_is_not_waited_for_without_end(tmp_path: Path, ray: Any) -> None:
    assert begun(tmp_path, ray).poll() is None
    assert begun(tmp_path, ray, seconds=60.0).poll() is None
    assert reason(begun(tmp_path, ray, setup=-1.0)) == "no node has run it for 0 s"
    assert reason(begun(tmp_path, ray, seconds=-1.0)) == "no node has run it for 0 s", "the search's time is over"


def test_a_trial_that_is_silent_again_and_again_has_one_patience(
    tmp_path: Path, ray: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which begins when it falls silent, and not with each look."""
    now = [1000.0]
    clock = SimpleNamespace(monotonic=lambda: now[0])
    monkeypatch.setattr("proofmark.automl.search.running.time", clock)
    monkeypatch.setattr(launching, "time", clock)
    trial = begun(tmp_path, ray)
    said = []
    for _ in range(90):
        now[0] += 1.0
        said.append(reason(trial))
        if said[-1]:
            break
    assert said == [None] * 61 + ["no node has run it for 61 s"]


def test_a_trial_that_is_run_again_and_again_fails(tmp_path: Path, ray: Any) -> None:
    """As one that takes more memory than its node has."""
    trial = begun(tmp_path, ray)
    name = trial._handle.name  # type: ignore[attr-defined]
    for execution in range(1 + RETRIES):
        ray.get.return_value = [(name, str(execution), 0.0, [])]
        trial._handle.status()
    assert not ray.cancel.called
    ray.get.return_value = [(name, "once more", 0.0, [])]
    assert reason(trial).startswith(f"its process died: Ray: it was started {2 + RETRIES} times and never ended")
    assert ray.cancel.called


@pytest.mark.parametrize(
    "runs, joules, why", [(1, 5.0, None), (2, None, "it was run again, and nothing is left of the reading before")]
)
def test_the_energy_of_a_trial_that_is_run_again_is_not_known(
    tmp_path: Path, ray: Any, runs: int, joules: float | None, why: str | None
) -> None:
    """The reading of its first run went with all that this had left, and its seconds count."""
    trial = begun(tmp_path, ray)
    for execution in range(runs):
        ray.get.return_value = [(trial._handle.name, str(execution), 0.0, [])]  # type: ignore[attr-defined]
        trial._handle.status()
    log = trial.spec.folder / LOG
    log.parent.mkdir(parents=True, exist_ok=True)
    log.write_text(json.dumps({"event": "energy", "time": 1.0, "clock": 1, "joules": 5.0, "reason": None}) + "\n")
    trial._handle._file.ask_to_stop()
    end = trial.poll()
    assert end is not None and (end["energy"]["joules"], end["energy"]["reason"]) == (joules, why)


def test_a_ray_that_is_gone_is_told_in_a_line_and_can_be_left(tmp_path: Path, ray: Any) -> None:
    trial = begun(tmp_path, ray)
    ray.get.side_effect = RayError("the actor died\nand much more")
    ray.cancel.side_effect = RayError("no cluster")
    with pytest.raises(ProofmarkError, match="^--launcher ray: RayError: the actor died$"):
        trial.poll()
    trial.stop()


def test_a_trial_is_ended_by_its_id(tmp_path: Path, ray: Any) -> None:
    trial = begun(tmp_path, ray)
    trial._handle._file.ask_to_stop()
    assert trial._handle.status() == "stopped" and ray.cancel.call_count == 1
    assert trial._handle.status() == "stopped" and ray.cancel.call_count == 1


@pytest.mark.parametrize("asked", ["put", "remote.return_value.options.return_value.remote"])
def test_a_ray_that_takes_no_trial_is_told_in_a_line(tmp_path: Path, ray: Any, asked: str) -> None:
    """As one whose store is full."""
    launcher = RayLauncher(Here(ray), NO_CODE, {"num_cpus": 1}, together=False)
    ray.configure_mock(**{f"{asked}.side_effect": RayError("no room\nat all")})
    with pytest.raises(ProofmarkError, match="^--launcher ray: RayError: no room$"):
        launcher.submit(Job("a job", STUB, spec_maker(tmp_path)(tmp_path, trial=0, **REST), tmp_path, ()))


@pytest.mark.parametrize("asked", ["put", "remote.return_value.return_value.remote"])
def test_a_ray_that_takes_no_code_is_told_in_a_line(
    tmp_path: Path, ray: Any, monkeypatch: pytest.MonkeyPatch, asked: str
) -> None:
    monkeypatch.setattr(clusters, "DriverProcess", lambda *_: Here(ray))
    ray.nodes.return_value = [{"Alive": True, "Resources": {"CPU": 2.0}}]
    cluster = clusters.RayCluster(None, "CPU", NO_CODE)
    ray.configure_mock(**{f"{asked}.side_effect": RayError("no room\nat all")})
    try:
        with pytest.raises(UsageError, match="^--launcher ray: RayError: no room$"):
            cluster.launcher(1)
    finally:
        cluster.close()


@pytest.mark.parametrize(
    ("each", "free", "expected"),
    [(1, [4.0], 4), (2, [4.0], 2), (1, [1.0, 3.0], 3), (1, [3.0, 4.0], 4), (2, [3.0], 1), (1, [0.0], 1), (1, [], 1)],
)
def test_what_others_use_is_no_room(
    ray: Any, monkeypatch: pytest.MonkeyPatch, each: int, free: list[float], expected: int
) -> None:
    """But for what an earlier search's trials have just let go of. Of nothing one waits for room."""
    now = itertools.count(0.0, clusters.SETTLES / 2)
    monkeypatch.setattr(clusters, "time", SimpleNamespace(monotonic=lambda: next(now), sleep=lambda _: None))
    monkeypatch.setattr(clusters, "DriverProcess", lambda *_: Here(ray))
    monkeypatch.setattr(clusters, "_reach", lambda _: None)
    ray.nodes.return_value = [{"Alive": True, "Resources": {"CPU": 8.0, "NPU": 2.0}}] * 2
    said = iter([{"NPU": number} for number in free])
    ray.available_resources.side_effect = lambda: next(said, {"NPU": free[-1]} if free else {"CPU": 16.0})
    cluster = clusters.RayCluster("10.0.0.1:6379", "NPU", NO_CODE)
    assert cluster.places(each) == expected


def test_of_what_trials_read_the_last_stays_in_the_store(tmp_path: Path, ray: Any) -> None:
    launcher = RayLauncher(Here(ray), NO_CODE, {"num_cpus": 1}, together=False)
    ray.put.reset_mock()
    for number in (*range(KEPT), 0, KEPT, 0, 1):
        weights = tmp_path / f"{number}"
        weights.touch()
        spec = spec_maker(tmp_path)(tmp_path, trial=0, **REST)
        launcher.submit(Job("a job", STUB, spec, tmp_path, (), brings={"weights": weights}))
    assert ray.put.call_count == KEPT + 2, "the first was read again in time, the second was not"


@pytest.mark.parametrize(
    ("rays", "node", "expected"),
    [
        ("ACME_VISIBLE_DEVICES", "6,7", "0,1"),  # it was set by Ray
        ("RAYS_DEVICES", None, "0,1"),
        ("RAYS_DEVICES", "6,7", "6,7"),
        (None, None, "0,1"),
    ],
)
def test_a_task_has_its_devices_in_the_vendors_variable_alone(
    monkeypatch: pytest.MonkeyPatch, rays: str | None, node: str | None, expected: str
) -> None:
    known, manager = MagicMock(), MagicMock()
    known.get_runtime_context.return_value.get_accelerator_ids.return_value = {"GPU": ["0", "1"]}
    manager.get_accelerator_manager_for_resource.return_value.get_visible_accelerator_ids_env_var.return_value = rays
    monkeypatch.setitem(sys.modules, "ray", known)
    monkeypatch.setitem(sys.modules, "ray._private.accelerators", manager)
    monkeypatch.setenv("RAYS_DEVICES", "0,1")
    if node is not None:
        monkeypatch.setenv("ACME_VISIBLE_DEVICES", node)
    assert _devices("GPU", "ACME_VISIBLE_DEVICES") == {"ACME_VISIBLE_DEVICES": expected}
    assert ("RAYS_DEVICES" in os.environ) == (rays != "RAYS_DEVICES")


FAKE = {
    "__init__.py": """
import os, sys, time
from types import SimpleNamespace
cloudpickle = SimpleNamespace(register_pickle_by_value=lambda module: None)
def init(address, **_):
    if address == "ends":
        print("[2026-11-27 18:27:27,509 E 29707 29863] rpc_client.h:204: Failed to connect to GCS within 60 seconds.")
        print("a line of its stack", flush=True)
        os._exit(1)
    if address == "sleeps":
        time.sleep(600)
    raise ConnectionError("no\\nsuch cluster")
def nodes():
    return [{"Alive": alive, "Resources": {"CPU": 2.0}} for alive in (True, False)]
def shutdown():
    pass
""",
    "exceptions.py": "class RayError(Exception): pass",
    "util/__init__.py": "",
    "util/scheduling_strategies.py": "",
}


@pytest.fixture
def driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[DriverProcess]:
    """A real one, of a Ray that is none."""
    for name, text in FAKE.items():
        path = tmp_path / "fake" / "ray" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    monkeypatch.syspath_prepend(tmp_path / "fake")
    begun = DriverProcess(False, 600.0, "--ray-address there")
    yield begun
    begun.close()
    begun.close()
    with pytest.raises(ProofmarkError, match="^--ray-address there: "):
        begun.ask("nodes")


def test_a_driver_answers_and_says_why_it_can_not(driver: DriverProcess) -> None:
    assert driver.ask("nodes") == [{"CPU": 2.0}]
    with pytest.raises(ProofmarkError, match="^--ray-address there: ConnectionError: no such cluster$"):
        driver.ask("connect", "nowhere")
    assert driver.ask("nodes") == [{"CPU": 2.0}]


def test_a_driver_that_ray_ends_is_told_by_its_last_words(driver: DriverProcess) -> None:
    ended = (
        r"^--ray-address there: Ray's own code ended with exit code 1: Failed to connect to GCS within 60 seconds\.$"
    )
    for _ in range(2):
        with pytest.raises(ProofmarkError, match=ended):
            driver.ask("connect", "ends")


def test_a_driver_that_hangs_is_ended(driver: DriverProcess) -> None:
    with pytest.raises(ProofmarkError, match=r"^--ray-address there: nothing answers in 0\.1 s$"):
        driver.ask("connect", "sleeps", within=0.1)


def test_a_driver_whose_session_is_interrupted_goes_on(driver: DriverProcess) -> None:
    """What was asked is answered before what is asked next."""

    def ask_until_interrupted() -> None:
        signal.setitimer(signal.ITIMER_REAL, 0.05)  # here: whenever it goes off, it is heard and expected
        collections.deque(map(driver.ask, itertools.repeat("nodes")), maxlen=0)

    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            ask_until_interrupted()
    finally:
        signal.signal(signal.SIGALRM, before)
    with pytest.raises(ProofmarkError, match="no such cluster$"):
        driver.ask("connect", "nowhere")
