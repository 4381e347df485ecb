"""A far end on this machine, and what leads it: orders that take their time, logs of any length."""

from __future__ import annotations

import asyncio
import hashlib
import json
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from proofmark.launch.cluster import connection as near_end
from proofmark.launch.cluster.connection import Connection, HostError
from proofmark.launch.cluster.node import Node
from proofmark.launch.cluster.node_logs import NodeLogs
from proofmark.launch.cluster.program import PROGRAM
from proofmark.launch.far_end.protocol import GREETING
from proofmark.training.job import LEAVES
from tests.waiting import PATIENCE

MEGABYTE = 1 << 20

AGENT = b"""
import sys
with open(sys.argv[1], "wb") as log:
    for _ in range(int(sys.argv[2])):
        log.write(bytes(1 << 20))
"""

STREAM = """
import asyncio, json, sys
from pathlib import Path
from tests.cluster.test_connection import peak, stream
print(json.dumps([*asyncio.run(stream(Path(sys.argv[1]), int(sys.argv[2]))), peak("self")]))
"""


def peak(pid: object) -> int:
    """Bytes of memory that a process had at most."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) * 1024


async def stream(folder: Path, megabytes: int) -> tuple[int | None, int, int]:
    """An agent's exit code, the size of its log here, and the peak of its far end."""
    connection = await opened()
    code = await run(connection, folder, megabytes)
    assert connection._process is not None
    there = peak(connection._process.pid)
    await connection.close()
    size = (folder / "rank0.log").stat().st_size
    (folder / "rank0.log").unlink()
    return code, size, there


async def run(connection: Connection, home: Path, megabytes: int) -> int | None:
    """The exit code of an agent whose log came home."""
    connection.logs = NodeLogs(home, LEAVES)
    directory = home.parent / "work" / "runs" / home.name / "noderank0"
    await start(connection, home, [sys.executable, "agent.py", f"{directory}/rank0.log", str(megabytes)])
    while connection.logs.ended is None and connection.lost is None:
        await asyncio.sleep(0.05)
    await connection.ask("stop")
    await connection.ask("remove")
    return connection.logs.ended


async def start(connection: Connection, home: Path, command: list[str]) -> None:
    """An agent, beside its code."""
    work = (await connection.ask("open", work_dir=str(home.parent / "work")))["work_dir"]
    sha = hashlib.sha256(AGENT).hexdigest()
    await connection.ask("lack", json.dumps({"agent.py": sha}).encode(), tree="one")
    await connection.ask("take", AGENT, sizes={sha: len(AGENT)})
    await connection.ask("lay_out")
    await connection.ask(
        "run",
        command=command,
        environment={"TMPDIR": str(home.parent)},
        directory=f"{work}/runs/{home.name}/noderank0",
        leaves=LEAVES,
        spec="{}",
        mark=str(home),
    )


def streamed(folder: Path, megabytes: int) -> tuple[int, int]:
    """Bytes that the near and the far end held at most, while a log of some size came home."""
    folder.mkdir()
    command = [sys.executable, "-c", STREAM, str(folder), str(megabytes)]
    ran = subprocess.run(command, cwd=Path(__file__).parents[2], check=True, capture_output=True, text=True)
    code, size, far, near = json.loads(ran.stdout)
    assert (code, size) == (0, megabytes * MEGABYTE)
    return near, far


def test_memory_does_not_grow_with_the_logs(tmp_path: Path) -> None:
    small, large = streamed(tmp_path / "small", 1), streamed(tmp_path / "large", 200)
    assert all(after < before + 16 * MEGABYTE for before, after in zip(small, large, strict=True)), (small, large)


def test_a_far_end_serves_one_job_after_another(tmp_path: Path) -> None:
    homes = [tmp_path / name for name in ("first", "second")]

    async def both() -> list[int | None]:
        connection = await opened()
        codes = []
        for megabytes, home in enumerate(homes, start=1):
            home.mkdir()
            codes.append(await run(connection, home, megabytes))
            left = {path.name for path in tmp_path.iterdir()} - {"work", "first", "second"}
            assert not left and not list((tmp_path / "work/runs").iterdir()), "before the next one begins"
        await connection.close()
        return codes

    assert asyncio.run(both()) == [0, 0]
    assert [(home / "rank0.log").stat().st_size for home in homes] == [MEGABYTE, 2 * MEGABYTE]


def test_a_far_end_needs_the_standard_library_alone(tmp_path: Path) -> None:
    alone = [sys.executable, "-I", "-S", "-c", PROGRAM]
    ran = subprocess.run(alone, cwd=tmp_path, stdin=subprocess.DEVNULL, capture_output=True, check=True)
    said = ran.stdout.splitlines(keepends=True)
    assert GREETING in said and {*said} <= {GREETING, b'{"frame": "heartbeat"}\n'} and not ran.stderr


async def opened(silence: float = 60.0) -> Connection:
    connection = Connection(silence=silence)
    await connection.open(Node("x", "127.0.0.1").command([sys.executable, "-u", "-c", PROGRAM]), PATIENCE)
    return connection


def test_an_order_may_take_longer_than_a_silence(tmp_path: Path) -> None:
    """The far end hears the near one's heartbeats all the while. The silence is one in which a machine may well stand
    still for some seconds."""

    async def ask() -> str:
        connection = await opened(silence=15.0)
        await connection.ask("open", work_dir=str(tmp_path))
        command = [sys.executable, "-c", "import time; time.sleep(17); print('done')"]
        given = {"environment": {"M": "me"}, "seconds": PATIENCE, "mark": "M=me"}
        ran = await connection.ask("ask", timeout=2 * PATIENCE, command=command, **given)
        await connection.close()
        return str(ran["output"])

    assert asyncio.run(ask()) == "done\n"


