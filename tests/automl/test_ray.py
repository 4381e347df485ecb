"""Trials as tasks of a real Ray: one of this machine, and a cluster of two nodes, of which one is killed."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import psutil
import pytest

from fixtures.cluster import SENT
from proofmark.automl.morphism.grow import grown
from proofmark.automl.morphism.operations import Deeper
from proofmark.automl.search.running import TrialProcess
from proofmark.automl.trial.spec import WEIGHTS, Parent
from proofmark.errors import ProofmarkError, UsageError
from proofmark.launch.cluster.code_tree import CodeTree
from proofmark.launch.ray.cluster import RayCluster
from proofmark.record.events.log import read_events
from tests.automl.searches import ROOT, STUB, search, session, settings, spec_maker
from tests.automl.test_several_devices import GRAPH, ended, process
from tests.modelarts.buckets import free_port
from tests.services import missing
from tests.waiting import until

REST: dict[str, Any] = {"hyperparameters": {}, "epochs": 1, "patience": None, "seed": 0}
CODE = CodeTree.of(ROOT, (*SENT, "tests"))
ACCELERATOR, VARIABLE = "accelerator", "ACME_VISIBLE_DEVICES"
SHOW = f"show {VARIABLE} for {{}}/now"
FOLDER = Path(f"/tmp/proofmark-{secrets.token_hex(4)}")
"""Ray's own, by a short name, since it has sockets there."""
TEMPORARY = FOLDER.with_suffix(".tmp")
"""Where tasks keep their folders: of no other test that runs at the same time."""


def started(*arguments: str) -> tuple[subprocess.Popen[bytes], int]:
    """A node of a Ray cluster with one core and what it is told to be two accelerators of either kind, which ends with
    its process; and its port."""
    port = free_port()
    has = ("--num-cpus=1", "--num-gpus=2", f"--resources={json.dumps({ACCELERATOR: 2})}")
    command = [sys.executable, "-m", "ray.scripts.scripts", "start", "--block", *has]
    own = arguments or ("--head", f"--port={port}", "--include-dashboard=false", f"--temp-dir={FOLDER}")
    return subprocess.Popen(
        [*command, "--disable-usage-stats", *own],
        env={**os.environ, "TMPDIR": str(TEMPORARY)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ), port


def killed(node: subprocess.Popen[bytes]) -> None:
    """A node as a machine that loses its power: all of its processes at once. A second time does nothing."""
    if node.poll() is not None:
        return
    for each in [*psutil.Process(node.pid).children(recursive=True), psutil.Process(node.pid)]:
        try:
            each.kill()
        except psutil.NoSuchProcess:
            pass
    node.wait()


def runs(node: subprocess.Popen[bytes]) -> bool:
    assert node.poll() is None
    return True


def begins(trial: TrialProcess) -> bool:
    """Whether it has said anything; it has not ended."""
    assert trial.poll() is None
    return bool(list(read_events(trial.spec.folder / "trial.jsonl")))


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[RayCluster, str, subprocess.Popen[bytes]]]:
    """Connected; its address, and its second node."""
    if find_spec("ray") is None:
        missing("ray (pip install ray)")
    guard = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
    before = {key: os.environ.get(key) for key in guard}
    os.environ |= guard
    TEMPORARY.mkdir()
    with contextlib.ExitStack() as started_here:
        started_here.callback(_restore, before)
        started_here.callback(shutil.rmtree, TEMPORARY, ignore_errors=True)
        started_here.callback(shutil.rmtree, FOLDER, ignore_errors=True)
        head, port = started()
        started_here.callback(killed, head)
        from ray.util import get_node_ip_address  # after what guards it is known

        address = f"{get_node_ip_address()}:{port}"
        until(lambda: runs(head) and not socket.socket().connect_ex((get_node_ip_address(), port)), "Ray", every=0.1)
        second, _ = started(f"--address={address}")
        started_here.callback(killed, second)
        ray = RayCluster(address, "CPU", CODE)
        started_here.callback(ray.close)
        until(lambda: runs(second) and ray.places(1) == 2, "the second node", every=0.2)
        yield ray, address, second


