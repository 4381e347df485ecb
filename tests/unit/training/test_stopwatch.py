"""A training's time by another process's clock: never less certain than it says, however late it looks."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proofmark.record.events.log import Event, EventLog, read_events
from proofmark.record.events.tail import Tail
from proofmark.training import job
from proofmark.training.logs.ranks import tail
from proofmark.training.node.stopwatch import Stopwatch
from proofmark.training.outcome.checks import CLOCK, CLOCK_SECONDS, keeps_time
from proofmark.training.outcome.event_types import CONTENTION, WATCHED

TOTALS = {"epoch": 0, "step": 4, "samples": 64, "communication": None, "train_seconds": 1.0}
TOTALS |= dict.fromkeys(("data_seconds", "compute_seconds", "evaluation_seconds", "checkpoint_seconds"), 0.0)
FIELDS = {
    "train_begin": {"steps": 0, "samples": 0},
    "evaluation": {**TOTALS, "metric": 0.5, "took_seconds": 0.1},
    "confirmation": {"step": 4, "samples": 64, "metric": 0.5, "took_seconds": 1.0},
    "train_end": {**TOTALS, "converged": True},
}

BEGIN, CONFIRMED, END = "train_begin", "confirmation", "train_end"
EVALUATED = "evaluation"
SHARES = ("others", "stolen", "idle")


class Played:
    """A rank that says what happens, a log that has it sooner or later, and an agent that looks at both, by a clock
    that the test sets."""

    def __init__(self, folder: Path) -> None:
        self.now = 100.0
        self._said, self._log = folder / "said.jsonl", folder / "rank0.jsonl"
        self._said.touch()
        self._rank = EventLog(self._said)
        self._agent = EventLog(folder / "agent.jsonl")
        self.taken, self.before, self.by_the_end = 0, list[int | None](), list[int]()
        self.counted, self.is_stuck = list[float](), False
        self.stopwatch = Stopwatch(
            self._log,
            self._agent,
            lambda: self.now,
            said=lambda: self._said.stat().st_size,
            count=lambda: self.taken,
            on_begin=self.before.append,
            on_end=self._end,
        )

    def _end(self, taken: int) -> None:
        self.counted.append(self.now - 100.0)
        self.by_the_end.append(taken)

    def write(self, *kinds: str) -> None:
        """What the rank says now; it is in its log if that is not stuck."""
        for kind in kinds:
            self._rank.write(kind, **FIELDS.get(kind, {}))
        if not self.is_stuck:
            self._log.write_bytes(self._said.read_bytes())

    def look(self, at: float) -> None:
        """What the agent does later."""
        self.now = 100.0 + at
        self.stopwatch.look()

    def contentions(self) -> list[Event]:
        """What it wrote down of others."""
        return [event for event in read_events(self._agent.path) if event["event"] == CONTENTION]

    def seen(self) -> list[tuple[float, float]]:
        """What it wrote down."""
        return [(e["least"], e["most"]) for e in read_events(self._agent.path) if e["event"] == WATCHED]


def test_what_others_took_is_the_agents_own_word(tmp_path: Path) -> None:
    """From the look that sees the beginning to the one after the end, or to the last of all."""
    played = Played(tmp_path)
    played.write(BEGIN)
    played.look(1.0)
    played.write("contention", END)
    played.look(2.0)
    assert not played.contentions()
    played.look(3.0)
    played.look(4.0)
    assert len(played.contentions()) == 1
    played.write(END)
    played.stopwatch.stop()
    assert [set(seen) for seen in played.contentions()] == [
        {"event", "time", "clock", *SHARES, "beside", "clock_mhz", "beyond"}
    ] * 2


def test_between_two_looks(tmp_path: Path) -> None:
    played = Played(tmp_path)
    played.look(1.0)
    played.write("init_end", BEGIN)
    played.look(2.0)
    played.write("something else")
    played.look(5.0)
    assert not played.seen()
    played.write(END)
    played.look(6.0)
    assert played.seen() == [(3.0, 5.0)]
    played.look(9.0)
    assert len(played.seen()) == 1


def test_when_a_line_comes_into_the_log_makes_no_difference(tmp_path: Path) -> None:
    """The disk may stand still, or the thread that writes; nor is a rank that never stops talking known less of."""
    played, at = Played(tmp_path), iter(tenth / 10 for tenth in range(1000))

    def looks(count: int, *kinds: str) -> float:
        """So many, between which the rank says something; when the first of them was."""
        played.write(*kinds)
        times = [next(at) for _ in range(count)]
        for time in times:
            played.look(time)
            played.taken += 1
            played.write("something else")
        return times[0]

    looks(10)
    played.is_stuck = True
    began = looks(30, "init_end", BEGIN)
    assert not played.before
    played.is_stuck = False
    looks(20)
    assert played.before == [10 - 1], "what it had taken at the last look before"
    played.is_stuck = True
    ended = looks(30, END)
    assert not played.seen()
    played.is_stuck = False
    looks(1)
    assert played.seen() == [pytest.approx((ended - began - 0.1, ended - began + 0.1))]
    assert played.by_the_end == [60], "what it had taken at the first look after, and not what it took since"
    assert len(played.stopwatch._looks) <= 2


def test_looks_between_which_nothing_is_said_are_not_kept(tmp_path: Path) -> None:
    """As behind half a line that is never ended."""
    played = Played(tmp_path)
    played._said.write_bytes(b"{")
    for at in range(100):
        played.look(float(at))
    assert [(look.asked - 100.0, look.said) for look in played.stopwatch._looks] == [(0.0, 0), (0.0, 1), (99.0, 1)]


def test_what_is_said_between_two_looks_at_the_log_is_known_by_the_clock(tmp_path: Path) -> None:
    """Where nobody knows what is on its way, as in a session that another host's log comes home to."""
    log, now = EventLog(tmp_path / "rank0.jsonl"), [0.0]
    watch = Stopwatch(log.path, clock=lambda: now[0])
    for at, kind in [(1.0, None), (2.0, BEGIN), (3.0, None), (9.0, None), (10.0, END)]:
        now[0] = at
        if kind:
            log.write(kind, **FIELDS[kind])
        watch.look()
    assert (watch.least, watch.most) == (7.0, 9.0)


