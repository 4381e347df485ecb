"""What a person sees of a long step."""

from __future__ import annotations

import io
from types import SimpleNamespace
from typing import Any

import pytest
from _pytest._io import TerminalWriter

from fixtures import progress
from fixtures.progress import ProgressPrinter


class Clock:
    """A clock that is set by hand."""

    now = 100.0

    def monotonic(self) -> float:
        return self.now


class Capture:
    """A capture manager that has nothing to lift."""

    def global_and_fixture_disabled(self) -> Any:
        return io.StringIO()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(progress, "time", clock)
    return clock


def printer(isatty: bool, out: io.StringIO, terminal: bool = True) -> ProgressPrinter:
    reporter = SimpleNamespace(isatty=isatty, _tw=TerminalWriter(out), ensure_newline=lambda: None)
    plugins = {"capturemanager": Capture(), "terminalreporter": reporter if terminal else None}
    config: Any = SimpleNamespace(pluginmanager=SimpleNamespace(getplugin=plugins.get))
    return ProgressPrinter(config, "net")


def test_a_note_is_printed_at_once(clock: Clock) -> None:
    out = io.StringIO()
    printer(False, out)({"note": "training them"})
    assert out.getvalue().strip() == "net: training them"


def test_plain_lines_come_every_ten_seconds(clock: Clock) -> None:
    out = io.StringIO()
    show = printer(False, out)
    for second in range(31):
        clock.now = 100.0 + second
        show({"phase": "engine round 1/3", "step": second + 1, "steps": 60, "items": 32 * (second + 1)})
    lines = out.getvalue().strip().splitlines()
    assert len(lines) == 3
    assert lines[0] == "net: engine round 1/3: 11/60, 10 s, 35.2 samples/s, 45 s left"


def test_silence_is_told_with_the_place_where_it_began(clock: Clock) -> None:
    out = io.StringIO()
    show = printer(False, out)
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
        "net: engine_inference: 22 s, in engine round 1/3: 2/60",
        "net: engine_inference: 32 s",
    ]


def test_rounds_of_few_slow_batches_show_a_true_rate(clock: Clock) -> None:
    out = io.StringIO()
    show = printer(True, out)
    show({"phase": "framework round 1/1", "step": 0, "steps": 4, "items": 0})
    clock.now += 20
    show({"phase": "framework round 1/1", "step": 1, "steps": 4, "items": 256})
    lines = [line.strip() for line in out.getvalue().split("\r") if line]
    assert lines == [
        "net: framework round 1/1: 0/4, 0 s",
        "net: framework round 1/1: 1/4, 20 s, 12.8 samples/s, 60 s left",
    ]


def test_a_living_line_is_rewritten_in_place(clock: Clock) -> None:
    out = io.StringIO()
    show = printer(True, out)
    for step in (1, 2):
        clock.now += 1
        show({"phase": "training", "step": step, "steps": 2, "samples_per_second": 12.5, "loss": 0.25})
    assert out.getvalue().count("\r") == 2 and "\n" not in out.getvalue()
    assert "net: training: 2/2, 1 s, 12.5 samples/s, loss 0.250" in out.getvalue()


def test_without_a_terminal_nothing_is_printed(clock: Clock) -> None:
    out = io.StringIO()
    printer(False, out, terminal=False)({"note": "x"})
    assert not out.getvalue()


def test_the_next_run_of_a_phase_has_a_time_of_its_own(clock: Clock) -> None:
    out = io.StringIO()
    show = printer(False, out)
    for second in (0, 30, 60, 70):
        clock.now = 100.0 + second
        show({"phase": "training", "step": {0: 1, 30: 31, 60: 1, 70: 11}[second], "steps": 31})
    assert out.getvalue().strip().splitlines()[-1] == "net: training: 11/31, 10 s, 18 s left"
