"""The speed gate's statistics, on data of known law, and what follows from them."""

from __future__ import annotations

import hashlib
import itertools
import math
import random
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fixtures.cases.suites import SUITES
from fixtures.gate.baseline import Subject
from fixtures.gate.recorded import RecordedBaseline
from fixtures.options.policy import POLICY
from fixtures.outputs.baselines import Comparison, _had_a_speed
from fixtures.outputs.reporting import NOT_COMPARED, RECORDS, tell_not_compared
from proofmark.gate.decision import Pairs, Rates, StoppingRule
from proofmark.gate.race import Race, Raced, Side, SideLost
from proofmark.gate.sequence import median_interval
from proofmark.inference.outcome.verdict import judge
from proofmark.record.compared import DIFFERENT, Compared, Outcome, Ratio
from proofmark.record.parts import Verdict, VerdictKind
from proofmark.record.policy import default_policy
from proofmark.verdict.engine import judge as judged_by
from tests import suites_there
from tests.reports.records import make_record
from tests.unit.records import record

Draw = Callable[[random.Random], float]
LAWS: dict[str, Draw] = {
    "normal": lambda chance: chance.gauss(0, 0.02),
    "Cauchy": lambda chance: 0.01 * math.tan(math.pi * (chance.random() - 0.5)),
    "skewed": lambda chance: 0.02 * (chance.expovariate(1) - math.log(2)),
}


LOOSE = (VerdictKind.AMBIGUOUS, VerdictKind.INSUFFICIENT, VerdictKind.FAIL_PERF)
"""Kinds of runs that have a speed, and which a policy may let pass."""


def test_too_few_values_bound_nothing() -> None:
    assert median_interval([], 0.01) == (-math.inf, math.inf)
    assert median_interval([1.0] * 9, 0.005) == (-math.inf, math.inf)


@pytest.mark.parametrize("law", LAWS)
def test_the_interval_holds_the_median_whenever_one_looks(law: str) -> None:
    """At a tenth instead of a hundredth, so that few sessions show it: all sizes up to 100 together."""
    chance, missed = random.Random(1), 0
    for _ in range(200):
        values: list[float] = []
        for _ in range(100):
            values.append(LAWS[law](chance))
            low, high = median_interval(values, 0.1)
            if not low <= 0 <= high:
                missed += 1
                break
    assert missed <= 28  # of a binomial with 200 and 0.1 more have a probability of 4 %


def test_the_evidence_is_a_martingale_under_a_fair_coin() -> None:
    """Of n values, k below: the mixture's likelihood ratio, weighed with the coin's probabilities, sums to 1."""
    from proofmark.gate.sequence import _evidence

    for count in (1, 7, 40):
        total = math.fsum(math.exp(_evidence(count, k)) * math.comb(count, k) / 2**count for k in range(count + 1))
        assert total == pytest.approx(1)


def sessions(law: Draw, effect: float, count: int = 60, pairs: int = 120) -> Counter[Outcome]:
    """Outcomes of a metric whose head is `effect` times as fast, of two that are watched."""
    found: Counter[Outcome] = Counter()
    for seed in range(count):
        chance, watched = random.Random(seed), Pairs(["core", "whole"], StoppingRule(metrics=2))
        while not watched.clear and len(watched.ratios()[0].head) < pairs:
            rates = [100 * effect * math.exp(law(chance)) for _ in range(2)]
            watched.add({"core": 100, "whole": 100}, dict(zip(("core", "whole"), rates, strict=True)))
        found.update([watched.ratios()[0].outcome])
    return found


@pytest.mark.parametrize("law", LAWS)
def test_the_same_is_never_called_another(law: str) -> None:
    assert set(sessions(LAWS[law], 1.0)) <= {Outcome.SAME, Outcome.AMBIGUOUS}


@pytest.mark.parametrize("law", LAWS)
def test_five_percent_are_found(law: str) -> None:
    assert sessions(LAWS[law], 0.95)[Outcome.REGRESSION] >= 57
    assert sessions(LAWS[law], 1 / 0.95)[Outcome.IMPROVEMENT] >= 57


def test_one_percent_slower_is_no_improvement() -> None:
    assert sessions(LAWS["normal"], 0.99)[Outcome.IMPROVEMENT] == 0


