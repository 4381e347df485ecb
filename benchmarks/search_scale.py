"""`make scale`: a search of 100,000 trials on 4,096 workers, whose trials are simulated and whose rest is not.

Driver, journal, study, the next network's preparation, collector, score and page are the real ones. A simulated trial
computes nothing: it lasts a while and leaves the log of a real one, with an accuracy that depends on its
hyper-parameters. Networks are drawn from a few that were grown before: what it costs to generate one is measured by
itself, for ResNet-50, with as many finished trials as there are.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import psutil

from proofmark.automl.graph import Graph
from proofmark.automl.morphism.grow import random_growth
from proofmark.automl.outcome.record import TrialRecord
from proofmark.automl.outcome.scoring import marks_of, score_of
from proofmark.automl.outcome.trials import trials_of
from proofmark.automl.search import driver
from proofmark.automl.search.ahead import Made
from proofmark.automl.search.journal import FILE, Journal, faults, read_journal
from proofmark.automl.search.networks import Morphisms
from proofmark.automl.search.settings import SearchSettings
from proofmark.automl.search.state import Trial
from proofmark.automl.search.study import Study
from proofmark.automl.seed_networks import bottleneck_network, small_network
from proofmark.automl.trial.spec import LOG, TrialSpec
from proofmark.launch.job import Handle, Job
from proofmark.launch.job_file import Status
from proofmark.vendor.hardware.machine import describe_host

WORKERS, TRIALS = 4096, 100_000
KNOWN = (100, 1_000, 10_000)
"""Finished trials with which a network like ResNet-50 is generated."""

LOOK = 0.001
"""Seconds between two looks at the trials: simulated ones last seconds, not an hour."""

RANGES = {"kernel_size": (3.0, 5.0), "batch_size": (32.0, 128.0), "dropout": (0.0, 0.2)}
EPOCHS, IMAGES, EVALUATED = 4, 1149, 287


class SimulatedHandle(Handle):
    """A trial that lasts a while and leaves a log."""

    def __init__(self, job: Job, lasts: float) -> None:
        self._job, self._ends, self._left = job, time.monotonic() + lasts, False

    def status(self) -> Status:
        """It succeeds in the end."""
        if time.monotonic() < self._ends:
            return "running"
        if not self._left:
            self._left = True
            (self._job.node_directory(0) / LOG).write_text(_log(self._job.spec))
        return "succeeded"

    def fetch(self, leaves: Sequence[str]) -> str | None:
        """All is here."""
        return None

    def stop(self) -> None:
        """There is nothing to stop."""


class Workers:
    """As a launcher takes jobs."""

    def __init__(self, lasts: float) -> None:
        self._lasts, self._chance = lasts, random.Random(0)

    def submit(self, job: Job) -> SimulatedHandle:
        """Trials last unequally long."""
        return SimulatedHandle(job, self._lasts * self._chance.uniform(0.5, 1.5))


class Drawn(Morphisms):
    """Networks of a pool that was grown before."""

    def __init__(self, seed: Graph) -> None:
        super().__init__([seed], 0, 4.0)
        chance = random.Random(0)
        steps = [step for _ in range(64) if (step := random_growth(seed, chance))]
        self._pool = [
            ([operation.model_dump(mode="json")], graph.model_dump(mode="json")) for operation, graph in steps
        ]
        self._chance = chance

    def propose(self, finished: Sequence[Trial], taken: Sequence[Trial], number: int) -> Made | None:
        """A child of any of the finished."""
        operations, graph = self._chance.choice(self._pool)
        return Made(self._chance.choice(finished).number, operations, graph)


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
            begun = time.perf_counter()
            try:
                return call(*args, **more)
            finally:
                self.seconds[part] += time.perf_counter() - begun  # type: ignore[assignment]

        return timed


def measure(workers: int, trials: int, seconds: float, folder: Path) -> None:
    """A search from its first trial to its score, and what it took."""
    driver.LOOK = LOOK
    settings = SearchSettings(
        environments=({},) * workers,
        devices=workers,
        epochs=(EPOCHS,),
        study_from=3,
        ranges=RANGES,
        startup=10,
        defaults={"kernel_size": 3, "batch_size": 64, "dropout": 0.0},
        patience=None,
        most_trials=trials,
        most_seconds=seconds,
        seed=0,
        hang=1e6,
        setup=1e6,
    )
    spent, search = Spent(), folder / "search"
    journal = spent.watch(Journal(search), write="journal")
    study = spent.watch(Study(search, RANGES, 0), ask="study: ask", tell="study: tell")
    networks = spent.watch(Drawn(small_network(size=8, channels=1)), settled="network", per_image="network")
    telling = Telling(trials)
    lasts = workers * SECONDS_PER_TRIAL

    def spec(directory: Path, **trial: Any) -> TrialSpec:
        config = {"suite": "simulated", "case": "search", "host": {"cache_dir": str(folder / "cache")}}
        return TrialSpec(("", ""), "none", "", config, str(directory), (), **trial)

    searching = driver.Driver(search, journal, settings, networks, study, Workers(lasts), spec, telling)
    spent.watch(searching, _collect="looking at trials, with journal and study: tell", _tell="telling")
    begun, busy = time.monotonic(), time.process_time()
    state = searching.run(describe_host().model_dump(), "0")
    took, busy = time.monotonic() - begun, time.process_time() - busy
    journal.close()
    over = len(state.over)
    print(f"{over} trials on {workers} workers in {took:.0f} s: {over / took:.1f} a second", flush=True)
    print(f"driver: {1e3 * busy / over:.2f} ms of a core per trial; of its time:")
    for part, part_seconds in spent.seconds.most_common():
        print(f"  {part}: {part_seconds / took:.0%}, {1e3 * part_seconds / over:.2f} ms per trial")
    _sizes(search)
    _score(search, took)
    print(f"peak memory: driver {telling.peak:.0f} MB, with collecting and scoring {_peak_mb():.0f} MB")


SECONDS_PER_TRIAL = 0.02
"""How long a simulated trial lasts, for each worker: about what the driver takes for one, so that all are busy."""


class Telling:
    """Prints how far a search is, and sees its memory."""

    def __init__(self, trials: int) -> None:
        self._next, self._step, self._begun = 0, max(1, trials // 20), time.monotonic()
        self.peak = 0.0

    def __call__(self, progress: driver.Progress) -> None:
        """One moment of a search."""
        self.peak = _peak_mb()
        done = progress.done + progress.failed
        if done >= self._next:
            self._next += self._step
            memory = psutil.Process().memory_info().rss / 1e6
            print(f"  {done} trials, {progress.running} running: {progress.seconds:.0f} s, {memory:.0f} MB", flush=True)


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
    begun = {"trial": number, "attempt": 1, "parent": None, "study": number, "graph": graph, "per_image": per_image}
    return Trial(begun, {"status": "finished", "accuracy": chance.random(), "epochs": []})


def _log(spec: Any) -> str:
    """What a real trial leaves, to the fields that are read."""
    chosen = spec.hyperparameters
    accuracy = 0.9 - abs(chosen["dropout"] - 0.05) - abs(chosen["batch_size"] - 96) / 1000
    times = ("train", "data", "compute", "evaluation", "checkpoint")
    totals = {"epoch": 0, "step": 1, "communication": None, **{f"{name}_seconds": 1.0 for name in times}}
    evaluation = {"metric": accuracy, "samples_evaluated": EVALUATED, "took_seconds": 0.1}
    events = [
        ("trial_begin", {"trial": spec.trial}),
        *(("evaluation", {**totals, **evaluation, "samples": IMAGES * epoch}) for epoch in range(1 + EPOCHS)),
        ("counted", {"forward": 1, "training": 3}),
        ("computed", {"dtypes": ["float32"], "window": [0.0, 1.0]}),
        ("chosen", {"metric": accuracy, "epoch": EPOCHS}),
        ("trial_end", {"trial": spec.trial}),
    ]
    clock = time.perf_counter_ns()
    return "".join(json.dumps({"event": kind, "time": 0.0, "clock": clock, **fields}) + "\n" for kind, fields in events)


def _peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3


def main() -> None:
    """Print both."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--workers", type=int, default=WORKERS)
    parser.add_argument("--trials", type=int, default=TRIALS)
    parser.add_argument("--seconds", type=float, default=1e6, help="after which no trial is begun")
    parser.add_argument("--known", type=int, nargs="*", default=KNOWN)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        measure(asked.workers, asked.trials, asked.seconds, Path(folder))
    generation(asked.known)


if __name__ == "__main__":
    main()
