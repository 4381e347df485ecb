"""`--container vendor`: engines alone in an image that has its vendor's runtime and nothing of ours."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

from proofmark.inference.engine.place import contained
from proofmark.inference.engine.place.process_times import processor_times
from tests.cluster.conftest import Campus
from tests.cluster.declared import declare, reached
from tests.cluster.engines import Engine, on_podman
from tests.cluster.imaged import Imaged, nothing_is_left
from tests.services import missing, program
from tests.waiting import lies, until

ATTEMPTS = """
        places = {places}
        tried = {{"own": attempt(lambda: Path(config.host.artifact_dir, "own").write_text("own"))}}
        for name, place in places.items():
            tried[name] = attempt(lambda: sorted(os.listdir(place)))
        tried["write"] = attempt(lambda: Path(__file__).with_name("written").write_text("x"))
        tried["image"] = attempt(lambda: Path("/usr/written").write_text("x"))
        tried["network"] = attempt(lambda: socket.create_connection(("127.0.0.1", {port}), timeout=2))
        tried["processes"] = attempt(lambda: sorted(int(p) for p in os.listdir("/proc") if p.isdecimal()))
        tried["pydantic"] = attempt(lambda: __import__("pydantic"))
        tried["home"] = attempt(lambda: os.environ["HOME"])
        tried["tokens"] = attempt(lambda: sorted(n for n in os.environ if "TOKEN" in n))
        tried["capabilities"] = attempt(
            lambda: [line for line in open("/proc/self/status").read().splitlines() if line.startswith("CapEff")][0]
        )
        raise StepError("TRIED " + json.dumps(tried))"""


def test_an_engine_alone_in_its_vendors_image(imaged: Imaged, monkeypatch: pytest.MonkeyPatch) -> None:
    declare(imaged.house, monkeypatch)
    monkeypatch.setenv("HTTPS_PROXY", "http://us:geheim@proxy.example.org")
    ran = imaged.infer("--container", "vendor")
    assert ran.code == 0, ran.output
    record = ran.record()
    assert record.verdict is not None and record.verdict.kind == "PASS"
    kept = record.isolation["engine"]
    assert (kept.kind, kept.container, kept.network, kept.gaps) == ("wall", True, "closed", ())
    assert not record.in_vendors_image and record.isolated == "wall"
    assert not record.claimed, "the referee's process ran here, outside the image"
    (host,) = record.launched
    assert host.container is not None and host.container.image.startswith("proofmark-fake:")
    assert host.container.vendors and host.container.engines_alone and host.container.torch
    assert f"engines alone, torch {host.container.torch}" in " ".join(ran.output.split())
    assert {"--network=none", "--read-only", "--cap-drop=ALL", "--no-healthcheck", "--stop-timeout=0"} <= {
        *host.container.command
    }
    assert record.monitoring is not None and record.monitoring.samples and record.device == 0
    reached(ran, record, ran.case_dir() / "noderank0/worker.log")
    nothing_is_left(imaged.engine)
    assert [path.name for path in imaged.work.iterdir() if path.name == "images"] == []


def test_what_it_sees(imaged: Imaged, monkeypatch: pytest.MonkeyPatch) -> None:
    """By attempts, each of which it would tell of."""
    monkeypatch.setenv("ACME_TOKEN", "geheim")
    house = imaged.house.root
    places = {"suites": house / "suites", "others": house / "vendors/cpu", "results": house / "results"}
    places |= {"cache": imaged.work / "cache", "homes": Path("/home"), "work": imaged.work}
    named = {name: str(place) for name, place in places.items()}
    with socket.create_server(("127.0.0.1", 0)) as listener:
        imaged.engine_is(ATTEMPTS.format(places=named, port=listener.getsockname()[1]).strip())
        ran = imaged.infer("--container", "vendor")
    assert ran.code == 17, ran.output
    found = re.search(r"TRIED (\{.*\})", ran.record().step("compile").reason or "")
    assert found, ran.output
    tried = json.loads(found[1])
    assert tried.pop("own") == "3"
    assert tried.pop("home").startswith(f"'{imaged.work}")
    assert tried.pop("processes") == "[1]" and tried.pop("tokens") == "[]"
    assert tried.pop("capabilities").split()[-1].strip("'").endswith("0" * 16)
    assert tried.pop("work") == "['code', 'runs']"  # the way to its own directory, and to the code that it is shown
    assert tried.pop("pydantic") == "ModuleNotFoundError"
    assert set(tried.values()) <= {"FileNotFoundError", "OSError", "ConnectionRefusedError", "PermissionError"}, tried
    nothing_is_left(imaged.engine)


@on_podman
@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="a session has all cores")
def test_who_asks_for_all_cores_gets_the_sessions(imaged: Imaged) -> None:
    """As libraries of drivers do for their threads."""
    imaged.engine_is("os.sched_setaffinity(0, range(os.cpu_count() or 1))")
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(before)})
    try:
        ran = imaged.infer("--container", "vendor")
    finally:
        os.sched_setaffinity(0, before)
    assert ran.code == 0, ran.output


@on_podman
@pytest.mark.parametrize(
    "line, expected",
    [
        ("ENV PATH=/nowhere", "expected an image with python3"),
        ("ENV PATH=/usr/bin:/bin", "No module named 'torch'"),
    ],
)
def test_an_image_that_lacks_what_engines_need(imaged: Imaged, line: str, expected: str) -> None:
    imaged.image(line)
    ran = imaged.infer("--container", "vendor", "--preflight-only")
    assert ran.code == 4 and expected in ran.output, ran.output
    nothing_is_left(imaged.engine)


@on_podman
def test_it_has_no_user_of_its_own(imaged: Imaged) -> None:
    ran = imaged.infer("--container", "vendor", "--engine-user", "nobody")
    assert ran.code == 4 and "--engine-user: with --container vendor" in ran.output, ran.output


def running(imaged: Imaged) -> str:
    """The name of the container of an engine that has begun to answer."""

    def engines() -> list[str]:
        return [name for name in imaged.engine.containers() if not name.endswith("-look")]

    until(engines, "an engine's container", every=0.2)
    return engines()[0]


@on_podman
def test_one_that_is_killed_is_named(imaged: Imaged) -> None:
    imaged.engine_is(call="import time; time.sleep(60)")
    session = imaged.start_inference("--container", "vendor")
    imaged.engine.ask("kill", running(imaged))
    ran = imaged.house.end(session)
    step = next(step for step in ran.record().steps if step.status == "failed")
    assert ran.code == 17, ran.output
    assert "the engine's process died of signal 9" in (step.reason or "") or "before it called" in (step.reason or "")
    nothing_is_left(imaged.engine)


def test_none_outlives_its_session(imaged: Imaged) -> None:
    """Nor one that would: whoever started it is gone, and it does not look."""
    begun = "Path(config.host.artifact_dir, 'begun').write_text('')"
    imaged.engine_is(init=f"{begun}; __import__('time').sleep(600)")
    session = imaged.start_inference("--container", "vendor")
    until(lambda: lies("begun", imaged.work), "an engine to begin", every=0.2)
    session.kill()
    imaged.house.end(session)
    nothing_is_left(imaged.engine)
    assert imaged.house.becomes_empty()


def test_who_is_not_the_first_process_of_a_container() -> None:
    one, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with one, other, pytest.raises(contained.StepError, match="not the first process"):
        contained._first_of(one)


SPAWNS = """
import os, signal, time
for _ in range(3):
    if os.fork() == 0:
        os.setsid()
        if os.fork():
            os._exit(0)
        signal.signal(signal.SIGCONT, lambda *_: None)
        while True:
            os.getpid()
    os.wait()