def test_an_outcome_stands_once_it_is_clear() -> None:
    pairs = Pairs(["core"], StoppingRule())
    for _ in range(20):
        pairs.add({"core": 100}, {"core": 90})
    assert pairs.clear and pairs.alarming
    (early,) = pairs.ratios()
    for _ in range(50):
        pairs.add({"core": 100}, {"core": 110})
    (late,) = pairs.ratios()
    assert (late.outcome, late.pairs) == (early.outcome, early.pairs) == (Outcome.REGRESSION, 11)
    assert len(late.base) == len(late.head) == 70


@pytest.mark.parametrize("rates", [{}, {"core": 0.0}, {"core": float("nan")}, {"core": float("inf")}, {"core": -1.0}])
def test_a_metric_that_is_missing_or_impossible_is_refused(rates: Rates) -> None:
    for base, head in ((rates, {"core": 1.0}), ({"core": 1.0}, rates)):
        with pytest.raises(ValueError, match="core is missing on the"):
            Pairs(["core"], StoppingRule()).add(base, head)


def test_the_error_is_shared_by_all_metrics() -> None:
    widths = list[float]()
    for metrics in (1, 50):
        pairs = Pairs(["core"], StoppingRule(metrics=metrics))
        for n in range(40):
            pairs.add({"core": 1.0}, {"core": math.exp(n if n % 2 else -n)})
        (ratio,) = pairs.ratios()
        assert ratio.low is not None and ratio.high is not None and ratio.outcome is Outcome.AMBIGUOUS
        widths.append(ratio.high / ratio.low)
    assert widths[0] < widths[1]


class Machine:
    """Time that passes only in rounds; half as fast for a while, now and then."""

    def __init__(self, seed: int, slow: bool = False) -> None:
        self.chance, self.now, self.slow = random.Random(seed), 0.0, slow
        self._state, self._until = 1.0, 0.0

    def round(self, pace: float) -> Rates:
        """What a round of a program of that pace says."""
        if self.slow and self.now > self._until:
            self._state = 0.5 if self._state == 1.0 else 1.0
            self._until = self.now + self.chance.uniform(10, 30)
        rate = 100 * pace * self._state * math.exp(self.chance.gauss(0, 0.015))
        self.now += 25 / rate
        return {"core": rate}


class Program:
    def __init__(self, machine: Machine, pace: float, rounds: int = 10**9) -> None:
        self.machine, self.pace, self.left = machine, pace, rounds

    def rates(self) -> Rates:
        self.left -= 1
        if self.left < 0:
            raise SideLost("the head's device is gone")
        return self.machine.round(self.pace)


class Fixed:
    """Of two metrics, one of which is given for each round."""

    def __init__(self, clock: Iterator[float], whole: Iterator[float], core: float) -> None:
        self.clock, self.whole, self.core = clock, whole, core

    def rates(self) -> Rates:
        next(self.clock)
        return {"core": self.core, "whole": next(self.whole)}


def raced(
    machine: Machine, head: float, *again: float, seconds: float = 60.0, whole_runs: bool = False, **more: Any
) -> Raced:
    """A comparison with a base of pace 1; the head's pace may be another `again`, when it is loaded another time."""
    paces = iter([head, *again, *[head] * 9])

    @contextmanager
    def load() -> Iterator[tuple[Side, Side]]:
        yield Program(machine, 1.0), Program(machine, next(paces), **more)

    coin = random.Random(7)
    return Race(
        ["core"], StoppingRule(), seconds, lambda: machine.now, lambda: coin.random() < 0.5, whole_runs=whole_runs
    ).run(load)


def outcomes(head: float, slow: bool) -> Counter[Outcome]:
    return Counter(raced(Machine(seed, slow), head).ratios[0].outcome for seed in range(60))


def test_both_sides_meet_a_machine_that_is_half_as_fast_for_a_while() -> None:
    assert outcomes(1.0, slow=True)[Outcome.SAME] >= 57
    assert outcomes(0.95, slow=True)[Outcome.REGRESSION] >= 57
    assert outcomes(0.99, slow=True)[Outcome.IMPROVEMENT] == 0


