"""What the honesty checks make of calls whose times and answers are known: every bound from both sides."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import repeat
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from proofmark.measuring import honesty
from proofmark.measuring.agreement import AT_ONCE
from proofmark.measuring.audible_loader import AudibleLoader
from proofmark.measuring.honesty import TIMED_PACE, TOLERANCE, probe, recognition, timed_answers, timed_pace
from proofmark.measuring.pace import FEWEST, GRACE, MOST, PACE

BATCH, BATCHES = 4, 10
LOADER: Any = range(BATCHES)
KINDS = ("data", "known", "once", "begun", "new", "again", "previous")

CHAINED = KINDS[1:6]
"""Those of an honesty round that have a figure of their own."""


def batch(kind: str) -> list[torch.Tensor]:
    """Inputs that say what they are, and each row which it is."""
    return [torch.stack([torch.full((BATCH,), float(KINDS.index(kind))), torch.arange(float(BATCH))], dim=1)]


class Played:
    """Calls that take as long, and answers that lie as far apart, as they are said to."""

    def __init__(self) -> None:
        self.seconds = dict.fromkeys((*CHAINED, "own", "other"), 1.0) | {"short": 0.25}
        self.farthest = self.distance = 0.0
        self.changed = self.written = self.pairs = 0
        self.held: list[int] = []
        self.slept: list[float] = []
        self.asked: list[tuple[Any, int | None]] = []
        self.unseen: list[str] = []
        self.rows: list[list[float]] = []
        self.company: Sequence[Any] = ()

    def all_pairs(self, loader: Any, chance: Any) -> Iterator[tuple[list[torch.Tensor], list[torch.Tensor]]]:
        for _ in range(MOST):
            self.pairs += 1
            yield batch("data"), batch("previous")

    def call(self, engine: str, inputs: list[torch.Tensor], synchronize: Any) -> Any:
        kind = "short" if len(inputs[0]) < BATCH else KINDS[int(inputs[0][0, 0])]
        self.unseen.append(f"{engine} {kind}")
        self.rows += [inputs[0][:, 1].tolist()] if kind == "short" else []
        scores_and_names = [torch.ones(1), torch.ones(1, dtype=torch.int64)]  # other weights may leave names alone
        return SimpleNamespace(seconds=self.seconds.get(kind, self.seconds[engine]), answer=scores_and_names)

    def hold(self, calls: list[Any]) -> None:
        self.held.append(len(calls))

    def finish(self) -> None:
        assert self.slept, "an engine that was not waited for gets the time to change its answer"

    def worst(self, ask: Any, size: int | None, company: Sequence[Any] = (), shortfall: Any = None) -> float:
        self.asked.append((ask(batch("data")), size))
        self.company = company
        return self.farthest


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch) -> Played:
    made = Played()
    chains = [batch(kind) for kind in ("data", "known", "once")], [batch(kind) for kind in ("begun", "new", "again")]
    monkeypatch.setattr(honesty, "pairs", made.all_pairs)
    monkeypatch.setattr(honesty, "full_batches", lambda *_: repeat(batch("data")))
    monkeypatch.setattr(honesty, "chains", lambda data, other, chance: chains)
    monkeypatch.setattr(honesty, "timed_call", made.call)
    monkeypatch.setattr(honesty, "Answers", lambda: made)
    monkeypatch.setattr(honesty, "distance", lambda one, _: made.distance * one.is_floating_point())
    monkeypatch.setattr(honesty, "run_window", lambda compute, *_: SimpleNamespace(answer=compute))
    monkeypatch.setattr(honesty, "time", SimpleNamespace(sleep=made.slept.append))
    return made


def probed(reference: Any = "framework", precision: str = "fp32", remainder: int = 0) -> tuple[dict[str, Any], float]:
    checks, full, short = probe(LOADER, "own", lambda: None, reference, precision, remainder)  # type: ignore[arg-type]
    return {check.name: check for check in checks}, full * (BATCHES - bool(remainder)) + short


def test_an_honest_engine_is_cleared_by_the_fewest_pairs(played: Played) -> None:
    checks, a_pass = probed()
    assert [name for name, check in checks.items() if not check.passed] == []
    assert played.pairs == FEWEST and played.held == [6] * FEWEST + [0]
    assert a_pass == BATCHES * 1.0
    assert played.slept == [0.5]
    played.pairs = 0
    probe(LOADER, "own", lambda: None, "framework", "fp32")  # type: ignore[arg-type]
    assert played.held[-1] == 0, "no short batch, where none is named"


def test_each_call_is_a_sign_of_life(played: Played) -> None:
    """Of an engine that takes seconds for one, all of a round's would be a long silence."""
    signs: list[str] = []
    loader: Any = AudibleLoader(LOADER, lambda alive: signs.append(alive), batch("data"))
    probe(loader, "own", lambda: None, "framework", "fp32", 2)  # type: ignore[arg-type]
    assert signs == ["calls"] * len(played.unseen), "a reference tells of itself"
    recognition(loader, "own", "other", lambda: None)  # type: ignore[arg-type]
    timed_answers(played, None, "own", lambda: None, "fp32", loader)  # type: ignore[arg-type]
    assert signs == ["calls"] * (len(played.unseen) + 1) and len(played.asked) == 2


