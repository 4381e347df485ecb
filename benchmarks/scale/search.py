"""`make scale`: a search of 100,000 trials on 4,096 workers, whose trials are simulated and whose rest is not.

Driver, journal, study, the next network's preparation, collector, score and page are the real ones; time goes on as the
driver computes, and as it sleeps. Networks are drawn from a few that were grown before: what it costs to generate one
is measured by itself, for ResNet-50, with as many finished trials as there are.
"""

from __future__ import annotations

import argparse
import contextlib
import random
import resource
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from unittest.mock import patch

import psutil

from benchmarks.simulated.trials import Clock, Drawn, Workers
from proofmark.automl.morphism.grow import random_growth
from proofmark.automl.network.seeds import bottleneck_network, small_network
from proofmark.automl.outcome.record import TrialRecord
from proofmark.automl.outcome.scoring import marks_of, score_of
from proofmark.automl.outcome.trials import trials_of
from proofmark.automl.search import driver, running
from proofmark.automl.search.journal import FILE, Journal, faults, read_journal
from proofmark.automl.search.networks import Morphisms
from proofmark.automl.search.settings import SearchSettings
from proofmark.automl.search.state import Trial
from proofmark.automl.search.study import Study
from proofmark.automl.trial.spec import TrialSpec
from proofmark.record.events import log as events
from proofmark.vendor.hardware.machine import describe_host

WORKERS, TRIALS, LASTS = 4096, 100_000, 20.0
"""Trials last so many seconds: fewer than it takes the driver to go once around, so that it never waits."""

KNOWN = (100, 1_000, 10_000, 100_000)
"""Finished trials with which a network like ResNet-50 is generated."""

MARKS = (1, 2, 5)
"""Trials of which what they took is told: these, and a power of ten of them."""

RANGES = {"kernel_size": (3.0, 5.0), "batch_size": (32.0, 128.0), "dropout": (0.0, 0.2)}


class Spent:
    """Seconds that parts of the driver's took, by their names."""

    def __init__(self) -> None:
        self.seconds: Counter[str] = Counter()

    def watch(self, whose: Any, **names: str) -> Any:
        """Time these methods of an object; called as the part."""
        for method, part in names.items():
            setattr(whose, method, self._timed(getattr(whose, method), part))
        return whose

    def _timed(self, call: Callable[..., Any], part: str) -> Callable[..., Any]:
        def timed(*args: Any, **more: Any) -> Any:
            begun = time.thread_time()
            try:
                return call(*args, **more)
            finally:
                self.seconds[part] += time.thread_time() - begun  # type: ignore[assignment]

        return timed


def measure(workers: int, trials: int, lasts: float, folder: Path) -> None:
    """A search from its first trial to its score, and what it took."""
    clock = Clock()
    settings = SearchSettings(
        environments=({},) * workers,
        devices=workers,
        epochs=(4,),
        study_from=3,
        ranges=RANGES,
        startup=10,
        defaults={"kernel_size": 3, "batch_size": 64, "dropout": 0.0},
        patience=None,
        most_trials=trials,
        most_seconds=1e9,
        seed=0,
        hang=1e9,
        setup=1e9,
    )
    spent, search = Spent(), folder / "search"
    journal = spent.watch(Journal(search), write="journal")
    study = spent.watch(Study(search, RANGES, 0), ask="study: ask", tell="study: tell")
    networks = spent.watch(Drawn(small_network(size=8, channels=1)), settled="network", per_image="network")
    placed, telling = Workers(clock, lasts), Telling()

    def spec(directory: Path, **trial: Any) -> TrialSpec:
        config = {"suite": "simulated", "case": "search", "host": {"cache_dir": str(folder / "cache")}}
        return TrialSpec(("", ""), "none", "", config, str(directory), (), **trial)

    searching = driver.Driver(search, journal, settings, networks, study, placed, spec, telling)
    spent.watch(searching, _collect="looking at trials, with journal and study: tell", _tell="telling")
    busy = time.process_time()
    with contextlib.ExitStack() as virtual:
        for module in (driver, running, events):
            virtual.enter_context(patch.object(module, "time", clock))
        state = searching.run(describe_host().model_dump(), "0")
    busy = time.process_time() - busy
    journal.close()
    over, took = len(state.over), state.seconds
    print(f"{over} trials of {lasts:g} s on {workers} workers in {took:.0f} s: {over / took:.1f} a second")
    print(f"workers were busy {placed.seconds / took / workers:.0%} of that time, the driver {busy / took:.0%}")
    print(f"driver: {1e3 * busy / over:.2f} ms of a core per trial; of that:")
    for part, seconds in spent.seconds.most_common():
        print(f"  {part}: {seconds / busy:.0%}, {1e3 * seconds / over:.2f} ms per trial")
    _sizes(search)
    _score(search, took)
    print(f"peak memory: driver {telling.peak:.0f} MB, with collecting and scoring {_peak_mb():.0f} MB")