def _restore(before: dict[str, str | None]) -> None:
    for key, value in before.items():
        os.environ.pop(key, None)
        os.environ |= {key: value} if value is not None else {}


def test_a_search_is_placed_and_what_a_trial_dies_of_is_its_own(
    cluster: tuple[RayCluster, str, subprocess.Popen[bytes]], tmp_path: Path
) -> None:
    ray, _, _ = cluster
    assert ray.places(1) == 2
    does = {1: "crash", 2: "killed", 4: "nan"}
    state = search(tmp_path / "search", settings(6, devices=2, ahead=False), does, ray.launcher(1))
    reasons = {number: trial.ended and trial.ended["reason"] for number, trial in state.trials.items()}
    assert reasons == {
        0: None,
        1: "its process died: it fell over",
        2: "its process died without a word: it was killed, or crashed",
        3: None,
        4: "the loss of step 3 is not a finite number",
        5: None,
    }
    assert [trial.begun["parent"] is None for trial in state.trials.values()] == [
        True,
        True,
        False,
        False,
        False,
        False,
    ]


def test_a_trial_of_the_suite_trains_behind_the_wall_of_its_node(
    cluster: tuple[RayCluster, str, subprocess.Popen[bytes]], tmp_path: Path
) -> None:
    """Its weights and its log come home, and nothing else of it stays anywhere. Its child's node has what it has
    learnt."""
    ray, _, _ = cluster
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    second.mkdir()
    end = ended(process(first, epochs=3, nproc=1, launcher=ray.launcher(1)))
    assert (end["status"], end["reason"]) == ("finished", None)
    assert (end["isolation"]["kind"], end["isolation"]["network"]) == ("wall", "closed")
    assert [epoch["images"] > 0 for epoch in end["epochs"]] == [False, True, True, True]
    node = first / "noderank0"
    assert {WEIGHTS, "trial.jsonl"} <= {path.name for path in node.iterdir()} and not [*node.glob("own*")]
    deeper = Deeper(after="stem_relu")
    parent = Parent(GRAPH.model_dump(mode="json"), [deeper.model_dump(mode="json")], str(node))
    child = process(second, epochs=1, nproc=1, launcher=ray.launcher(1), parent=parent, graph=grown(GRAPH, deeper))
    epochs = ended(child)["epochs"]
    fresh, learnt = end["epochs"][0]["accuracy"], max(epoch["accuracy"] for epoch in end["epochs"][1:])
    assert abs(epochs[0]["accuracy"] - learnt) < 0.01 < learnt - fresh, "before its first step"
    until(lambda: not [*TEMPORARY.glob("proofmark-host-*")], "both tasks' folders to be gone")