@pytest.mark.parametrize(
    "changes, failed, meaning",
    [
        ({"known": 0.8}, "no memorised data", "inputs that it has not seen take it longer than the data set's"),
        ({"again": 0.8}, "no cached answers", "an input that it has just answered takes it less time"),
    ],
)
def test_all_pairs_accuse(played: Played, changes: dict[str, float], failed: str, meaning: str) -> None:
    played.seconds |= changes
    checks, _ = probed()
    assert [name for name, check in checks.items() if not check.passed] == [failed]
    assert played.pairs == MOST
    assert checks[failed].meaning == meaning
    assert checks[failed].figure == pytest.approx(1 / (0.8 + GRACE)) and checks[failed].bound == PACE


def test_one_that_is_clear_waits_for_the_other(played: Played) -> None:
    played.seconds["again"] = 0.93
    checks, _ = probed()
    assert played.pairs == MOST and checks["no cached answers"].passed


@pytest.mark.parametrize("by", [0.25, 4.0])
def test_calls_that_their_place_makes_quicker_accuse_nobody(played: Played, by: float) -> None:
    """Of calls that follow one another the later are often the quicker, and a repeat always is a later one."""
    played.seconds |= {"known": by, "new": by, "once": by**2, "again": by**2}
    checks, _ = probed()
    assert all(check.passed for check in checks.values()) and played.pairs == FEWEST


def test_a_short_time_is_waited_for_the_answers(played: Played) -> None:
    played.seconds |= dict.fromkeys(CHAINED, 0.01)
    probed()
    assert played.slept == [pytest.approx(0.03)]


@pytest.mark.parametrize(
    "name, attribute, meaning",
    [
        (
            "waits for its device",
            "changed",
            "an answer changed after the device was said to be idle: it was not waited for",
        ),
        ("leaves its inputs alone", "written", "it wrote into its inputs"),
    ],
)
def test_one_answer_or_input_that_changes_is_enough(played: Played, name: str, attribute: str, meaning: str) -> None:
    setattr(played, attribute, 1)
    checks, _ = probed()
    assert [each for each, check in checks.items() if not check.passed] == [name]
    assert (checks[name].figure, checks[name].bound, checks[name].meaning) == (1.0, 0.0, meaning)


@pytest.mark.parametrize("precision, bound", TOLERANCE.items())
def test_answers_are_held_to_the_precision(played: Played, precision: str, bound: float) -> None:
    played.farthest = bound
    assert probed(precision=precision)[0]["answers new inputs"].passed
    played.farthest = bound * 1.01
    check = probed(precision=precision)[0]["answers new inputs"]
    assert not check.passed and (check.figure, check.bound) == (bound * 1.01, bound)