def test_an_order_that_is_given_up_holds_no_other_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its answer may come in an hour. The far end is well, and has the time to remove what it left."""
    monkeypatch.setattr(near_end, "QUIET", PATIENCE)

    async def ask() -> None:
        connection = await opened()
        await start(connection, tmp_path / "home", ["cat"])
        sleep = {"command": ["sleep", "600"], "environment": {}, "seconds": 600, "mark": "M=me"}
        slow = asyncio.create_task(connection.ask("ask", timeout=600, **sleep))
        await asyncio.sleep(0.1)
        with pytest.raises(HostError, match=r"^no answer to 'stop' within 0.1 s$"):
            await connection.ask("stop", timeout=0.1)
        assert connection.is_open
        slow.cancel()
        await asyncio.gather(slow, return_exceptions=True)
        with pytest.raises(HostError, match=f"^{near_end.ABANDONED}$"):
            await connection.ask("stop")
        await connection.close(PATIENCE)
        assert not list((tmp_path / "work/runs").iterdir())

    asyncio.run(asyncio.wait_for(ask(), 2 * PATIENCE))


def process_of(connection: Connection) -> psutil.Process:
    assert connection._process is not None
    return psutil.Process(connection._process.pid)


LOGIN = """
echo "bash: warning: setlocale" >&2
until [ -e "$0/heard" ]; do sleep 0.1; done
echo proofmark-far-end 1
until [ -e "$0/open" ]; do sleep 0.1; done
"""


@pytest.mark.parametrize(
    "words, expected",
    [
        ("exit 137", "was killed by signal 9"),
        ("echo Broken pipe >&2; exit 255", "ended with exit code 255: Broken pipe"),
        ("echo Timeout >&2", "the connection was closed: Timeout"),
    ],
)
def test_what_a_login_printed_is_not_why_its_host_was_lost(tmp_path: Path, words: str, expected: str) -> None:
    async def lost() -> str | None:
        connection = Connection()
        opening = asyncio.create_task(connection.open(["sh", "-c", LOGIN + words, str(tmp_path)], PATIENCE))
        while not connection._errors:
            await asyncio.sleep(0.02)
        (tmp_path / "heard").touch()
        await opening
        (tmp_path / "open").touch()
        while not connection.lost:
            await asyncio.sleep(0.02)
        await connection.close()
        return connection.lost

    assert asyncio.run(asyncio.wait_for(lost(), PATIENCE)) == expected


def test_a_silence_is_bridged_and_nothing_is_lost_in_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(near_end, "QUIET", 2.0)

    async def bridge() -> tuple[bool, float]:
        connection = await opened()
        far_end = process_of(connection)
        far_end.suspend()
        try:
            while connection.quiet is None:
                await asyncio.sleep(0.1)
            was_open = connection.is_open
        finally:
            far_end.resume()
        answer = await connection.ask("time")
        assert connection.is_open and connection.quiet is None
        await connection.close()
        return was_open, answer["time"]

    was_open, time = asyncio.run(bridge())
    assert not was_open and time > 0


def test_a_silence_that_lasts_is_a_host_that_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the pipe to it is full, so that nothing can be written any more."""
    monkeypatch.setattr(near_end, "GRACE", 1.0)

    async def lose() -> str:
        connection = await opened()
        far_end = process_of(connection)
        far_end.send_signal(signal.SIGSTOP)
        connection._silence, connection._silent = 2.0, 0.0  # not before: it would end by itself if this stood still
        with pytest.raises(HostError, match=r"stopped answering 3 s ago, `silence_timeout`"):
            await connection.ask("take", bytes(8 * MEGABYTE), sizes={})
        await connection.close()
        assert not far_end.is_running() or far_end.status() == psutil.STATUS_ZOMBIE
        return str(connection.lost)

    assert asyncio.run(lose()).startswith("stopped answering")


def test_a_far_end_that_hears_nothing_for_as_long_as_it_was_told_ends() -> None:
    """The near end lives and is not heard: no end of input says so."""
    started = [sys.executable, "-u", "-c", PROGRAM]
    with subprocess.Popen(started, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as far_end:
        assert far_end.stdin is not None and far_end.stdout is not None
        assert far_end.stdout.readline() == GREETING
        far_end.stdin.write(b'{"order": "heartbeat", "patience": 2.0}\n')
        far_end.stdin.flush()
        assert far_end.wait(PATIENCE) == 0


def test_files_come_in_one_order_and_a_damaged_one_is_refused(tmp_path: Path) -> None:
    contents = [b"one", b"", b"three"]
    sizes = {hashlib.sha256(content).hexdigest(): len(content) for content in contents}

    async def send(body: bytes) -> None:
        connection = await opened()
        try:
            await connection.ask("open", work_dir=str(tmp_path))
            await connection.ask("take", body, sizes=sizes)
        finally:
            await connection.close()

    asyncio.run(send(b"".join(contents)))
    assert {path.name: path.stat().st_size for path in (tmp_path / "objects").iterdir()} == sizes
    with pytest.raises(HostError, match="damaged on its way"):
        asyncio.run(send(b"onethrow"))