class FarOff:
    """A job on another host as its session sees it, second by half second of a clock that the test sets: training
    begins at 10 and ends at 130, and each line comes home at once, or as soon as the session has heard the host again
    for a second."""

    def __init__(self, folder: Path, silence: tuple[float, float], asleep: tuple[float, float]) -> None:
        self.now, self._silence, self._asleep = 0.0, silence, asleep
        self._log, self._lines = EventLog(folder / "rank0.jsonl"), [(10.0, BEGIN), (130.0, END)]

    @property
    def silent(self) -> bool:
        return self._silence[0] <= self.now < self._silence[1]

    def status(self) -> str:
        return "running" if self.now < 260.0 else "succeeded"

    def news(self) -> list[str]:
        return []

    def monotonic(self) -> float:
        return self.now

    def sleep(self, _: float) -> None:
        self.now += 0.5
        if self.now == self._asleep[0]:
            self.now = self._asleep[1]
        deaf = any(begin <= self.now <= end + 1 for begin, end in (self._silence, self._asleep))
        while self._lines and self._lines[0][0] <= self.now and not deaf:
            _, kind = self._lines.pop(0)
            self._log.write(kind, **FIELDS[kind])


NEVER = (999.0, 999.0)


@pytest.mark.parametrize(
    "silence, asleep, least",
    [
        (NEVER, NEVER, 119.5),
        ((100.0, 200.0), NEVER, 89.5),
        (NEVER, (100.0, 200.0), 89.5),
        ((20.0, 60.0), NEVER, 119.5),
    ],
)
def test_a_log_that_comes_late_makes_no_training_longer(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    silence: tuple[float, float],
    asleep: tuple[float, float],
    least: float,
) -> None:
    """Over the end of an honest training its link was silent, or its session stopped: what came home afterwards was
    said at any time since. A silence that was over before costs nothing."""
    far = FarOff(tmp_path, silence, asleep)
    monkeypatch.setattr(job, "time", far)
    spec: Any = SimpleNamespace(node_directory=lambda node: tmp_path)
    handle: Any = far
    end = job.follow(handle, spec, 999.0, lambda event: None, lambda note: None)
    assert end == {"status": "succeeded", "watched": {"least": least}}


