"""Trials that compute nothing, on workers that are none: a driver's part of a large search, at its own speed.

Each lasts a while and leaves the log of a real one, with an accuracy that depends on its hyper-parameters. Networks are
drawn from a few that were grown before.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Sequence
from typing import Any

from proofmark.automl.morphism.grow import random_growth
from proofmark.automl.network.graph import Graph
from proofmark.automl.search.ahead import Made
from proofmark.automl.search.networks import Morphisms
from proofmark.automl.search.state import Trial
from proofmark.automl.trial.spec import HANDED_OUT, LOG
from proofmark.launch.job import SPEC, Handle, Job
from proofmark.launch.job_file import Status

EPOCHS, IMAGES, EVALUATED = 4, 1149, 287
HANDED = [("handed_out", {"trained": IMAGES * EPOCHS, "evaluated": EVALUATED * (1 + EPOCHS)})]

YIELDED = 0.005
"""Seconds that a sleep really takes at most."""


class Clock:
    """In place of `time`: as if this process had a core for itself, and slept without waiting.

    What others do on the machine is not seen by it, nor is waiting for a disk.
    """

    def __init__(self) -> None:
        self._slept = 0.0

    def monotonic(self) -> float:
        """Seconds that it computed and slept."""
        return time.process_time() + self._slept

    def perf_counter_ns(self) -> int:
        """The same in ns."""
        return round(1e9 * self.monotonic())

    def sleep(self, seconds: float) -> None:
        """Let the thread that generates networks go on: drawing them takes less than that."""
        self._slept += seconds
        time.sleep(min(seconds, YIELDED))


class SimulatedHandle(Handle):
    """A trial that lasts a while and leaves a log."""

    def __init__(self, job: Job, clock: Clock, lasts: float) -> None:
        self._job, self._clock, self._lasts = job, clock, lasts
        self._ends: float | None = None
        self._left = False

    def tell(self, line: str) -> None:
        """It begins."""
        self._ends = self._clock.monotonic() + self._lasts

    def status(self) -> Status:
        """It succeeds in the end."""
        if self._ends is None or self._clock.monotonic() < self._ends:
            return "running"
        if not self._left:
            self._left = True
            folder = self._job.node_directory(0)
            (folder / LOG).write_text(_log(self._job.spec, self._clock))
            (folder / HANDED_OUT).write_text(_lines(HANDED, self._clock))
        return "succeeded"

    def fetch(self, leaves: Sequence[str]) -> str | None:
        """All is here."""
        return None

    def stop(self) -> None:
        """There is nothing to stop."""


class Workers:
    """As a launcher takes jobs: their trials last so many seconds, some half of that and some half more.

    Attributes:
        seconds: that trials have lasted.
    """

    def __init__(self, clock: Clock, lasts: float) -> None:
        self._clock, self._lasts, self._chance = clock, lasts, random.Random(0)
        self.seconds = 0.0

    def submit(self, job: Job) -> SimulatedHandle:
        """Its specification is written, as on this machine."""
        lasts = self._lasts * self._chance.uniform(0.5, 1.5)
        self.seconds += lasts
        job.spec.save(job.directory / SPEC)
        return SimulatedHandle(job, self._clock, lasts)


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
        """A child of one of those that networks are made of."""
        operations, graph = self._chance.choice(self._pool)
        return Made(self._chance.choice(finished[-50:]).number, operations, graph)


def _log(spec: Any, clock: Clock) -> str:
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
    return _lines(events, clock)


def _lines(events: Sequence[tuple[str, dict[str, Any]]], clock: Clock) -> str:
    now = clock.perf_counter_ns()
    return "".join(json.dumps({"event": kind, "time": 0.0, "clock": now, **fields}) + "\n" for kind, fields in events)