def test_an_alarm_is_one_only_if_both_sides_loaded_anew_say_it_again_and_again() -> None:
    same = raced(Machine(1), 0.9)
    assert (
        (same.ratios[0].outcome, same.loadings)
        == (Outcome.REGRESSION, StoppingRule().loadings)
        == (same.ratios[0].outcome, 5)
    )
    assert len(same.ratios[0].base) == same.ratios[0].pairs == len(same.base_first)
    for agreeing in range(1, 5):
        late = raced(Machine(1), *[0.9] * agreeing, 1.0)
        assert (late.ratios[0].outcome, late.loadings) == (Outcome.AMBIGUOUS, agreeing + 1)
    once = raced(Machine(1), 0.9, 1.0)
    other = raced(Machine(1), 0.9, 1.1)
    assert (other.ratios[0].outcome, other.loadings) == (Outcome.AMBIGUOUS, 2)
    assert once.ratios[0].value == pytest.approx(1.0, abs=0.02)
    quiet = raced(Machine(1), 1.0)
    assert (quiet.ratios[0].outcome, quiet.loadings) == (Outcome.SAME, 1)


@pytest.mark.parametrize(
    "luck",
    [
        lambda chance: chance.gauss(0, 0.01),
        lambda chance: chance.gauss(0, 0.02),
        lambda chance: chance.gauss(0, 0.04),
        lambda chance: 0.08 * (chance.choice((0, 1)) - chance.choice((0, 1))),
    ],
    ids=["1 %", "2 %", "4 %", "two states"],
)
def test_one_program_that_is_as_fast_as_it_was_loaded_is_not_called_another(luck: Draw) -> None:
    """Of 300 sessions at most 8 have an alarm, if their probability is 1 %, with one of 0.4 %."""
    alarms = 0
    for seed in range(300):
        chance = random.Random(seed)
        paces = [math.exp(luck(chance)) for _ in range(9)]
        alarms += raced(Machine(seed), *paces).ratios[0].outcome in DIFFERENT
    assert alarms <= 8


def test_so_many_loadings_must_agree_as_luck_asks_for() -> None:
    assert [StoppingRule(metrics=metrics).loadings for metrics in (1, 2, 20, 100)] == [5, 5, 7, 9]
    assert StoppingRule(luck=0.01, again=0.01).loadings == 2
    for metrics in (1, 2, 20, 100):
        rule = StoppingRule(metrics=metrics)
        lucky = (rule.luck + rule.share) * (rule.luck + rule.again) ** (rule.loadings - 1)
        assert 2 * metrics * lucky <= rule.error


def test_a_metric_that_stays_unclear_takes_no_time_from_one_that_is_clear() -> None:
    """Both differ in the first loading; in the others one lies at the width, which no number of pairs makes clear."""
    clock, wholes = itertools.count(step=0.25), iter([itertools.repeat(90.0)])

    @contextmanager
    def load() -> Iterator[tuple[Side, Side]]:
        whole = next(wholes, itertools.cycle([97.0, 99.0]))
        yield Fixed(clock, itertools.repeat(100.0), 100.0), Fixed(clock, whole, 90.0)

    race = Race(["core", "whole"], StoppingRule(metrics=2), 60.0, lambda: next(clock), lambda: True)
    core, whole = race.run(load).ratios
    assert (core.outcome, len(core.loadings)) == (Outcome.REGRESSION, 5)
    assert (whole.outcome, len(whole.loadings)) == (Outcome.AMBIGUOUS, 2)


def test_of_whole_runs_each_is_a_loading_of_its_own() -> None:
    slower = raced(Machine(1), 0.9, whole_runs=True)
    assert (slower.ratios[0].outcome, slower.loadings) == (Outcome.REGRESSION, 1)
    assert not slower.ratios[0].loadings


def test_no_width_makes_an_answer_of_two_loadings_that_disagree() -> None:
    """By the nearer of the two alone, 0.9 and then the same is the same at any width that is not the race's own."""
    once = raced(Machine(1), 0.9, 1.0).ratios
    assert once[0].outcome_at(0.021, 5) is once[0].outcome_at(0.02, 5) is Outcome.AMBIGUOUS
    held = record(compared=compared(once))
    for width in (0.021, 0.03):
        wider = held.model_copy(update={"policy": held.policy.model_copy(update={"gate_width": width})})
        assert judge(wider).kind is VerdictKind.AMBIGUOUS
    assert once[0].outcome_at(0.3, 5) is Outcome.SAME
    same = raced(Machine(1), 0.9).ratios[0]
    assert len(same.loadings) == 5 and same.outcome_at(0.021, 5) is Outcome.REGRESSION


