"""`make gate-power RUNS=N`: how often the speed gate raises a false alarm, and how often it finds what is slower.

A session loads base and head as two processes of one program, an inference case's model on its data, and races them as
--compare does. The head is the same, or planted: it computes 5 % or 1 % longer. Of each kind N sessions (40) are real,
cases in turns. The rest, up to 200 of the same and 100 of each planted kind, is drawn from the pairs that those have
recorded, in blocks of neighbours from a loading drawn at random, so with this machine's own noise.

Exit code 1 where more than 1 % of the sessions of the same raise an alarm, where 5 % are found in less than 95 %, or
where 1 % slower is ever called an improvement.
"""

from __future__ import annotations

import argparse
import itertools
import multiprocessing
import random
import statistics
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING, Any

from proofmark.gate.decision import Rates, StoppingRule
from proofmark.gate.race import Race, Raced, Side, SideLost
from proofmark.process.memory import keep_freed
from proofmark.record.compared import Outcome

if TYPE_CHECKING:
    import torch

    from proofmark.measuring.window import Compute

ROOT = Path(__file__).resolve().parents[2]
CASES = ("vit", "bert")
METRICS = ("core", "whole")
KINDS = {"the same": 0.0, "5 % slower": 0.05, "1 % slower": 0.01}
WHOLE = {"the same": 200, "5 % slower": 100, "1 % slower": 100}
BLOCK = 5
"""Neighbouring pairs that are drawn together."""

Pair = tuple[bool, Rates, Rates]
"""Whether the base came first, and both sides' rates."""


class Process:
    """A side's process, in which a case is loaded."""

    def __init__(self, case: str, slower: float) -> None:
        context = multiprocessing.get_context("forkserver")
        here, there = context.Pipe()
        self._connection = here
        self._process = context.Process(target=_serve, args=(there, case, slower), daemon=True)
        self._process.start()
        there.close()
        self._receive()

    def rates(self) -> Rates:
        """A short round."""
        self._connection.send("round")
        return self._receive()

    def end(self) -> None:
        """End it."""
        self._connection.close()
        self._process.join()

    def _receive(self) -> Rates:
        try:
            return dict(self._connection.recv())
        except EOFError:
            raise SideLost("a side's process ended") from None


def _serve(connection: Connection, case: str, slower: float) -> None:
    keep_freed()
    log = _Last()
    rounds = _rounds(case, slower, log)
    connection.send({})
    try:
        while connection.recv():
            rounds.time()
            connection.send({name: log.fields["items"] / log.fields[f"{name}_ns"] * 1e9 for name in METRICS})
    except EOFError:
        return


class _Last:
    """A log that keeps its last event."""

    fields: Mapping[str, Any]

    def write(self, kind: str, /, **fields: Any) -> None:
        """Keep it."""
        self.fields = fields


def _rounds(name: str, slower: float, log: _Last) -> Any:
    """The short rounds of a case's model with fresh weights, whose speed is that of trained ones."""
    import importlib

    import torch

    from proofmark.inference.case import InferenceParameters
    from proofmark.inference.timing.bench import Bench
    from proofmark.inference.timing.short import ShortRounds
    from proofmark.measuring.precision import framework_compute
    from proofmark.metric import Scoring
    from proofmark.rules.case_file import load_case_file
    from proofmark.rules.config import HostSettings, resolve
    from proofmark.vendor.registry import find_vendor

    module = importlib.import_module(f"suites.inference.test_{name}")
    kind = next(value for key, value in vars(module).items() if key.lower() == f"test{name}")
    case, found = kind(), find_vendor("cpu", ROOT / "vendors")
    file = ROOT / f"suites/inference/{name}.yaml"
    case_file = load_case_file(file, "inference", "embedded", case.common_file, InferenceParameters)
    config = resolve(case_file, "cpu", [], "eager", HostSettings()).config
    torch.manual_seed(config.seed)
    model, loader = case.create_model(config).eval(), case.build_dataloader(config)
    first = next(iter(loader))[0]
    compute = planted(framework_compute(model, "cpu", "fp32"), slower)
    bench = Bench(config, loader, first, lambda: Scoring.of(case, config), found.vendor, log, lambda **_: None)
    return ShortRounds(bench, compute)


