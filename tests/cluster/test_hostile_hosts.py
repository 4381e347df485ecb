"""Far ends that say what none of ours would."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from proofmark.launch.cluster import connection as near_end
from proofmark.launch.cluster import node_logs
from proofmark.launch.cluster.connection import Connection, HostError
from proofmark.launch.cluster.node_logs import NodeLogs
from proofmark.launch.cluster.preflight import HostReport, HostRequirements, question, table
from proofmark.launch.far_end.protocol import PIECE
from proofmark.training.job import LEAVES
from tests.waiting import PATIENCE, until

GREETING = """
import os, sys, time
def say(text): os.write(1, text if isinstance(text, bytes) else text.encode())
say("proofmark-far-end 1\\n")
"""

ENDED = '{{"frame": "ended", "code": {code}, "sizes": {sizes}, "unread": {unread}, "free_bytes": 1e12}}\n'


def heard(program: str, home: Path) -> Connection:
    """A connection, after a hostile far end has had its say."""

    async def listen() -> Connection:
        connection = Connection(NodeLogs(home, LEAVES))
        await connection.open([sys.executable, "-c", GREETING + program], PATIENCE)
        asked = asyncio.create_task(connection.ask("time", timeout=2 * PATIENCE))
        try:
            await asyncio.to_thread(until, lambda: connection.lost or connection.logs.ended is not None, "its say")
        finally:
            asked.cancel()
            await asyncio.gather(asked, return_exceptions=True)
        await connection.close(patience=0.1)
        return connection

    return asyncio.run(listen())


def file(name: str, size: object, offset: int = 0) -> str:
    return f'{{"frame": "file", "name": "{name}", "offset": {offset}, "size": {size}}}\n'


@pytest.mark.parametrize(
    "said",
    [
        file("rank0.log", 10**12),
        file("rank0.log", -1),
        file("rank0.log", "true"),
        file("rank0.log", 1, offset=5) + "x\n",
        file("../rank0.log", 1) + "x\n",
        file("/rank0.log", 1) + "x\n",
        file("rank0.log/../../x", 1) + "x\n",
        file("rankx.jsonl", 1) + "x\n",
        file("core dump\\n.log", 1) + "x\n",
        "[]\n",
        "[" * 90_000 + "\n",
        '{"frame": []}\n' + '{"frame": "ended"}\n',
        ENDED.format(code="Infinity", sizes={}, unread={}),
        '{"frame": "answer"}\n' * 3,
        "no JSON\n",
    ],
)
def test_what_is_no_frame_loses_the_host(tmp_path: Path, said: str) -> None:
    (tmp_path / "home").mkdir()
    connection = heard(f"say({said!r})\ntime.sleep(600)", tmp_path / "home")
    assert connection.lost == "it sent an invalid frame" and connection.logs.ended is None
    assert not (tmp_path / "rank0.log").exists()


def test_a_host_that_never_stops_is_not_listened_to(tmp_path: Path) -> None:
    assert heard("while True: say(b'x' * (1 << 20))", tmp_path).lost == "it sent an invalid frame"


def test_a_host_has_no_number_of_files_made_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Empty ones, of names that a job's logs may have."""
    monkeypatch.setattr(node_logs, "FILES", 3)
    said = "".join(file(f"rank0{number}.log", 0) + "\n" for number in (1, 2, 3, 1, 4, 5))
    assert heard(f"say({said!r})\ntime.sleep(600)", tmp_path).lost == "it sent an invalid frame"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["rank01.log", "rank02.log", "rank03.log"]


def test_a_host_that_reads_nothing_is_lost_though_it_is_not_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(near_end, "GRACE", 1.0)

    async def ask() -> None:
        connection = Connection(silence=20.0)  # longer than a busy machine lets a far end wait for a processor
        beats = 'while True:\n    say(\'{"frame": "heartbeat"}\\n\')\n    time.sleep(0.2)'
        await connection.open([sys.executable, "-c", f"{GREETING}\n{beats}"], PATIENCE)
        with pytest.raises(HostError, match=r"^has read nothing for 21 s, `silence_timeout`$"):
            await connection.ask("take", bytes(4 << 20))
        await connection.close()

    asyncio.run(asyncio.wait_for(ask(), PATIENCE))


@pytest.mark.parametrize(
    "sizes, unread, expected",
    [
        ({"rank0.log": 4}, {}, "rank0.log has not come home whole"),
        ({"rank1.jsonl": 4}, {}, "rank1.jsonl has not come home whole"),
        ({}, {"rank0.log": "Stale file handle\\u001b[2J"}, "rank0.log cannot be read there: Stale file handle?[2J"),
        ({"rank0.log": 3}, {}, None),
    ],
)
def test_an_end_counts_with_all_that_was_written(
    tmp_path: Path, sizes: dict[str, int], unread: dict[str, str], expected: str | None
) -> None:
    (tmp_path / "home").mkdir()
    texts = [str(each).replace("'", '"').replace("\\\\u", "\\u") for each in (sizes, unread)]
    said = file("rank0.log", 3) + "abc\n" + ENDED.format(code=0, sizes=texts[0], unread=texts[1])
    connection = heard(f"say({said!r})\ntime.sleep(600)", tmp_path / "home")
    assert (connection.logs.ended, connection.logs.incomplete) == (0, expected)


def test_a_hole_takes_no_space_here_either(tmp_path: Path) -> None:
    """An engine's directory comes home as well, and a file in it may be as large as the disk there is not."""
    logs, piece = NodeLogs(tmp_path, ("engine-*",)), bytes(PIECE)
    for offset in range(0, 64 * PIECE, PIECE):
        logs.add("engine-1/hole", offset, piece)
    logs.add("engine-1/hole", 64 * PIECE, b"\0end")
    logs.add("engine-1/hole", 64 * PIECE + 4, b"\0")
    hole = tmp_path / "engine-1/hole"
    assert (
        hole.read_bytes() == bytes(64 * PIECE) + b"\0end\0" and logs.lacking({"engine-1/hole": 64 * PIECE + 5}) is None
    )
    assert hole.stat().st_blocks * 512 < PIECE


def test_what_a_host_says_moves_no_cursor(tmp_path: Path) -> None:
    said = '{"frame": "answer", "error": "\\u001b[2J\\u001b]0;mine\\u0007 gone\\nsecond  ok: all is well"}\n'

    async def ask() -> str:
        connection = Connection()
        await connection.open([sys.executable, "-c", f"{GREETING}\nsay({said!r})\ntime.sleep(600)"], PATIENCE)
        report = HostReport(0, "first")
        await question(connection, report, HostRequirements(()))
        await connection.close()
        return table([report])

    assert asyncio.run(ask()) == "0  first  ?[2J?]0;mine? gone second ok: all is well"
