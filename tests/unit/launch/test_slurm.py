"""A controller of Slurm's that is slow: what the real one in tests/cluster doesn't do when asked."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from proofmark.launch.cluster.connection import HostError
from proofmark.launch.launchers import slurm
from proofmark.launch.launchers.slurm import TRIES, Slurm
from tests.waiting import until

SALLOC = "import sys; print('salloc: Granted job allocation 7', file=sys.stderr, flush=True); sys.stdin.read()"


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """An allocation that is granted at once, whose controller knows its nodes at the third question."""
    commands: list[tuple[str, ...]] = []

    async def output(*command: str) -> str:
        commands.append(command)
        if command[-1] == "%N":
            return "n[1-2]" if commands.count(command) > 2 else ""
        shown = {"hostnames": "n1\nn2", "node": "NodeName=n1 NodeAddr=10.0.0.1"}
        return shown.get(command[2], "") if command[0] == "scontrol" else ""

    monkeypatch.setattr("shutil.which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr(slurm, "_output", output)
    monkeypatch.setattr(slurm, "POLL", 0.02)
    monkeypatch.setattr(slurm, "HEED", 0.01, raising=False)
    monkeypatch.setattr(Slurm, "_allocate", lambda self, count: [sys.executable, "-c", SALLOC])
    return commands


async def taken(count: int) -> list[Any]:
    nodes = Slurm(SimpleNamespace())  # type: ignore[arg-type]
    try:
        return await nodes.take(count, lambda line: None)
    finally:
        await nodes.give_back()


def test_an_allocation_outlives_answers_that_do_not_come(asked: list[tuple[str, ...]]) -> None:
    assert [node.name for node in asyncio.run(taken(2))] == ["n1", "n2"]
    assert [command[-1] for command in asked].count("%N") == 3


WAITING = """
import os, sys, time
print("salloc: Pending job allocation 7", file=sys.stderr, flush=True)
while not os.path.exists(sys.argv[1]): time.sleep(0.01)
print("salloc: Granted job allocation 7", file=sys.stderr, flush=True)
sys.stdin.read()
"""


def test_a_queue_is_asked_ever_less_often(
    asked: list[tuple[str, ...]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Every few hundredths of a second it would be 50 times; the grant is told by salloc, and not by the queue."""
    granted, now = tmp_path / "granted", [0.0]

    def monotonic() -> float:
        """A second, however long that is, in which the job waits."""
        if now[0] < 1.0:
            now[0] += 0.01
        else:
            granted.touch()
        return now[0]

    monkeypatch.setattr(slurm, "time", SimpleNamespace(monotonic=monotonic))
    monkeypatch.setattr(Slurm, "_allocate", lambda self, count: [sys.executable, "-c", WAITING, str(granted)])
    assert len(asyncio.run(taken(2))) == 2
    assert 1 <= [command[-1] for command in asked].count("%T (%r)") <= 12


def test_nodes_that_stay_too_few_are_told(asked: list[tuple[str, ...]]) -> None:
    with pytest.raises(HostError, match=r"Slurm gives 2 nodes where 3 are wanted: n\[1-2\]"):
        asyncio.run(taken(3))
    assert [command[-1] for command in asked].count("%N") == TRIES
    assert asked[-1] == ("scancel", "7"), "and given back"


