"""A node's agent ends its ranks, whatever they have put where their signs of life are."""

from __future__ import annotations

import errno
import io
import os
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import psutil
import pytest
from typing_extensions import Buffer

from proofmark.process.signalled import ASKED
from proofmark.process.warm.main import THREADS
from proofmark.record.events.log import EventLog, read_events
from proofmark.record.integrity.manifest import artifacts
from proofmark.training.heartbeat import PHASES, Heartbeat, Silence
from proofmark.training.logs.failure import failure_of
from proofmark.training.node import agent, rank_processes
from proofmark.training.node.agent import Watch
from proofmark.training.outcome.event_types import AGENT_EVENTS, SESSION_EVENTS
from proofmark.training.run import ScaleRun
from proofmark.training.spec import TrainingSpec
from tests.disks import nest
from tests.waiting import PATIENCE, until

UNENDING = "SIGKILL does not end what waits in a driver, or for a disk"

HOST = {"scratch_limit": 1.0}


@pytest.fixture
def rank() -> Iterator[subprocess.Popen[bytes]]:
    """A process that leads its group, as a rank does, and lives on when it is asked for its stacks."""
    process = subprocess.Popen(
        [sys.executable, "-c", "import time; time.sleep(600)"],
        start_new_session=True,
        preexec_fn=lambda: signal.signal(ASKED, signal.SIG_IGN),
    )
    yield process
    process.kill()
    process.wait()


def test_who_examines_has_all_cores_or_what_a_quota_leaves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str | None] = []
    monkeypatch.setattr("torch.distributed.run.run", lambda arguments: None)
    monkeypatch.setattr(agent, "examine", lambda *given: seen.append(os.environ.get(THREADS)))
    monkeypatch.setattr(agent, "leave_results", lambda *given: None)
    spec = TrainingSpec(("m", "C"), "nobody", "", {"host": HOST}, str(tmp_path), ())
    monkeypatch.setattr(agent.sys, "argv", ["", str(tmp_path / "spec.json"), "0"])
    for quota in ({}, {THREADS: "3"}):
        monkeypatch.setenv(THREADS, "1")
        monkeypatch.setattr(agent, "threads_of_quota", lambda quota=quota: quota)
        assert agent._run(spec, 0, MagicMock(), fed=True, shared=True) == 0
    assert seen == [None, "3"]


def watch_over(folder: Path, pid: int, sign: bytes) -> Watch:
    """An agent's eyes on a rank that it has started, and that has put `sign` where its heartbeat is."""
    spec = TrainingSpec(("m", "C"), "nobody", "", {"host": HOST}, str(folder), (), hang_timeout=0.2, setup_timeout=0.2)
    spec.node_directory(0).mkdir(parents=True)
    (spec.node_directory(0) / "rank0.heartbeat").write_bytes(sign)
    return Watch(spec, 0, {0: pid})


SIGNS = [(99, 0), (3, -5), (3, 1 << 40), (3, os.getpid())]


@pytest.mark.parametrize("phase, pid", SIGNS, ids=["phase", "negative", "huge", "another's"])
def test_a_rank_that_lies_of_itself_is_ended(
    tmp_path: Path, rank: subprocess.Popen[bytes], phase: int, pid: int
) -> None:
    watch = watch_over(tmp_path, rank.pid, struct.pack("=qqqqd", pid, 0, 1, phase, 1.0))
    watch.processes.end()
    assert rank.wait(PATIENCE) == -signal.SIGKILL
    watch.end_outputs()


def test_a_full_directory_is_seen_whatever_the_heartbeat_is(tmp_path: Path, rank: subprocess.Popen[bytes]) -> None:
    watch = watch_over(tmp_path, rank.pid, struct.pack("=qqqqd", -5, 0, 1, 99, 1.0))
    full = iter([None, "filled its own directory"])
    watch._quotas[0].exceeded = lambda: next(full)  # type: ignore[method-assign]
    watch.heartbeats()
    assert rank.wait(PATIENCE) == -signal.SIGKILL
    watch.end_outputs()
    (event,) = read_events(watch.log.path)
    assert event["event"] == "rank_ended" and event["reason"] == "filled its own directory, and was ended"


