"""Processes that lead to a host: they end when it is said, whoever holds their pipes."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import pytest

from proofmark.launch.cluster import connection
from proofmark.launch.cluster.connection import Connection, HostError
from proofmark.launch.cluster.container import asking
from proofmark.launch.cluster.container.asking import run_on
from proofmark.launch.cluster.local_process import LocalProcess
from proofmark.launch.cluster.node import Node
from tests.waiting import PATIENCE, until

HERE = Node("here", "127.0.0.1", ())
ENOUGH = PATIENCE
"""Seconds in which what holds a pipe for an hour has certainly not let go of it."""

HOLDS = "exec 3<&0; setsid cat <&3 >&2 3<&- & "
"""A process in a session of its own that holds the pipes until nobody writes to them any more."""


def ask(*command: str, patience: float = ENOUGH) -> str:
    return asyncio.run(asyncio.wait_for(run_on(HERE, patience, list(command), "asking"), 2 * ENOUGH))


@pytest.mark.parametrize("begun", ["", "sleep 3600 & "])
def test_what_prints_without_end(begun: str) -> None:
    endless = f"{begun}exec {sys.executable} -c 'import os\nwhile True: os.write(1, bytes(65536))'"
    with pytest.raises(HostError, match="it printed more than 1048576 bytes"):
        ask("sh", "-c", endless)


def test_what_does_not_answer_and_has_started_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started = tmp_path / "started"

    class Begun(LocalProcess):
        """One that has started another: its time begins then."""

        @classmethod
        async def start(cls, command: Sequence[str], **given: Any) -> Self:
            begun = await super().start(command, **given)
            await asyncio.to_thread(until, lambda: started.exists() and started.read_text()[-1:] == "\n", "another")
            return begun

    monkeypatch.setattr(asking, "LocalProcess", Begun)
    with pytest.raises(HostError, match="no answer within 2 s, `answer_timeout`"):
        ask("sh", "-c", f"sleep 3600 & echo $! > {started}; wait", patience=2)
    until(lambda: not os.path.exists(f"/proc/{int(started.read_text())}"), "its group's end")


def test_the_pipes_of_what_has_ended_are_another_sessions() -> None:
    """As ssh's own master would be, in the background."""

    async def ended() -> int | None:
        pipe = asyncio.subprocess.PIPE
        process = await LocalProcess.start(["sh", "-c", HOLDS + "exit 3"], stdin=pipe, stdout=pipe, stderr=pipe)
        await asyncio.wait_for(process.wait(), ENOUGH)
        await asyncio.wait_for(process.end(), ENOUGH)
        return process.returncode

    assert asyncio.run(ended()) == 3


def test_a_host_that_refuses_in_a_pipe_that_stays_open() -> None:
    async def opened() -> None:
        await Connection().open(["sh", "-c", HOLDS + "exec >&2; echo denied; exit 255"], ENOUGH)

    with pytest.raises(HostError, match="denied"):
        asyncio.run(asyncio.wait_for(opened(), 2 * ENOUGH))


def test_why_a_host_refused_is_known_though_it_takes_its_time_to_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its output has ended by then, as where it stands still between the two."""
    monkeypatch.setattr(connection, "EVERY", 5.0)

    async def opened() -> None:
        await Connection().open(["sh", "-c", "exec >&-; sleep 3; echo denied >&2; exit 255"], ENOUGH)

    with pytest.raises(HostError, match="denied"):
        asyncio.run(opened())


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
        for _ in range(1000):
            await asyncio.sleep(0.1)
            if (more := len(os.listdir("/proc/self/fd")) - before) <= 1:
                break
        return more

    assert asyncio.run(left()) <= 1, "what asyncio itself keeps to watch for ends"