def test_rows_of_timed_answers_are_held_to_the_same(played: Played) -> None:
    played.farthest = TOLERANCE["bf16"] * 1.01
    for reference, whose in (
        ("framework", "the framework's to the same inputs"),
        (None, "its own to them in other company"),
    ):
        check = timed_answers(played, reference, "own", lambda: None, "bf16", LOADER)  # type: ignore[arg-type]
        assert not check.passed and check.name == "answers alike when timed"
        assert len(played.company) == 1 + AT_ONCE // BATCH
        assert check.meaning == f"answers in the timed rounds differ from {whose}"
    played.farthest = TOLERANCE["bf16"]
    assert timed_answers(played, "framework", "own", lambda: None, "bf16", LOADER).passed  # type: ignore[arg-type]


def test_the_bounds_are_those_that_were_measured() -> None:
    assert TOLERANCE == {"fp32": 0.0002, "tf32": 0.005, "fp16": 0.02, "bf16": 0.1, "int8": 0.2}
    assert TIMED_PACE == 1.25


def test_without_a_model_an_engine_is_held_to_itself_in_other_company(played: Played) -> None:
    own = probed(reference=None)[0]["answers new inputs"]
    framework = probed()[0]["answers new inputs"]
    assert played.asked == [("own", BATCH), ("framework", None)]
    assert own.meaning == "answers to new inputs differ from its own answer to them in other company"
    assert framework.meaning == "answers to new inputs differ from the framework's answer to the same inputs"


def test_a_short_last_batch_is_answered_anew_and_counts_in_the_pass(played: Played) -> None:
    checks, a_pass = probed(remainder=3)
    assert played.unseen.count("own short") == 2 and played.held[-1] == 2
    assert a_pass == pytest.approx((BATCHES - 1) * 1.0 + 0.25)
    assert played.rows == [[1.0, 2.0, 3.0]] * 2, "the last rows, as the data's last batch is"
    assert all(check.passed for check in checks.values())


def test_a_quarter_of_the_calls_sets_the_pace(played: Played, monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter([0.1, 5.0, 5.0, 0.2, 5.0, 0.3, *[5.0] * 6])
    usual = played.call

    def call(engine: str, inputs: list[torch.Tensor], synchronize: Any) -> Any:
        called = usual(engine, inputs, synchronize)
        if KINDS[int(inputs[0][0, 0])] in ("begun", "new", "once"):
            called.seconds = next(times)
        else:
            called.seconds = 5.0
        return called

    monkeypatch.setattr(honesty, "timed_call", call)
    _, a_pass = probed()
    assert a_pass == BATCHES * 5.0, "three quick ones of twelve do not make it quick"


def test_a_timed_pass_against_new_inputs() -> None:
    timed = 2.0
    just = TIMED_PACE * (timed + 3 * GRACE)
    assert timed_pace(just, timed, 3).passed
    check = timed_pace(just * 1.001, timed, 3)
    assert not check.passed and (check.name, check.bound) == ("no faster when timed", TIMED_PACE)
    assert check.figure == pytest.approx(TIMED_PACE * 1.001)
    assert check.meaning == "the same work takes it longer outside the timed rounds"


def recognised() -> dict[str, Any]:
    found = recognition(LOADER, "own", "other", lambda: None)  # type: ignore[arg-type]
    return {check.name: check for check in found}


def test_other_weights_change_the_answers_and_not_the_pace(played: Played) -> None:
    played.distance = 0.5
    checks = recognised()
    assert all(check.passed for check in checks.values()) and played.pairs == FEWEST
    assert (checks["uses its weights"].figure, checks["uses its weights"].bound) == (0.5, 0.0)
    assert checks["knows no weights"].bound == PACE
    assert played.unseen.count("own previous") == played.unseen.count("other previous") == FEWEST


def test_answers_that_other_weights_leave_alone(played: Played) -> None:
    checks = recognised()
    assert not checks["uses its weights"].passed and checks["knows no weights"].passed
    assert checks["uses its weights"].meaning == "other weights leave its answers as they were"


def test_an_engine_that_knows_the_weights_is_slower_with_others(played: Played) -> None:
    played.distance, played.seconds["other"] = 0.5, 1.3
    checks = recognised()
    assert not checks["knows no weights"].passed and played.pairs == MOST
    assert checks["knows no weights"].meaning == "the same model with other weights takes it longer"