@pytest.mark.parametrize("loadings", [((0.90, 0.97), (0.981, 0.994)), ((0.985, 0.994),)])
def test_no_width_makes_an_alarm_of_fewer_loadings_than_are_needed(loadings: tuple[tuple[float, float], ...]) -> None:
    low, high = loadings[-1]
    few = Ratio(metric="core", outcome=Outcome.SAME, value=0.99, low=low, high=high, pairs=9, loadings=loadings)
    assert few.outcome_at(0.005, 5) is Outcome.AMBIGUOUS
    assert few.outcome_at(0.005, len(loadings)) is Outcome.REGRESSION
    held = record(compared=compared((few,), loadings_needed=5))
    narrow = held.model_copy(update={"policy": held.policy.model_copy(update={"gate_width": 0.005})})
    assert judge(narrow).kind is VerdictKind.AMBIGUOUS


@pytest.mark.parametrize("good", [0, 1])
def test_what_was_clear_before_a_side_was_lost_is_no_alarm(good: int) -> None:
    """Core is clear in each loading, whole only in the `good` ones before the head ends."""
    clock, number = itertools.count(step=0.01), itertools.count()

    @contextmanager
    def load() -> Iterator[tuple[Side, Side]]:
        steady = next(number) < good
        whole = itertools.repeat(90.0) if steady else itertools.chain([97.0, 99.0] * 20, [0.0])
        yield Fixed(clock, itertools.repeat(100.0), 100.0), Fixed(clock, whole, 90.0)

    rule = StoppingRule(metrics=2)
    raced = Race(["core", "whole"], rule, 60.0, lambda: next(clock), lambda: True).run(load)
    core = raced.ratios[0]
    assert raced.problems and raced.loadings == good + 1 and (core.high or 1.0) < 0.98
    assert core.outcome is core.outcome_at(rule.width, rule.loadings) is Outcome.AMBIGUOUS


def test_a_budget_too_small_for_any_answer_is_ambiguous() -> None:
    for seconds in (0.0, 1.0, 4.0):
        short = raced(Machine(1), 0.5, seconds=seconds)
        assert short.ratios[0].outcome is Outcome.AMBIGUOUS
        assert not short.problems


def test_a_budget_that_ends_before_the_second_loading_is_ambiguous() -> None:
    (ratio,) = raced(Machine(1), 0.9, seconds=6.5).ratios
    assert ratio.outcome is Outcome.AMBIGUOUS and ratio.pairs >= 11 and ratio.value == pytest.approx(0.9, abs=0.02)


def test_a_side_that_is_lost_between_pairs_is_told() -> None:
    lost = raced(Machine(1), 0.9, rounds=5)
    assert lost.problems == ["the head's device is gone after 5 pairs"]
    assert judge(record(compared=compared(lost.ratios, problems=tuple(lost.problems)))).kind is VerdictKind.ERROR


def compared(ratios: tuple[Ratio, ...] = (), **more: Any) -> Compared:
    base: dict[str, Any] = {"baseline": "main", "identity": "0" * 40, "way": "rounds", "width": 0.02, "error": 0.01}
    return Compared(**base, metrics_of_session=1, ratios=ratios, **more)


def ratio(outcome: Outcome, metric: str = "core") -> Ratio:
    return Ratio(metric=metric, outcome=outcome, value=0.9, low=0.89, high=0.91, pairs=20)


@pytest.mark.parametrize(
    "found, kind",
    [
        ([Outcome.SAME], VerdictKind.PASS),
        ([Outcome.IMPROVEMENT], VerdictKind.PASS),
        ([Outcome.SAME, Outcome.AMBIGUOUS], VerdictKind.AMBIGUOUS),
        ([Outcome.AMBIGUOUS, Outcome.REGRESSION], VerdictKind.FAIL_PERF),
        ([], VerdictKind.ERROR),
    ],
)
def test_what_a_comparison_makes_of_a_run(found: list[Outcome], kind: VerdictKind) -> None:
    ratios = tuple(ratio(outcome, f"metric{n}") for n, outcome in enumerate(found))
    assert judge(record(compared=compared(ratios))).kind is kind


