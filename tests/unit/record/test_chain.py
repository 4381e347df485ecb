"""A log that was sealed: whatever is done to its file is seen."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from proofmark.record.events.log import CORRUPT, Event, read_events
from proofmark.record.integrity.chain import LINK, ChainedLog, changes, digest_of
from proofmark.record.parts import FIRST, Seal


@pytest.fixture
def log(tmp_path: Path) -> ChainedLog:
    """Four events."""
    made = ChainedLog(tmp_path / "events.jsonl")
    for number in range(4):
        made.write("round", number=number, seconds=number / 3, text="é\ud800", nested={"b": [1, 2.0], "a": None})
    return made


def lines(log: ChainedLog) -> list[str]:
    return log.path.read_text().splitlines(keepends=True)


def test_as_it_was_written(log: ChainedLog) -> None:
    events = list(read_events(log.path))
    assert [event["number"] for event in events] == [0, 1, 2, 3]
    assert events[0][LINK] == FIRST and events[3][LINK] == digest_of(events[2])
    assert log.seal == Seal(events=4, head=digest_of(events[3]))
    assert changes(log.path, log.seal) == []
    assert changes(log.path.with_name("none"), Seal()) == ["none is gone"]


@pytest.mark.parametrize("lay", [os.mkfifo, lambda path: path.symlink_to("/dev/zero")], ids=["pipe", "device"])
def test_what_is_no_file_in_its_place_is_told_and_not_waited_for(log: ChainedLog, lay: Callable[[Path], None]) -> None:
    log.path.unlink()
    lay(log.path)
    expected = "events.jsonl: it is not a regular file, so not read"
    assert changes(log.path, log.seal) == [expected]
    assert list(read_events(log.path)) == [{"event": CORRUPT, "what": expected}]


def test_it_goes_on_after_a_seal(log: ChainedLog) -> None:
    log.close()
    again = ChainedLog(log.path, log.seal)
    again.write("end")
    assert again.seal.events == 5 and changes(log.path, again.seal) == []


def test_however_its_lines_are_written(log: ChainedLog) -> None:
    others = [json.dumps(dict(reversed(json.loads(line).items()))) + "\n" for line in lines(log)]
    assert others != lines(log)
    log.path.write_text("".join(others))
    assert changes(log.path, log.seal) == []
    log.path.write_text("".join([others[0], others[1].replace('"number": 1', '"number": 1e999'), *others[2:]]))
    assert changes(log.path, log.seal) == ["events.jsonl, line 3, does not follow what was written before it"]


def edited(old: list[str]) -> list[str]:
    return [old[0], old[1].replace('"number":1', '"number":7'), *old[2:]]


def edited_at_the_end(old: list[str]) -> list[str]:
    return [*old[:3], old[3].replace('"number":3', '"number":7')]


def appended(old: list[str]) -> list[str]:
    """By somebody who knows how to."""
    last = json.loads(old[-1])
    return [*old, json.dumps({**last, "number": 4, LINK: digest_of(last)}) + "\n"]


def rewritten(old: list[str]) -> list[str]:
    """A whole chain of one's own."""
    head, new = FIRST, []
    for line in old:
        event = {**json.loads(line), "seconds": 0.001, LINK: head}
        head = digest_of(event)
        new.append(json.dumps(event) + "\n")
    return new


@pytest.mark.parametrize(
    "change, expected",
    [
        (edited, "line 3, does not follow what was written before it"),
        (edited_at_the_end, "line 4, is not what was written last"),
        (appended, "has 5 events, 4 were written"),
        (rewritten, "line 4, is not what was written last"),
        (lambda old: [old[0], old[2], old[3]], "line 2, does not follow"),
        (lambda old: [old[0], old[2], old[1], old[3]], "line 2, does not follow"),
        (lambda old: old[:3], "has 3 events, 4 were written"),
        (lambda old: [old[0], "rubbish\n", *old[1:]], "line 2, does not follow"),
        (lambda old: [*old, '{"event": "round"'], "line 5, does not follow"),
        (lambda old: [], "has 0 events, 4 were written"),
    ],
)
def test_whatever_is_done_to_it_is_seen(
    log: ChainedLog, change: Callable[[list[str]], list[str]], expected: str
) -> None:
    log.path.write_text("".join(change(lines(log))))
    found = changes(log.path, log.seal)
    assert found and found[0].startswith("events.jsonl") and any(expected in each for each in found), found


def test_the_link_is_the_chains_own(log: ChainedLog) -> None:
    with pytest.raises(ValueError, match="'previous' is the chain's own"):
        log.write("round", **{LINK: FIRST})
    with pytest.raises(ValueError):
        log.write("round", seconds=float("nan"))
    assert changes(log.path, log.seal) == []


@pytest.mark.parametrize("written", [False, True])
def test_an_interrupt_leaves_a_log_that_is_whole(
    log: ChainedLog, monkeypatch: pytest.MonkeyPatch, written: bool
) -> None:
    def interrupted(event: Event) -> None:
        if written:
            append(event)
        raise KeyboardInterrupt

    append = log.append
    with monkeypatch.context() as patch:
        patch.setattr(log, "append", interrupted)
        with pytest.raises(KeyboardInterrupt):
            log.write("round")
    log.write("interrupted")
    assert changes(log.path, log.seal) == [] and log.seal.events == 5


def test_after_what_cannot_be_taken_back_nothing_is_written(log: ChainedLog, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*_: object) -> None:
        raise OSError(errno.EIO, "gone")

    with monkeypatch.context() as patch:
        patch.setattr(log, "append", failing)
        patch.setattr("proofmark.record.integrity.chain.os.ftruncate", failing)
        with pytest.raises(OSError, match="gone"):
            log.write("round")
    with pytest.raises(OSError, match="events.jsonl"):
        log.write("end")
    assert log.seal.events == 4


def test_what_a_disk_takes_a_part_of_is_taken_back(log: ChainedLog, monkeypatch: pytest.MonkeyPatch) -> None:
    class FillingUp:
        """The disk takes half of what it is given."""

        def __init__(self) -> None:
            self.fileno = log._stream.fileno

        def write(self, line: bytes) -> int:
            return stream.write(line[: len(line) // 2])

    stream, log._stream = log._stream, FillingUp()  # type: ignore[assignment]
    with pytest.raises(OSError) as caught:
        log.write("round")
    assert caught.value.errno == errno.ENOSPC
    log._stream = stream
    log.write("end")
    assert changes(log.path, log.seal) == [] and log.seal.events == 5