def planted(compute: Compute, slower: float) -> Compute:
    """The same, for a share of its time longer."""
    if not slower:
        return compute

    def longer(inputs: list[torch.Tensor]) -> tuple[list[torch.Tensor], float]:
        begun = time.perf_counter()
        answer = compute(inputs)
        now = time.perf_counter()
        until = now + (now - begun) * slower / (1 - slower)
        while time.perf_counter() < until:
            pass
        return answer

    return longer


@dataclass
class Session:
    """One comparison, and the pairs of each of its loadings."""

    raced: Raced
    loadings: list[list[Pair]]
    seconds: float

    @property
    def outcomes(self) -> list[Outcome]:
        """Of core and whole."""
        return [ratio.outcome for ratio in self.raced.ratios]


@dataclass
class Recorder:
    """Loads two sides, and writes down what they say."""

    sides: Callable[[], tuple[Side, Side, Callable[[], None]]]
    loadings: list[list[Pair]] = field(default_factory=list)

    @contextmanager
    def load(self) -> Iterator[tuple[Side, Side]]:
        """Both sides, listened to."""
        base, head, end = self.sides()
        heard: list[tuple[str, Rates]] = []
        try:
            yield _Heard("base", base, heard), _Heard("head", head, heard)
        finally:
            end()
            pairs = zip(heard[::2], heard[1::2], strict=False)
            self.loadings.append([(one[0] == "base", *_in_order(one, other)) for one, other in pairs])


def _in_order(one: tuple[str, Rates], other: tuple[str, Rates]) -> tuple[Rates, Rates]:
    return (one[1], other[1]) if one[0] == "base" else (other[1], one[1])


@dataclass
class _Heard:
    name: str
    side: Side
    heard: list[tuple[str, Rates]]

    def rates(self) -> Rates:
        rates = self.side.rates()
        self.heard.append((self.name, rates))
        return rates


def real(case: str, slower: float, seconds: float) -> Session:
    """A session of two processes."""

    def sides() -> tuple[Side, Side, Callable[[], None]]:
        slowed, made = {"base": 0.0, "head": slower}, dict[str, Process]()
        for name in random.SystemRandom().sample([*slowed], 2):
            made[name] = Process(case, slowed[name])
        base, head = made["base"], made["head"]

        def end() -> None:
            base.end()
            head.end()

        return base, head, end

    return _raced(sides, seconds, time.monotonic)


def drawn(sessions: list[Session], chance: random.Random, seconds: float) -> Session:
    """A session of pairs that others recorded, each of which takes as long as theirs did, and loading too.

    They are drawn from first loadings: of later ones there are few pairs, since the test stops when they agree.
    """
    pairs_of = [session.loadings[0] for session in sessions if len(session.loadings[0]) >= BLOCK]
    a_load = statistics.fmean(session.raced.loading_seconds for session in sessions)
    timed = sum(max(0.0, s.seconds - a_load * len(s.loadings)) for s in sessions)
    a_pair = timed / sum(len(loading) for session in sessions for loading in session.loadings)
    now = 0.0

    def sides() -> tuple[Side, Side, Callable[[], None]]:
        nonlocal now
        now += a_load
        loading = chance.choice(pairs_of)
        starts = (chance.randrange(len(loading) - BLOCK + 1) for _ in itertools.count())
        pairs = (pair for start in starts for pair in loading[start : start + BLOCK])
        ahead: list[Pair] = []

        def next_rates(side: int) -> Rates:
            nonlocal now
            if ahead:
                return ahead.pop()[1:][side]
            ahead.append(next(pairs))
            now += a_pair
            return ahead[0][1:][side]

        return _Drawn(lambda: next_rates(0)), _Drawn(lambda: next_rates(1)), lambda: None

    return _raced(sides, seconds, lambda: now)