def test_a_run_that_fails_otherwise_keeps_its_verdict() -> None:
    slower = compared((ratio(Outcome.REGRESSION),))
    dishonest = judge(record(dishonest=("the engine cheats",), compared=slower))
    assert dishonest == judge(record(dishonest=("the engine cheats",)))
    assert judge(record(compared=slower)).reasons == (
        "beside main core is slower: 0.9 times the baseline's (0.89 to 0.91, 20 pairs); up to 2.0% is the same",
    )


@pytest.mark.parametrize("blocks", [each for n in range(4) for each in itertools.combinations(LOOSE, n)])
@pytest.mark.parametrize("beside", [*LOOSE, VerdictKind.PASS, VerdictKind.ERROR])
@pytest.mark.parametrize("alone", [*LOOSE, VerdictKind.PASS])
def test_what_a_policy_lets_pass_hides_nothing_that_it_does_not(
    alone: VerdictKind, beside: VerdictKind, blocks: tuple[VerdictKind, ...]
) -> None:
    outcomes = {VerdictKind.AMBIGUOUS: Outcome.AMBIGUOUS, VerdictKind.FAIL_PERF: Outcome.REGRESSION}
    found = {
        VerdictKind.INSUFFICIENT: compared(lacking="it has no such case"),
        VerdictKind.ERROR: compared(problems=("the base is gone",)),
    }.get(beside) or compared((ratio(outcomes.get(beside, Outcome.SAME)),))
    policy = default_policy().model_copy(update={"blocks": blocks})
    own = [] if alone is VerdictKind.PASS else [(alone, ["so it is"])]
    kind = judged_by(record(compared=found, policy=policy), own).kind
    assert kind in (alone, beside)
    blocking = [each for each in (alone, beside) if each in {*blocks, VerdictKind.ERROR}]
    assert kind is max(blocking or (alone, beside), key=lambda each: each.exit_code)


def test_nothing_to_compare_with_is_no_pass() -> None:
    assert judge(record(compared=compared(lacking="it has no such case"))).kind is VerdictKind.INSUFFICIENT


def test_a_record_is_compared_with_as_it_was_read_wherever_a_link_leads_by_then(tmp_path: Path) -> None:
    """`latest` leads to this session once it has begun, where this very run's record is about to be."""
    head, path = make_record(), tmp_path / "earlier/inference/resnet50/record.json"
    path.parent.mkdir(parents=True)
    head.save(path)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    (tmp_path / "latest").symlink_to("earlier")
    suites = suites_there.SUITES
    config: Any = SimpleNamespace(stash={SUITES: suites}, option=SimpleNamespace(compare_unlike=True))
    baselines = [RecordedBaseline(each, "latest", config) for each in (tmp_path / "latest", path)]
    (tmp_path / "latest").unlink()
    path.unlink()
    subject = Subject(head.run_name, head, suites["inference"], "suites/x.py", (), print)
    for baseline in baselines:
        found = baseline.compare(subject, StoppingRule(), 1.0)
        assert found.identity == digest and found.ratios and not found.problems


def test_a_case_that_a_record_says_was_unsupported_is_new(tmp_path: Path) -> None:
    """It may have ended before its data; what makes it the record of something else is told all the same."""
    head = make_record()
    verdict = Verdict(kind=VerdictKind.UNSUPPORTED, reasons=("no fp16 here",))
    then = head.model_copy(update={"verdict": verdict, "dataset": None, "weights": None})
    config: Any = SimpleNamespace(stash={SUITES: suites_there.SUITES}, option=SimpleNamespace(compare_unlike=False))
    subject = Subject(head.run_name, head, suites_there.SUITES["inference"], "suites/x.py", (), print)
    found = []
    for base in (then, then.model_copy(update={"precision": "int8"})):
        base.save(tmp_path / "record.json")
        baseline = RecordedBaseline(tmp_path / "record.json", "record.json", config)
        found.append(baseline.compare(subject, StoppingRule(), 1.0))
    assert found[0].new == "the base does not support it: no fp16 here; its speed is compared with nothing"
    assert not found[0].problems and not found[0].ratios
    assert judge(record(compared=found[0])).kind is VerdictKind.PASS
    assert found[1].new is None and "precision: " in found[1].problems[0]