def test_a_session_within_a_job_gives_none_of_its_bounds_on(
    asked: list[tuple[str, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """`srun` takes the binding and the memory of the shell's own job for what is wanted here."""
    for name in ("SLURM_CPU_BIND", "SLURM_CONF", "SRUN_CPUS_PER_TASK", "OTHER"):
        monkeypatch.setenv(name, "x")
    (first, _) = asyncio.run(taken(2))
    before, after = first.lead[: first.lead.index("srun")], first.lead[first.lead.index("srun") :]
    unset = {name for flag, name in zip(before[1::2], before[2::2], strict=True) if flag == "-u"}
    assert before[0] == "env" and {"SLURM_CPU_BIND", "SRUN_CPUS_PER_TASK"} <= unset
    assert not {"SLURM_CONF", "OTHER"} & unset and "--cpu-bind=none" in after


def not_ready(monkeypatch: pytest.MonkeyPatch, until_then: list[str]) -> None:
    """Nodes that boot until there is something in a list."""
    answered = slurm._output

    async def output(*command: str) -> str:
        while command[-1] == "true" and not until_then:
            await asyncio.sleep(0.01)
        return await answered(*command)

    monkeypatch.setattr(slurm, "_output", output)


def test_nodes_that_boot_or_run_a_prolog_are_waited_for(
    asked: list[tuple[str, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """No answer is expected of them before."""
    told: list[str] = []
    made_ready: list[str] = []
    not_ready(monkeypatch, made_ready)

    def tell(line: str) -> None:
        told.append(line)
        if "made ready" in line:
            made_ready.append(line)

    async def take() -> list[Any]:
        nodes = Slurm(SimpleNamespace())  # type: ignore[arg-type]
        try:
            return await nodes.take(2, tell)
        finally:
            await nodes.give_back()

    assert len(asyncio.run(take())) == 2
    assert told == ["Slurm job 7 runs on n1, n2", "Slurm job 7: its nodes are being made ready"]
    (step,) = (command for command in asked if command[-1] == "true")
    assert {"srun", "--jobid=7", "-N2", "-n2"} <= {*step}


def test_nodes_that_are_never_ready_are_not_waited_for_forever(
    asked: list[tuple[str, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their own steps say which, and why."""
    monkeypatch.setattr(slurm, "READYING", 0.1)
    monkeypatch.setattr(slurm, "POLL", 0.1)
    not_ready(monkeypatch, [])
    assert len(asyncio.run(taken(2))) == 2


def test_a_job_that_ends_before_its_nodes_are_ready_is_told(
    asked: list[tuple[str, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Slurm, "_allocate", lambda self, count: [sys.executable, "-c", ENDED])
    not_ready(monkeypatch, [])
    with pytest.raises(HostError, match=r"^Slurm ended job 7 \(gone\): revoked$"):
        asyncio.run(taken(2))


ENDED = "import sys; print('salloc: Granted job allocation 7\\nsalloc: revoked', file=sys.stderr, flush=True)"


@pytest.mark.parametrize("limit, state", [(60.0, "CANCELLED"), (0.0, "COMPLETING")])
def test_how_a_job_ended_is_known_when_its_nodes_are_free(
    asked: list[tuple[str, ...]], monkeypatch: pytest.MonkeyPatch, limit: float, state: str
) -> None:
    """Or that they are not, when it has had its time for that."""
    monkeypatch.setattr(Slurm, "_allocate", lambda self, count: [sys.executable, "-c", ENDED])
    monkeypatch.setattr(slurm, "COMPLETING", limit)
    nodes_of = slurm._output

    async def output(*command: str) -> str:
        if "job" not in command:
            return await nodes_of(*command)
        asked.append(command)
        return f"JobId=7 JobState={'CANCELLED' if asked.count(command) > 2 else 'COMPLETING'} Reason=None"

    monkeypatch.setattr(slurm, "_output", output)

    async def reason() -> str:
        nodes = Slurm(SimpleNamespace())  # type: ignore[arg-type]
        try:
            await nodes.take(2, lambda line: None)
            while not (why := await nodes.gone()):
                await asyncio.sleep(0.01)
            return why
        finally:
            await nodes.give_back()

    assert asyncio.run(reason()) == f"Slurm ended job 7 ({state}): revoked"


def test_what_a_command_of_slurms_prints() -> None:
    assert asyncio.run(slurm._output(sys.executable, "-c", "print('NodeAddr=10.0.0.1')")) == "NodeAddr=10.0.0.1"
    assert asyncio.run(slurm._output(sys.executable, "-c", "raise SystemExit('no such node')")) == ""


def test_a_command_that_nobody_waits_for_any_more_ends(tmp_path: Path) -> None:
    """As it does where a session ends while a controller does not answer."""
    said = tmp_path / "pid"
    hangs = f"import os, pathlib, time; pathlib.Path({str(said)!r}).write_text(str(os.getpid())); time.sleep(3600)"

    async def cancelled() -> int:
        asked = asyncio.create_task(slurm._output(sys.executable, "-c", hangs))
        await asyncio.to_thread(until, lambda: said.is_file() and said.read_text(), "the command's beginning")
        asked.cancel()
        await asyncio.gather(asked, return_exceptions=True)
        return int(said.read_text())

    pid = asyncio.run(cancelled())
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