@dataclass
class _Drawn:
    rates: Callable[[], Rates]


def _raced(sides: Any, seconds: float, clock: Callable[[], float]) -> Session:
    recorder, coin, begun = Recorder(sides), random.SystemRandom(), clock()
    race = Race(METRICS, StoppingRule(metrics=len(METRICS)), seconds, clock, lambda: coin.random() < 0.5)
    raced = race.run(recorder.load)
    if raced.problems:
        raise SystemExit(f"a side was lost: {'; '.join(raced.problems)}")
    return Session(raced, recorder.loadings, clock() - begun)


def main() -> None:
    """Run all, print a table; exit code 1 where a promise does not hold."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=40, help="real sessions of each kind (40)")
    parser.add_argument("--budget", type=float, default=90.0, metavar="SECONDS", help="of a session (90)")
    parser.add_argument("--kind", action="append", choices=[*KINDS], help="one of the kinds alone; may be repeated")
    arguments = parser.parse_args()
    context = multiprocessing.get_context("forkserver")
    modules = [f"suites.inference.test_{case}" for case in CASES]
    context.set_forkserver_preload(["torch", "transformers", "proofmark.inference.timing.short", *modules])
    chance, wrong, begun = random.Random(0), 0, time.monotonic()
    kinds = {kind: slower for kind, slower in KINDS.items() if kind in (arguments.kind or KINDS)}
    for kind, slower in kinds.items():
        sessions = []
        for number in range(arguments.runs):
            sessions.append(real(CASES[number % len(CASES)], slower, arguments.budget))
            _tell(kind, sessions[-1])
        more = max(0, WHOLE[kind] - len(sessions))
        if not any(len(session.loadings[0]) >= BLOCK for session in sessions):
            print(f"{kind}: too few pairs were timed to draw sessions from them: a quieter machine, or --budget")
            more = 0
        wrong += _judge(kind, sessions, [drawn(sessions, chance, arguments.budget) for _ in range(more)])
    took = time.monotonic() - begun
    whole = took / arguments.runs * 40
    print(f"{took:.0f} s for {arguments.runs} real sessions of each kind; 40 of each take {whole / 60:.0f} minutes")
    raise SystemExit(1 if wrong else 0)


def _tell(kind: str, session: Session) -> None:
    ratios = "  ".join(f"{r.metric} {r.outcome} {r.text}" for r in session.raced.ratios)
    print(f"{kind:12} {session.seconds:5.1f} s  {session.raced.loadings} loadings  {ratios}", flush=True)


def _judge(kind: str, sessions: list[Session], more: list[Session]) -> int:
    """A line of what came out; 1 where a promise does not hold."""
    wrong = 0
    for name, these in (("real", sessions), ("with drawn", [*sessions, *more])):
        core = Counter(session.outcomes[0] for session in these)
        alarms = sum(any(o in (Outcome.REGRESSION, Outcome.IMPROVEMENT) for o in s.outcomes) for s in these)
        better = sum(Outcome.IMPROVEMENT in s.outcomes for s in these)
        pairs, seconds = sorted(sum(map(len, s.loadings)) for s in these), sorted(s.seconds for s in these)
        counted = ", ".join(f"{count} {outcome}" for outcome, count in core.most_common())
        half = len(these) // 2
        spent = f"pairs {pairs[half]} (up to {pairs[-1]}), {seconds[half]:.0f} s (up to {seconds[-1]:.0f})"
        alarmed = f"any alarm {alarms}, improvements {better}"
        print(f"== {kind}, {name}: {len(these)} sessions, core {counted}; {alarmed}; {spent}", flush=True)
        wrong |= {
            "the same": alarms > 0.01 * len(these),
            "5 % slower": core[Outcome.REGRESSION] < 0.95 * len(these),
            "1 % slower": better > 0,
        }[kind]
    return int(wrong)


if __name__ == "__main__":
    main()