class Disk(io.BytesIO):
    """One with room for so many bytes."""

    room = 10

    def write(self, line: Buffer) -> int:
        taken = bytes(line)[: self.room]
        if line and not taken:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self.room -= len(taken)
        return super().write(taken)


@pytest.mark.parametrize("fault", ["rank_ended", "hang", "stopped"])
def test_a_full_disk_keeps_no_rank_from_its_end(
    tmp_path: Path, rank: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    """What the agent has to tell of it is told once there is room, and what was torn is whole."""
    watch, disk, killpg, read = watch_over(tmp_path, rank.pid, sign(rank.pid, 1.0)), Disk(), os.killpg, os.read
    watch.log._stream = disk
    if fault == "stopped":
        monkeypatch.setattr(os, "read", lambda file, size: read(file, size) if file else b"")
        monkeypatch.setattr(os, "killpg", lambda group, number: killpg(group, number) if group else None)
        monkeypatch.setattr(agent, "remove_own_temporary_directory", lambda: None)
        watch.parent()
    else:
        watch._quotas[0].exceeded = lambda: "filled the disk" if fault == "rank_ended" else None  # type: ignore[method-assign]
        watch.heartbeats()
        watch.end_outputs()
        with pytest.raises(OSError, match="No space left"):
            watch.clear()
    assert rank.wait(PATIENCE) == -signal.SIGKILL
    assert len(disk.getvalue()) == 10
    disk.room = 1 << 20
    watch.clear()
    (tmp_path / "told").write_bytes(disk.getvalue())
    assert [event["event"] for event in read_events(tmp_path / "told")] == [fault]


def test_what_lies_beside_checkpoints_can_be_looked_into(tmp_path: Path, rank: subprocess.Popen[bytes]) -> None:
    watch = watch_over(tmp_path, rank.pid, b"")
    (tmp_path / "checkpoints").mkdir()
    nest(tmp_path / "checkpoints", "d" * 200, 25)
    full = watch._quotas[0].exceeded()
    assert full and "hid a folder" in full
    with pytest.raises(OSError, match="too long"):
        list(artifacts(tmp_path))
    watch.clear()
    assert list(artifacts(tmp_path))
    watch.end_outputs()


def test_of_ranks_that_torchrun_began_its_own_way_their_word_is_taken(
    tmp_path: Path, rank: subprocess.Popen[bytes]
) -> None:
    sign = struct.pack("=qqqqd", rank.pid, 0, 1, PHASES.index("compute"), time.monotonic())
    watch = watch_over(tmp_path, 0, sign)
    watch.processes.end()
    assert rank.wait(PATIENCE) == -signal.SIGKILL
    watch.end_outputs()


@pytest.mark.parametrize("lives", [True, False])
def test_a_rank_that_does_not_end_is_found(tmp_path: Path, rank: subprocess.Popen[bytes], lives: bool) -> None:
    """After its training a vendor's code may hang, or the exchange's end. One that has ended hangs nowhere."""
    sign = struct.pack("=qqqqd", rank.pid, 0, 8, PHASES.index("end"), time.monotonic() - 1)
    watch = watch_over(tmp_path, rank.pid, sign)
    if lives:
        watch.heartbeats()
        (event,) = read_events(watch.log.path)
        assert (event["event"], event["phase"]) == ("hang", "end")
    else:
        rank.kill()
        rank.wait()
        looks = iter([False] * 5)
        watch._is_full = lambda: next(looks, True)  # type: ignore[method-assign]
        watch.heartbeats()
        assert not watch.log.path.exists() or not list(read_events(watch.log.path))
    watch.end_outputs()


def test_one_that_goes_on_though_it_was_killed_is_not_waited_for(
    tmp_path: Path, rank: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As it does in a driver: torchrun would wait for good."""
    watch, left = watch_over(tmp_path, rank.pid, sign(rank.pid, 1.0)), list[int]()
    monkeypatch.setattr(os, "killpg", lambda group, number: None)
    monkeypatch.setattr(os, "_exit", left.append)
    monkeypatch.setattr(rank_processes, "DYING", 0.2)
    watch.heartbeats()
    assert left == [1] and rank.poll() is None
    hang, outlived = read_events(watch.log.path, AGENT_EVENTS)
    assert (hang["event"], outlived["event"], outlived["rank"]) == ("hang", "outlived", 0)
    failure = failure_of(tmp_path, (), [hang, outlived], None)
    assert failure is not None and failure.ranks == (0,)
    assert failure.cause.endswith(f" s; process {rank.pid} goes on though it was killed: {UNENDING}")


def test_what_goes_on_is_named_of_every_host_and_of_this_machine(tmp_path: Path) -> None:
    """Whatever ended the run."""
    for node in range(2):
        (tmp_path / f"noderank{node}").mkdir()
        (tmp_path / f"noderank{node}" / f"rank{node}.log").touch()
    told = [{"event": "outlived", "rank": rank, "reason": f"process {rank + 7} goes on"} for rank in range(2)]
    hosts = [{"node": node, "name": f"host{node}"} for node in range(2)]
    end = {"status": "stopped", "reason": "took too long", "hosts": hosts}
    failure = failure_of(tmp_path, (), told, end)
    assert failure is not None
    assert failure.cause == "took too long; host0: process 7 goes on; host1: process 8 goes on"

    class Handle(SimpleNamespace):
        left = "; process 7 goes on"

        def nothing(self) -> dict[str, Any]:
            return {}

        stop = news = facts = nothing

    run: Any = SimpleNamespace(_log=EventLog(tmp_path / "events.jsonl"))
    ScaleRun._end(run, Handle(), 1, tmp_path, {"status": "stopped"})  # type: ignore[arg-type]
    failure = failure_of(tmp_path, (), told[:1], *read_events(run._log.path, SESSION_EVENTS))
    assert failure is not None and failure.cause == "the run was stopped; process 7 goes on", "said once"


class Frozen:
    """A clock, and what a process that stands still now and then sees of it."""

    def __init__(self) -> None:
        self.now, self.stands_still, self.renew = 1000.0, 0.0, lambda: None

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds + self.stands_still
        self.stands_still = 0.0
        self.renew()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Frozen:
    made = Frozen()
    monkeypatch.setattr(agent, "time", made)
    return made


def test_a_job_that_was_suspended_does_not_hang(tmp_path: Path, rank: subprocess.Popen[bytes], clock: Frozen) -> None:
    """Nor does a rank that has given no sign by the first look after it."""
    watch, looks = watch_over(tmp_path, rank.pid, sign(rank.pid, 999.9)), iter(range(20))

    def renew() -> None:
        look = next(looks, None)
        clock.stands_still = 3600.0 if look == 1 else 0.0
        if look is not None and look != 2:
            (tmp_path / "noderank0/rank0.heartbeat").write_bytes(sign(rank.pid, clock.now))

    clock.renew = renew
    watch.heartbeats()
    (event,) = read_events(watch.log.path)
    assert event["event"] == "hang" and next(looks, None) is None, "only once it says nothing more"
    watch.end_outputs()


@pytest.mark.parametrize("phase, hangs", [("evaluation", True), ("scoring", False), ("compute", True)])
def test_a_metric_of_a_whole_set_is_computed_for_as_long_as_it_takes(
    tmp_path: Path, rank: subprocess.Popen[bytes], phase: str, hangs: bool
) -> None:
    watch, silence = watch_over(tmp_path, rank.pid, b""), Silence(1.0, 0.0, {})
    watch._setup_timeout, silence.seconds = 5.0, 4.0
    assert watch._hangs(Heartbeat(rank.pid, 0, 8, phase, 1.0), silence) == hangs
    watch.end_outputs()


def test_a_rank_that_has_died_is_torchruns_to_tell_of(
    tmp_path: Path, rank: subprocess.Popen[bytes], clock: Frozen
) -> None:
    watch = watch_over(tmp_path, rank.pid, sign(rank.pid, 1.0))
    os.kill(rank.pid, signal.SIGKILL)
    until(lambda: psutil.Process(rank.pid).status() == psutil.STATUS_ZOMBIE, "its end")
    looks = iter([False] * 20)
    watch._is_full = lambda: next(looks, True)  # type: ignore[method-assign]
    watch.heartbeats()
    assert not watch.log.path.exists() or not list(read_events(watch.log.path))
    watch.end_outputs()


def sign(pid: int, since: float) -> bytes:
    """Of a rank that computes."""
    return struct.pack("=qqqqd", pid, 0, 8, PHASES.index("compute"), since)