def test_what_was_handed_out_is_counted_by_the_last_evaluation(tmp_path: Path) -> None:
    """Whatever a rank takes later it was not at the target by. Without one, by the end."""
    played = Played(tmp_path)
    for at, kinds in enumerate([(EVALUATED,), (BEGIN,), (), (EVALUATED,), (), (EVALUATED,), (), (END,)]):
        played.write(*kinds)
        played.look(float(at))
    assert played.counted == [3.0, 5.0]
    (event,) = (e for e in read_events(played._agent.path) if e["event"] == WATCHED)
    assert (event["to_evaluation"], event["least"], event["most"]) == ([3.0, 5.0], 5.0, 7.0)
    (tmp_path / "bare").mkdir()
    bare = Played(tmp_path / "bare")
    bare.write(BEGIN)
    bare.look(1.0)
    bare.write(END)
    bare.look(2.0)
    assert bare.counted == [2.0]
    (event,) = (e for e in read_events(bare._agent.path) if e["event"] == WATCHED)
    assert event["to_evaluation"] == [0.0, 2.0], "an evaluation that is told of later could have come at any time"


def test_nothing_that_comes_after_the_end_is_counted_but_by_another_end(tmp_path: Path) -> None:
    """What a rank takes when the clock stands, and then tells of an evaluation, it was not trained on."""
    played = Played(tmp_path)
    for at, kinds in enumerate([(BEGIN,), (EVALUATED,), (END,), (EVALUATED,), (), (END,)]):
        played.write(*kinds)
        played.look(float(at))
    assert played.counted == [1.0, 5.0] and played.seen()[-1] == (4.0, 5.0)
    *_, event = (e for e in read_events(played._agent.path) if e["event"] == WATCHED)
    assert event["to_evaluation"] == [4.0, 5.0], "what is handed out by the end the evaluation came after"


def test_nor_where_both_are_read_at_once(tmp_path: Path) -> None:
    """As where its log stands still meanwhile."""
    played = Played(tmp_path)
    for at, kinds in enumerate([(BEGIN,), (EVALUATED,), (), (END,), (), (EVALUATED,), ()]):
        played.is_stuck = 1 < at < 6
        played.write(*kinds)
        played.look(float(at))
        played.taken += 10
    assert played.by_the_end == [10], "its last evaluation before it ended"
    assert played.seen() == [(2.0, 3.0)]
    (event,) = (e for e in read_events(played._agent.path) if e["event"] == WATCHED)
    assert event["to_evaluation"] == [0.0, 1.0]