print("ready", flush=True)
time.sleep(600)
"""


def test_all_that_is_in_a_container_stops() -> None:
    """What has left its group, its session and its parent too."""
    if os.geteuid() != 0:
        missing("root, for a namespace of processes")
    unshare = program("unshare", "apt-get install util-linux")
    started = subprocess.Popen(
        [unshare, "--pid", "--fork", "--kill-child", sys.executable, "-c", SPAWNS], stdout=subprocess.PIPE, text=True
    )
    try:
        assert started.stdout is not None and started.stdout.readline() == "ready\n"
        (first,) = [int(word) for word in Path(f"/proc/{started.pid}/task/{started.pid}/children").read_text().split()]
        assert contained._ids(first)[-1] == 1
        held = contained.Contained.__new__(contained.Contained)
        held.pid, held.life = first, os.pidfd_open(first)
        held.socket, _other = socket.socketpair()
        until(lambda: len(processor_times(contained._tree(first))) == 4, "its processes")
        stopped = held.stop()
        assert len(processor_times(stopped)) == 4
        times = processor_times(stopped)
        time.sleep(0.2)
        assert processor_times(stopped) == times
        held.tell(signal.SIGCONT)
        until(lambda: processor_times(stopped) != times, "them to go on")
    finally:
        started.kill()
        started.wait()


@on_podman
def test_what_is_mounted_beside(imaged: Imaged) -> None:
    """What a user adds is seen by engines: it is on record, and no wall where it can be written."""
    (imaged.house.root / "vendors/fake/isolation.yaml").write_text(yaml.safe_dump({"network": True}))
    writable = [*imaged.mounts, f"{imaged.house.root}:{imaged.house.root}"]
    ran = imaged.infer("--container", "vendor", mounts=writable)
    assert ran.code == 0, ran.output
    kept = ran.record().isolation["engine"]
    assert (kept.kind, kept.network) == ("process", "asked for")
    assert kept.gaps == (f"{imaged.house.root} can be written, as `mounts` of cluster.yaml says",)


@on_podman
def test_on_a_host_over_ssh(new_campus: Campus, engine: Engine, tmp_path: Path) -> None:
    campus = new_campus
    (tmp_path / "own").mkdir()
    imaged = Imaged(campus.house, engine, tmp_path / "own")
    options = ("--container", "vendor", "--container-engine", str(engine.path))
    ran = campus.infer(*options, mounts=imaged.mounts)
    assert ran.code == 0, ran.output
    record = ran.record()
    (host,) = record.launched
    assert host.container is not None and host.container.engines_alone and not host.here
    assert record.isolation["engine"].container and record.claimed
    assert campus.is_empty(), [campus.hosts.processes(0), campus.hosts.processes(1)]
