"""A log of what processes print, while it is written and when they are gone."""

from __future__ import annotations

import os
from pathlib import Path

from proofmark.process.output.capped_log import CappedLog
from tests.waiting import until


def test_what_was_written_is_there_when_it_has_caught_up(tmp_path: Path) -> None:
    log = CappedLog(tmp_path / "log")
    try:
        os.write(log.descriptor, b"x" * 50_000)
        log.catch_up(within=float("inf"))
        assert log.since(0) == b"x" * 50_000
    finally:
        os.close(log.descriptor)
        log.finish()


def test_who_has_no_writers_any_more_is_not_waited_for(tmp_path: Path) -> None:
    """As of a rank that ends where it is asked for its stacks: its pipe is closed, or its number another's."""
    log = CappedLog(tmp_path / "log")
    os.write(log.descriptor, b"its last words")
    os.close(log.descriptor)
    log.catch_up(within=float("inf"))
    until(lambda: not log.is_alive(), "its end")
    log.catch_up(within=float("inf"))
    log.finish()
    assert log.since(0) == b"its last words"