def test_lines_of_other_kinds_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a rank that writes many would keep its agent from looking."""
    read = list[bytes]()
    monkeypatch.setattr(tail, "RANK_EVENTS", SimpleNamespace(read=lambda line: read.append(line) or json.loads(line)))
    played = Played(tmp_path)
    played.write(BEGIN, *["flood"] * 1000, END)
    played.look(1.0)
    assert len(read) == 2 and played.stopwatch.ended


def test_what_is_written_meanwhile_is_the_next_looks(tmp_path: Path) -> None:
    """A rank that writes as fast as it is read keeps no look from its end."""
    path = tmp_path / "rank0.jsonl"
    path.write_bytes(b"{}\n" * 3)
    followed, seen = Tail(path), 0
    for _ in followed.lines():
        seen += 1
        with path.open("ab") as stream:
            stream.write(b"{}\n")
    assert seen == 3 and len(list(followed.lines())) == 3


def test_what_was_taken_before_the_beginning_is_told_once(tmp_path: Path) -> None:
    played = Played(tmp_path)
    for at, kinds in enumerate([(), ("init_end",), (BEGIN,), (), (BEGIN,), (END,)]):
        played.write(*kinds)
        played.look(float(at))
        played.taken += 10
    assert played.before == [10]


@pytest.mark.parametrize(
    "events",
    [
        ((0.1, "confirmation_begin"), (99.9, CONFIRMED), (100.0, END)),
        ((0.2, END), (100.0, END)),
        ((99.8, BEGIN), (100.0, END)),
        ((0.1, END), (99.8, BEGIN), (100.0, END)),
    ],
    ids=["says that it is looked at", "ends twice", "begins twice", "ends and begins anew"],
)
def test_no_rank_stops_the_clock(tmp_path: Path, events: tuple[tuple[float, str], ...]) -> None:
    played = Played(tmp_path)
    for at, kind in ((0.0, BEGIN), *events):
        played.look(at - 0.01)
        played.write(kind)
        played.look(at)
    least, most = played.seen()[-1]
    assert (least, most) == pytest.approx((99.99, 100.01))
    assert not keeps_time(0.2, least, most).passed


def test_an_agent_that_looks_once_knows_next_to_nothing(tmp_path: Path) -> None:
    played = Played(tmp_path)
    played.write(BEGIN, END)
    played.look(50.0)
    assert played.seen() == [(0.0, 50.0)]


def test_without_a_log_nothing_is_seen(tmp_path: Path) -> None:
    played = Played(tmp_path)
    played.look(1.0)
    assert not played.seen() and not played.stopwatch.ended


@given(began=st.floats(0, 10), took=st.floats(0, 100), looks=st.lists(st.floats(0, 120), max_size=30))
def test_the_truth_lies_between(
    tmp_path_factory: pytest.TempPathFactory, began: float, took: float, looks: list[float]
) -> None:
    played = Played(tmp_path_factory.mktemp("played"))
    moments = sorted([*((at, "") for at in looks), (began, BEGIN), (began + took, END)])
    for at, kind in moments:
        if kind:
            played.write(kind)
        else:
            played.look(at)
    played.look(200.0)
    ((least, most),) = played.seen()
    assert least <= took + 1e-9 and took <= most + 1e-9
    assert keeps_time(took, least, most).passed


@pytest.mark.parametrize(
    "said, least, most, passed",
    [
        (100.0, 99.9, 100.1, True),
        (98.0, 99.9, 100.1, True),
        (97.8, 99.9, 100.1, False),
        (10.0, 99.9, 100.1, False),
        (110.0, 99.9, 100.1, False),
        (0.0, 0.0, CLOCK_SECONDS, True),
        (0.2, 2.0, 2.2, False),
        (0.2, 0.0, 50.0, True),
    ],
)
def test_a_ranks_clock_is_held_against_its_agents(said: float, least: float, most: float, passed: bool) -> None:
    check = keeps_time(said, least, most)
    assert check.name == CLOCK and check.passed == passed


def test_both_figures_are_named() -> None:
    meaning = keeps_time(10.0, 99.96, 100.04).meaning
    assert meaning == "its clock says that training took 10 s, and the agent's, another process's, 99.96 to 100 s"


def test_one_that_keeps_time_tells_no_time() -> None:
    """Where speed is withheld its seconds would give it away."""
    check = keeps_time(123.4, 123.3, 123.5)
    assert check.passed and check.bound == 1.0 and check.figure == 0 and not any(map(str.isdigit, check.meaning))
