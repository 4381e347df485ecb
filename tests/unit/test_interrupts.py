"""What the first signal does, and those after it."""

from __future__ import annotations

import signal
from types import SimpleNamespace
from typing import Any

import pytest

from fixtures.sessions import interrupts
from fixtures.sessions.interrupts import PATIENCE, Interrupt

QUIET: Any = SimpleNamespace(option=SimpleNamespace(fulltrace=False))
ASKED: Any = SimpleNamespace(option=SimpleNamespace(fulltrace=True))


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    clock = SimpleNamespace(now=100.0)
    monkeypatch.setattr(interrupts, "time", SimpleNamespace(monotonic=lambda: clock.now))
    return clock


def interrupted(interrupt: Interrupt) -> bool:
    try:
        interrupt(signal.SIGINT, None)
    except KeyboardInterrupt:
        return True
    return False


def test_only_the_first_is_an_interrupt(clock: SimpleNamespace) -> None:
    interrupt = Interrupt()
    with pytest.raises(pytest.exit.Exception) as ended, interrupt.calm(QUIET):
        interrupt(signal.SIGINT, None)
    assert ended.value.returncode == 2
    clock.now += 100 * PATIENCE
    assert not interrupted(interrupt), "the session is ending"


def test_an_interrupt_that_was_swallowed_can_be_repeated(clock: SimpleNamespace) -> None:
    interrupt = Interrupt()
    assert [interrupted(interrupt), interrupted(interrupt)] == [True, False]
    clock.now += PATIENCE + 1
    assert [interrupted(interrupt), interrupted(interrupt)] == [True, False]


def test_the_full_trace_is_there_for_who_asks() -> None:
    with pytest.raises(KeyboardInterrupt), Interrupt().calm(ASKED):
        raise KeyboardInterrupt


def test_modules_that_cannot_be_imported_are_told_in_pytests_own_words() -> None:
    with pytest.raises(pytest.Session.Interrupted, match="1 error"), Interrupt().calm(QUIET):
        raise pytest.Session.Interrupted("1 error during collection")
