"""What a person sees of a long step."""

from __future__ import annotations

import contextlib
import io
import os
import re
import shutil
import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from _pytest._io import TerminalWriter

from fixtures.live import progress
from fixtures.live.progress import Progress
from fixtures.live.progress_channel import Receiver, Sender
from fixtures.live.screen import SCREEN, Screen


class Clock:
    """A clock that is set by hand."""

    now = 100.0

    def monotonic(self) -> float:
        return self.now


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(progress, "time", clock)
    return clock


@pytest.fixture(autouse=True)
def _at_a_desk(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CI", "BUILD_NUMBER"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("LINES", "24")


class Show:
    """Progress of the case `net` on a screen."""

    def __init__(self, out: io.StringIO, terminal: bool = True) -> None:
        self.screen = Screen(out)
        writer = TerminalWriter(self.screen)  # type: ignore[arg-type]
        reporter = SimpleNamespace(hasmarkup=False, ensure_newline=lambda: None, line=writer.line)
        capture = SimpleNamespace(global_and_fixture_disabled=contextlib.nullcontext)
        plugins = {"capturemanager": capture, "terminalreporter": reporter if terminal else None}
        config: Any = SimpleNamespace(stash={SCREEN: self.screen}, pluginmanager=SimpleNamespace(getplugin=plugins.get))
        self.progress = Progress(config)

    def __call__(self, report: dict[str, Any] | None, case: str = "net") -> None:
        self.progress(case, report)


def seen(out: io.StringIO, width: int = 80) -> list[str]:
    """The lines that a terminal shows of what was written to it: cursor up and right, and erased lines."""
    lines, row, column = [""], 0, 0
    for text in re.split(r"(\x1b\[\d*[A-Z]|\n|\r)", out.getvalue()):
        if text == "\n":
            row, column = row + 1, 0
            lines += [""] * (row + 1 - len(lines))
        elif text == "\r":
            column = 0
        elif text == "\x1b[2K":
            lines[row] = ""
        elif text.endswith("A") and text.startswith("\x1b"):
            row -= int(text[2:-1])
        elif text.endswith("C") and text.startswith("\x1b"):
            column += int(text[2:-1])
        else:
            lines[row] = lines[row][:column].ljust(column) + text + lines[row][column + len(text) :]
            column += len(text)
    assert all(len(line) < width for line in lines), lines
    return [line.rstrip() for line in lines]


def test_a_note_is_printed_at_once(clock: Clock) -> None:
    out = io.StringIO()
    Show(out)({"note": "training them"})
    assert out.getvalue().strip() == "net: training them"


def test_plain_lines_come_every_ten_seconds_and_have_the_time_left_first(clock: Clock) -> None:
    out = io.StringIO()
    show = Show(out)
    for second in range(31):
        clock.now = 100.0 + second
        show({"phase": "engine", "step": second + 1, "steps": 60, "items": 32 * (second + 1)})
    lines = out.getvalue().strip().splitlines()
    assert len(lines) == 3
    assert lines[0] == "net: 49 s left, engine: 11/60, 32.0 samples/s, 10 s"


@pytest.mark.parametrize("variable, value", [("TERM", "dumb"), ("CI", "true"), ("BUILD_NUMBER", "7")])
def test_a_dumb_terminal_and_ci_get_plain_lines(
    clock: Clock, monkeypatch: pytest.MonkeyPatch, variable: str, value: str
) -> None:
    monkeypatch.setenv(variable, value)
    out = Terminal()
    show = Show(out)
    clock.now += 11
    show({"silent": "compile", "seconds": 11.0})
    show(None)
    assert out.getvalue() == "net: compile: 11 s\n"


def test_silence_is_told_with_the_place_where_it_began(clock: Clock) -> None:
    out = io.StringIO()
    show = Show(out)
    clock.now += 11
    show({"silent": "data_and_model", "seconds": 11.2})
    clock.now += 11
    show({"phase": "engine round 1/3", "step": 2, "steps": 60, "items": 64})
    clock.now += 5
    show({"silent": "engine_inference", "seconds": 16.0})
    clock.now += 6
    show({"silent": "engine_inference", "seconds": 22.0})
    show({"phase": "engine round 1/3", "step": 60, "steps": 60, "items": 1920})
    clock.now += 10
    show({"silent": "engine_inference", "seconds": 32.0})
    assert out.getvalue().strip().splitlines() == [
        "net: data_and_model: 11 s",
        "net: engine round 1/3: 2/60, 0 s",
        "net: engine round 1/3: 2/60, engine_inference: 22 s",
        "net: engine_inference: 32 s",
    ]


def test_the_time_left_is_that_of_all_rounds_and_the_rate_is_the_rounds_own(clock: Clock) -> None:
    out = Terminal()
    show = Show(out)
    lines = []
    for number, step in ((1, 0), (1, 4), (2, 0), (2, 1)):
        show({"phase": f"engine round {number}/3", "step": step, "steps": 4, "items": 256 * step})
        lines.append(seen(out)[-1])
        clock.now += 20
    assert lines == [
        "     … left  net  engine round 1/3: 0/4, 0 s",
        "  40 s left  net  engine round 1/3: 4/4, 51.2 samples/s, 20 s",
        "  80 s left  net  engine round 2/3: 0/4, 40 s",
        "  84 s left  net  engine round 2/3: 1/4, 12.8 samples/s, 60 s",
    ]


def test_a_training_that_may_end_at_its_target_has_at_most_that_time_left(clock: Clock) -> None:
    out = Terminal()
    show = Show(out)
    for step in (1, 2, 3):
        clock.now += 5000
        show({"phase": "training, run 1/2", "step": step, "steps": 100, "loss": None, "may_end_early": True})
    assert seen(out)[-1] == "≤ 11 d 10 h left  net  training, run 1/2: 3/100, 2 h 47 min, loss not finite"


@pytest.mark.parametrize(
    "known, expected",
    [
        ({"left_at_most": 90.0}, "≤ 90 s left"),
        ({"left": 40.0, "left_at_most": 90.0}, "40 s left"),
        ({"left": 120.0, "left_at_most": 90.0}, "≤ 90 s left"),
        ({"left": 40.0, "left_at_most": 0.0}, "… left"),
    ],
)
def test_a_bound_is_told_as_one_and_an_estimate_is_none(clock: Clock, known: dict[str, float], expected: str) -> None:
    out = Terminal()
    show = Show(out)
    for step in (1, 2):
        clock.now += 10
        show({"phase": "trials", "step": step, "steps": 12, **known})
    assert seen(out)[-1].partition("  net")[0].strip() == expected


@pytest.mark.parametrize("width", [20, 40, 80, 200])
def test_a_row_fits_and_keeps_the_time_left(clock: Clock, monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    out = Terminal()
    show = Show(out)
    for step in (1, 2):
        clock.now += 5
        show({"phase": "training weights", "step": step, "steps": 4, "items": 7 * step, "loss": 0.25}, "n" * 30)
    (row,) = seen(out, width)
    assert row.startswith("  10 s left") if width < 40 else row.startswith("  10 s left  nnn")


def test_silence_keeps_the_time_left_that_was_known(clock: Clock) -> None:
    out = Terminal()
    show = Show(out)
    for step in (1, 2):
        clock.now += 5
        show({"phase": "training weights", "step": step, "steps": 138, "loss": 1.234}, "resnet50")
    clock.now += 5
    show({"silent": "data_and_model", "seconds": 47.0}, "resnet50")
    (row,) = seen(out)
    assert row == "11 min left  resnet50  training weights: 2/138, data_and_model: 47 s"


def test_the_terminal_is_measured_while_nothing_is_captured(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    """Standard output is a file otherwise, and any terminal 80 columns wide."""
    captured, out = [True], Terminal()
    show = Show(out)

    @contextlib.contextmanager
    def disabled() -> Iterator[None]:
        captured[0] = False
        yield
        captured[0] = True

    show.progress._capture = SimpleNamespace(global_and_fixture_disabled=disabled)
    size = os.terminal_size
    monkeypatch.setattr(shutil, "get_terminal_size", lambda *_, **__: size((80, 24) if captured[0] else (30, 24)))
    show({"phase": "training weights", "step": 1, "steps": 4})
    assert [len(row) for row in seen(out)] == [29]


def test_what_is_printed_goes_above_the_rows_and_continues_its_line(clock: Clock) -> None:
    out = Terminal()
    show = Show(out)
    show.screen.write("test_net.py .")
    for case in ("net", "other"):
        show({"silent": "compile", "seconds": 5.0}, case)
    assert seen(out) == ["test_net.py .", "     … left  net  compile: 5 s", "     … left  other  compile: 5 s"]
    show.screen.write(".")
    show.screen.write("F")
    assert seen(out)[0] == "test_net.py ..F" and len(seen(out)) == 3
    show({"note": "training them"})
    assert seen(out)[:3] == ["test_net.py ..F", "net: training them", "     … left  net  compile: 5 s"]
    show(None)
    assert seen(out)[2:] == ["     … left  other  compile: 5 s", ""]
    show(None, "other")
    assert seen(out)[2:] == ["", ""]


def test_more_cases_than_lines(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LINES", "8")
    out = Terminal()
    show = Show(out)
    for number in range(20):
        show({"silent": "compile", "seconds": 5.0}, f"case{number}")
    assert len(seen(out)) == 5


def test_without_a_terminal_nothing_is_printed(clock: Clock) -> None:
    out = io.StringIO()
    Show(out, terminal=False)({"note": "x"})
    assert not out.getvalue()


def test_the_next_run_of_a_phase_has_a_time_of_its_own(clock: Clock) -> None:
    out = io.StringIO()
    show = Show(out)
    for second in (0, 30, 60, 70):
        clock.now = 100.0 + second
        show({"phase": "training", "step": {0: 1, 30: 31, 60: 1, 70: 11}[second], "steps": 31})
    assert out.getvalue().strip().splitlines()[-1] == "net: 20 s left, training: 11/31, 10 s"


def test_what_a_case_reports_is_no_control(clock: Clock) -> None:
    out = Terminal()
    show = Show(out)
    show({"silent": "x\x1b[2J", "seconds": 5.0}, "e\x1bvil")
    show({"note": "a\x1b[2J\nb"})
    assert "\x1b[2J" not in out.getvalue() and "\x1bvil" not in out.getvalue()


def test_what_a_worker_tells_arrives_and_rubbish_does_no_harm() -> None:
    got: list[Any] = []
    receiver = Receiver(lambda case, report: got.append((case, report)))
    send = Sender(receiver.address)
    send._socket.sendto(b"\xff[", send._address)
    send._socket.sendto(b"7", send._address)
    send("net", {"note": "x"})
    send("net", None)
    deadline = time.monotonic() + 30
    while len(got) < 2 and time.monotonic() < deadline:
        time.sleep(0.01)
    assert got == [("net", {"note": "x"}), ("net", None)]
    receiver.close()
    send("net", None)


@pytest.mark.parametrize("writes", ["out", "rows"])
def test_a_reader_who_leaves_is_not_missed(writes: str) -> None:
    read, write = os.pipe()
    stream = os.fdopen(write, "w")
    screen = Screen(stream)
    screen.write("first\n")
    screen.flush()
    os.close(read)
    for _ in range(3):
        if writes == "rows":
            screen.show(["a row"])
        screen.write("x" * 100_000)
        screen.flush()
    stream.close()