def test_the_devices_of_a_trial_are_placed_together(
    cluster: tuple[RayCluster, str, subprocess.Popen[bytes]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ray is told that each node has two accelerators; what computes is the processor."""
    ray, address, _ = cluster
    monkeypatch.setattr(ray, "_resource", ACCELERATOR)
    with pytest.raises(UsageError, match="^devices_per_trial: no node of the Ray cluster has 3 accelerator$"):
        ray.places(3)
    assert ray.places(2) == 2
    ready = process(tmp_path, epochs=1, nproc=2, launcher=ray.launcher(2), begins=False)
    (group,) = (each for each in placements(address) if each["state"] != "REMOVED")
    assert (group["strategy"], group["bundles"]) == ("STRICT_PACK", {"0": {"CPU": 1.0, ACCELERATOR: 2.0}})
    ready.begin({}, None)  # now: its place goes with it
    end = ended(ready)
    assert (end["status"], end["reason"]) == ("finished", None)
    own = list(read_events(tmp_path / "noderank0" / "trial.jsonl"))
    (data,) = (event for event in own if event["event"] == "dataset")
    assert [epoch["images"] for epoch in end["epochs"]] == [0, data["items"]]
    assert (tmp_path / "noderank0" / "rank1.jsonl").exists()
    until(lambda: {each["state"] for each in placements(address)} <= {"REMOVED"}, "its place to be free")


def test_trials_that_share_a_node_have_devices_of_their_own(
    cluster: tuple[RayCluster, str, subprocess.Popen[bytes]], tmp_path: Path
) -> None:
    """By the variable of their vendor, which Ray does not know; or they are refused."""
    _, address, _ = cluster
    with contextlib.closing(RayCluster(address, ACCELERATOR, CODE, accelerated=True)) as unnumbered:
        assert unnumbered.places(2, VARIABLE) == 2, "one on each node"
        with pytest.raises(UsageError, match="^--launcher ray: trials .*: of accelerator Ray does not say which"):
            unnumbered.places(1, VARIABLE)
        spec = spec_maker(tmp_path, {0: "crash"})(tmp_path, trial=0, graph={}, parent=None, **REST)
        alone = TrialProcess(spec, unnumbered.launcher(2, VARIABLE), 600.0, 600.0, STUB)
        alone.begin({}, None)
        assert "KeyError" not in str(ended(alone)["reason"]), "nothing tells it a number, and it needs none"
    with contextlib.closing(RayCluster(address, "GPU", CODE, accelerated=True)) as ray:
        with pytest.raises(UsageError, match="^--launcher ray: trials .* the vendor has no visible_devices_variable$"):
            ray.places(1)
        assert ray.places(1, VARIABLE) == 4
        launcher, make = ray.launcher(1, VARIABLE), spec_maker(tmp_path, dict.fromkeys(range(4), SHOW.format(tmp_path)))
        trials = []
        for number in range(4):
            (tmp_path / str(number)).mkdir()
            spec = make(tmp_path / str(number), trial=number, graph={}, parent=None, **REST)
            trials.append(TrialProcess(spec, launcher, 600.0, 600.0, STUB))
            trials[-1].begin({}, None)
        until(lambda: all(begins(trial) for trial in trials), "all four", every=0.1)
        (tmp_path / "now").touch()
        assert sorted(ended(trial)["reason"] for trial in trials) == ["0", "0", "1", "1"]


def test_a_trial_whose_node_is_lost_is_run_again(
    cluster: tuple[RayCluster, str, subprocess.Popen[bytes]], tmp_path: Path
) -> None:
    ray, _, second = cluster
    launcher = ray.launcher(1)
    make = spec_maker(tmp_path, dict.fromkeys(range(2), f"wait for {tmp_path / 'now'}"))
    both = []
    for number in range(2):
        (tmp_path / str(number)).mkdir()
        spec = make(tmp_path / str(number), trial=number, graph={}, parent=None, **REST)
        both.append(TrialProcess(spec, launcher, 600.0, 600.0, STUB))
        both[-1].begin({}, None)
    until(lambda: all(begins(trial) for trial in both), "both trials", every=0.1)
    killed(second)
    (tmp_path / "now").touch()
    assert [ended(trial)["reason"] for trial in both] == [None, None]
    until(lambda: ray.places(1) == 1, "Ray's word on its nodes, which comes later", every=0.1)
    until(lambda: not [*TEMPORARY.glob("proofmark-host-*")], "the lost one's folder to be gone: this machine has power")


def asked(address: str, what: str) -> Any:
    """What another driver finds the value of an expression of Python to be, as JSON has it."""
    lines = (
        "import json, ray",
        "from ray.experimental.internal_kv import _internal_kv_get, _internal_kv_put",
        "from ray.util import placement_group_table",
        f"ray.init({address!r}, log_to_driver=False, logging_level='CRITICAL')",
        f"print(json.dumps({what}))",
    )
    done = subprocess.run([sys.executable, "-c", "\n".join(lines)], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def placements(address: str) -> list[dict[str, Any]]:
    """The cluster's placement groups."""
    return list(asked(address, "placement_group_table()").values())


@contextlib.contextmanager
def _of_another_version(address: str) -> Iterator[None]:
    """The cluster says of itself that it is of an old Ray. Whoever is to say otherwise must have connected before."""
    where = "b'CLUSTER_METADATA', namespace=b'cluster'"
    before = asked(address, f"_internal_kv_get({where}).decode()")
    old = json.dumps(json.loads(before) | {"ray_version": "2.0.0"})
    lines = (
        "import ray, sys",
        "from ray.experimental.internal_kv import _internal_kv_put",
        f"ray.init({address!r}, log_to_driver=False, logging_level='CRITICAL')",
        "set_to = lambda value: _internal_kv_put(b'CLUSTER_METADATA', value, overwrite=True, namespace=b'cluster')",
        f"set_to({old.encode()!r})",
        "print('now', flush=True)",
        "sys.stdin.read()",
        f"set_to({before.encode()!r})",
    )
    command = [sys.executable, "-c", "\n".join(lines)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout and other.stdout.readline() == "now\n"
        yield


def test_an_address_without_a_ray_or_with_another_is_one_line(
    cluster: tuple[RayCluster, str, subprocess.Popen[bytes]],
) -> None:
    _, address, _ = cluster
    with pytest.raises(UsageError, match=r"^--ray-address nowhere: expected HOST:PORT of the cluster's first node$"):
        RayCluster("nowhere", "CPU", CODE)
    port = free_port()
    with pytest.raises(UsageError, match=rf"^--ray-address 127.0.0.1:{port}: nothing answers there: .*refused$"):
        RayCluster(f"127.0.0.1:{port}", "CPU", CODE)
    with _of_another_version(address), pytest.raises(UsageError) as refused:
        RayCluster(address, "CPU", CODE)
    assert "Version mismatch" in str(refused.value) and "2.0.0" in str(refused.value) and "\n" not in str(refused.value)


def test_a_cluster_that_is_gone_takes_nothing_along(
    cluster: tuple[RayCluster, str, subprocess.Popen[bytes]], tmp_path: Path
) -> None:
    """Ray's own code ends the process that it is in: that is a driver's, and the session has a reason in one line."""
    _, address, _ = cluster
    lost = RayCluster(address, "CPU", CODE)
    try:
        launcher = lost.launcher(1)
        (tmp_path / "0").mkdir()
        spec = spec_maker(tmp_path, {0: "hang"})(tmp_path / "0", trial=0, graph={}, parent=None, **REST)
        trial = TrialProcess(spec, launcher, 600.0, 600.0, STUB)
        trial.begin({}, None)
        until(lambda: begins(trial), "the trial", every=0.1)
        assert [*TEMPORARY.glob("proofmark-host-*")]
        (driver,) = (each for each in psutil.Process().children() if each.pid == lost._driver._child.pid)  # type: ignore[attr-defined]
        driver.kill()
        with pytest.raises(ProofmarkError, match=rf"^--ray-address {address}: Ray's own code died of signal 9 "):
            until(lambda: trial.poll() is not None, "its end", every=0.1)
        trial.stop()
        with pytest.raises(UsageError, match=rf"^--ray-address {address}: Ray's own code died of signal 9 "):
            lost.places(1)
    finally:
        lost.close()
    until(lambda: not [*TEMPORARY.glob("proofmark-host-*")], "its task's folder to be gone", every=0.1)


def test_the_suite_refuses_in_one_line(tmp_path: Path) -> None:
    def answer(*options: str, **variables: str) -> tuple[int, str]:
        with session(*options, "--launcher", "ray", "-q", "--results-dir", str(tmp_path), **variables) as running:
            output, _ = running.communicate(timeout=600)
        assert "Traceback" not in output
        return running.returncode, output

    code, output = answer("suites/automl", "--ray-address", "127.0.0.1:1")
    assert code == 4 and "--ray-address 127.0.0.1:1: nothing answers there: Connection refused" in output
    code, output = answer("suites/automl", "--preflight-only")
    assert code == 4 and "--launcher ray has no preflight: remove --preflight-only" in output
    code, output = answer("suites/training", "-k", "resnet50")
    assert code == 4 and "--launcher ray: case resnet50 is of suite training, whose cases it can't place" in output
    (tmp_path / "hidden" / "ray").mkdir(parents=True)
    (tmp_path / "hidden" / "ray" / "__init__.py").write_text("raise ImportError('no Ray')\n")
    code, output = answer("suites/automl", PYTHONPATH=str(tmp_path / "hidden"))
    assert code == 4 and "Ray is not installed here: python -m pip install -c constraints.txt ray" in output