class Telling:
    """Prints what trials took since it did so before, and sees the driver's memory."""

    def __init__(self) -> None:
        self._marks = (mark * 10**power for power in range(3, 9) for mark in MARKS)
        self._next, self._before, self._busy = next(self._marks), 0, time.process_time()
        self.peak = 0.0

    def __call__(self, progress: driver.Progress) -> None:
        """One moment of a search."""
        self.peak = _peak_mb()
        begun, busy = len(progress.state.trials), time.process_time()
        if begun == self._before or (begun < self._next and progress.running):
            return
        while self._next <= begun:
            self._next = next(self._marks)
        memory, trials = psutil.Process().memory_info().rss / 1e6, begun - self._before
        each = 1e3 * (busy - self._busy) / trials
        print(f"  {begun} begun, {progress.running} running: {each:.2f} ms each, {memory:.0f} MB", flush=True)
        self._before, self._busy = begun, busy


def _sizes(search: Path) -> None:
    for name in (FILE, "study.jsonl"):
        print(f"{name}: {(search / name).stat().st_size / 1e6:.0f} MB")


def _score(search: Path, seconds: float) -> None:
    begun = time.monotonic()
    wrong = faults(read_journal(search / FILE))
    checked = time.monotonic() - begun
    trials: list[TrialRecord] = trials_of(read_journal(search / FILE), search)
    collected = time.monotonic() - begun - checked
    score = score_of(trials, seconds, 0.1)
    marks = list(marks_of(trials, seconds, seconds / 100, 2))
    scored = time.monotonic() - begun - checked - collected
    assert not wrong and score.honest and len(marks) > 90
    record = sum(len(trial.model_dump_json()) for trial in trials) / 1e6
    print(f"chain checked in {checked:.0f} s, trials collected in {collected:.0f} s, scored in {scored:.1f} s")
    print(f"trials of the record: {record:.0f} MB")


def generation(known: Sequence[int]) -> None:
    """What a network like ResNet-50 costs, by how many trials have finished."""
    seed, chance = bottleneck_network(), random.Random(0)
    graphs = [seed]
    while len(graphs) < 400:
        if step := random_growth(chance.choice(graphs), chance):
            graphs.append(step[1])
    plain = [graph.model_dump(mode="json") for graph in graphs]
    finished = list[Trial]()
    for count in known:
        finished += [_finished(number, chance.choice(plain), chance) for number in range(len(finished), count)]
        networks = Morphisms([seed], 0, 16.0)
        networks.propose(finished, (), count)  # what is known of them is gathered once
        begun = time.process_time()
        networks.propose(finished, (), count + 1)
        print(f"a network like ResNet-50, {count} finished: {time.process_time() - begun:.1f} s of a core", flush=True)


def _finished(number: int, graph: dict[str, Any], chance: random.Random) -> Trial:
    per_image = dict.fromkeys(("training", "forward"), 1)
    begun = {"trial": number, "attempt": 1, "round": 0, "parent": None, "study": number}
    ended = {"status": "finished", "accuracy": chance.random(), "epochs": []}
    return Trial(begun | {"graph": graph, "per_image": per_image}, ended)


def _peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3


def main() -> None:
    """Print both."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--workers", type=int, default=WORKERS)
    parser.add_argument("--trials", type=int, default=TRIALS)
    parser.add_argument("--lasts", type=float, default=LASTS, help="seconds of a trial")
    parser.add_argument("--known", type=int, nargs="*", default=KNOWN)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        measure(asked.workers, asked.trials, asked.lasts, Path(folder))
    generation(asked.known)


if __name__ == "__main__":
    main()
