"""Processes that lead to a host: they end when it is said, whoever holds their pipes."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import pytest

from proofmark.launch.cluster.connection import Connection, HostError
from proofmark.launch.cluster.container.asking import run_on
from proofmark.launch.cluster.local_process import LocalProcess
from proofmark.launch.cluster.node import Node
from tests.waiting import until

HERE = Node("here", "127.0.0.1", ())
ENOUGH = 60.0
"""Seconds in which what holds a pipe for an hour has certainly not let go of it."""

HOLDS = "exec 3<&0; setsid cat <&3 >&2 3<&- & "
"""A process in a session of its own that holds the pipes until nobody writes to them any more."""


def ask(*command: str, patience: float = ENOUGH) -> str:
    return asyncio.run(asyncio.wait_for(run_on(HERE, patience, list(command), "asking"), ENOUGH))


@pytest.mark.parametrize("begun", ["", "sleep 3600 & "])
def test_what_prints_without_end(begun: str) -> None:
    endless = f"{begun}exec {sys.executable} -c 'import os\nwhile True: os.write(1, bytes(65536))'"
    with pytest.raises(HostError, match="it printed more than 1048576 bytes"):
        ask("sh", "-c", endless)


def test_what_does_not_answer_and_has_started_another(tmp_path: Path) -> None:
    started = tmp_path / "started"
    with pytest.raises(HostError, match="no answer within 2 s, `answer_timeout`"):
        ask("sh", "-c", f"sleep 3600 & echo $! > {started}; wait", patience=2)
    until(lambda: not os.path.exists(f"/proc/{int(started.read_text())}"), "its group's end")


def test_the_pipes_of_what_has_ended_are_another_sessions() -> None:
    """As ssh's own master would be, in the background."""

    async def ended() -> int | None:
        pipe = asyncio.subprocess.PIPE
        process = await LocalProcess.start(["sh", "-c", HOLDS + "exit 3"], stdin=pipe, stdout=pipe, stderr=pipe)
        await asyncio.wait_for(process.wait(), 20)
        await asyncio.wait_for(process.end(), 20)
        return process.returncode

    assert asyncio.run(ended()) == 3


def test_a_host_that_refuses_in_a_pipe_that_stays_open() -> None:
    async def opened() -> None:
        await Connection().open(["sh", "-c", HOLDS + "exec >&2; echo denied; exit 255"], 20)

    with pytest.raises(HostError, match="denied"):
        asyncio.run(asyncio.wait_for(opened(), 25))


def test_an_end_that_is_cancelled_leaves_no_pipe() -> None:
    async def left() -> int:
        before = len(os.listdir("/proc/self/fd"))
        pipe = asyncio.subprocess.PIPE
        command = ["sh", "-c", "exec 3<&0; setsid sleep 5 <&3 3<&- & exit 0"]
        process = await LocalProcess.start(command, stdin=pipe, stdout=pipe, stderr=pipe)
        assert process.stdin is not None
        process.stdin.write(bytes(1 << 20))
        end = asyncio.ensure_future(process.end())
        await asyncio.sleep(0)
        end.cancel()
        await asyncio.wait([end])
        await process.wait()
        await process.end()
        await asyncio.sleep(0.1)
        return len(os.listdir("/proc/self/fd")) - before

    assert asyncio.run(left()) <= 1, "what asyncio itself keeps to watch for ends"
