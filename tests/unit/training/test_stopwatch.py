"""A training's time by another process's clock: never less certain than it says, however late it looks."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proofmark.record.events.log import Event, EventLog, read_events
from proofmark.record.events.tail import Tail
from proofmark.training.logs.ranks import tail
from proofmark.training.node import stopwatch
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
    """A rank that writes its log, and an agent that looks at it, by a clock that the test sets."""

    def __init__(self, folder: Path) -> None:
        self.now = 100.0
        self._rank = EventLog(folder / "rank0.jsonl")
        self._agent = EventLog(folder / "agent.jsonl")
        self.waited, self.counted, self.is_heard = 0, list[float](), True
        self.stopwatch = Stopwatch(
            folder / "rank0.jsonl",
            self._agent,
            lambda: self.now,
            on_end=lambda: self.counted.append(self.now - 100.0),
            on_wait=self._wait,
            is_heard=lambda: self.is_heard,
        )

    def _wait(self) -> None:
        self.waited += 1

    def write(self, *kinds: str) -> None:
        """What the rank writes now."""
        for kind in kinds:
            self._rank.write(kind, **FIELDS.get(kind, {}))

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
        {"event", "time", "clock", *SHARES, "clock_mhz", "beyond"}
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


def test_what_is_not_in_the_log_yet_may_have_been_said_before(tmp_path: Path) -> None:
    """As where the agent stood still, and this thread of it goes on before the one that writes the log."""
    played = Played(tmp_path)
    played.look(1.0)
    played.is_heard = False
    played.look(4.0)
    played.is_heard = True
    assert played.waited == 1, "what it took by then may have been for its training"
    played.write(BEGIN)
    played.look(4.1)
    played.look(20.0)
    played.is_heard = False
    played.look(23.0)
    played.is_heard = True
    played.write(END)
    played.look(23.1)
    assert played.seen() == [(pytest.approx(15.9), pytest.approx(22.1))]


def test_who_never_stops_talking_is_looked_at_all_the_same(tmp_path: Path) -> None:
    played = Played(tmp_path)
    played.write(BEGIN)
    played.look(0.0)
    played.is_heard = False
    for tenth in range(1, 40):
        played.look(tenth / 10)
    played.write(END)
    played.look(4.0)
    ((least, most),) = played.seen()
    assert most == pytest.approx(4.0) and least >= most - 0.1 * (stopwatch.UNHEARD + 1) - 1e-9


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


def test_each_look_before_the_beginning_is_told_of(tmp_path: Path) -> None:
    played = Played(tmp_path)
    for at, kinds in enumerate([(), ("init_end",), (BEGIN,), (), (END,)]):
        played.write(*kinds)
        played.look(float(at))
    assert played.waited == 2


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