def test_what_disturbed_this_session_is_told_beside_a_record_and_hides_no_regression(tmp_path: Path) -> None:
    """Nothing disturbed the record meanwhile; but an engine that scatters would get by with being slower."""
    base = make_record()
    base.save(tmp_path / "record.json")
    config: Any = SimpleNamespace(stash={SUITES: suites_there.SUITES}, option=SimpleNamespace(compare_unlike=False))
    baseline = RecordedBaseline(tmp_path / "record.json", "old", config)
    verdict = Verdict(kind=VerdictKind.AMBIGUOUS, reasons=("others took 10 % of the cores",))
    figures = tuple(
        figure.model_copy(update={"value": figure.value / 2}) if isinstance(figure.value, float) else figure
        for figure in base.figures
    )
    slower = base.model_copy(update={"figures": figures})
    said = "this session's run is AMBIGUOUS by itself: others took 10 % of the cores"
    for head, notes in ((slower, ()), (slower.model_copy(update={"verdict": verdict}), (said,))):
        subject = Subject(head.run_name, head, suites_there.SUITES["inference"], "suites/x.py", (), print)
        found = baseline.compare(subject, StoppingRule(), 1.0)
        assert found.differences == notes
        assert judge(head.model_copy(update={"compared": found})).kind is VerdictKind.FAIL_PERF


RATES = st.floats(1e-3, 1e6)


@given(st.lists(st.tuples(RATES, RATES), min_size=1, max_size=40))
def test_what_comes_of_pairs_is_like_them(rates: list[tuple[float, float]]) -> None:
    pairs = Pairs(["core"], StoppingRule())
    for base, head in rates:
        pairs.add({"core": base}, {"core": head})
    assert [ratio.unlike_its_pairs() for ratio in pairs.ratios()] == [None]


LISTED = "the vendor lists it as unsupported, and the baseline does not"
UNLISTED = "it is UNSUPPORTED, which the policy lets pass, and the baseline may have a speed of it"


@pytest.mark.parametrize("listed, blocks, told", [(True, True, LISTED), (False, False, UNLISTED), (False, True, None)])
@pytest.mark.parametrize("of", ["then", "never", "unsupported then too"])
def test_what_had_a_speed_is_not_dropped_without_a_word(
    tmp_path: Path, of: str, listed: bool, blocks: bool, told: str | None
) -> None:
    """By its vendor's list of what does not work, or by a policy; but what the baseline has no speed of either."""
    unsupported = Verdict(kind=VerdictKind.UNSUPPORTED, expected=listed)
    policy = default_policy().model_copy(update={"blocks": (VerdictKind.UNSUPPORTED,) if blocks else ()})
    then, now = make_record(), make_record().model_copy(update={"verdict": unsupported})
    (now if of == "unsupported then too" else then).save(tmp_path / "record.json")
    stash: Any = {SUITES: suites_there.SUITES, POLICY: policy}
    config: Any = SimpleNamespace(stash=stash, option=SimpleNamespace(compare_unlike=True))
    baseline = RecordedBaseline(tmp_path / "record.json", "record.json", config)
    record = now.model_copy(update={"case": "another"}) if of == "never" else now
    config.stash[RECORDS] = [(record, tmp_path)]
    tell_not_compared(config, "--compare", [], "whole", baseline.had_a_speed)
    what = [(record.run_name, f"--compare: nothing of it was compared: {told}")]
    assert config.stash.get(NOT_COMPARED, []) == (what if told and of == "then" else [])


def test_a_saved_figure_is_a_speed_that_a_case_had() -> None:
    entry = {"extra_info": {"suite": "inference", "case": "net"}}
    comparison = Comparison("0001", [], {"0001.json": [entry]})
    assert _had_a_speed(comparison, record()) and not _had_a_speed(comparison, record(case="another"))
