"""Searches by stubs: networks that are numbers, and trials that train nothing. And sessions of the suite itself."""

from __future__ import annotations

import contextlib
import os
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, cast

from proofmark.automl.search.ahead import Made, Networks
from proofmark.automl.search.driver import Driver, Progress
from proofmark.automl.search.journal import Journal
from proofmark.automl.search.settings import SearchSettings
from proofmark.automl.search.state import State, Trial
from proofmark.automl.search.study import Study
from proofmark.automl.search.upcoming import MakeSpec
from proofmark.automl.trial.spec import TrialSpec
from proofmark.launch.job import Launcher, LocalLauncher
from proofmark.process.lifetime import end_group
from proofmark.vendor.hardware.machine import describe_host
from tests.e2e.forked_session import SETTLED, fork_session

ROOT = Path(__file__).parents[2]
STUB = "tests.automl.stub_trial"
PER_IMAGE = {"forward": 10, "training": 30, "compatible_forward": 20, "compatible_training": 60, "parameters": 5}
LARGEST = 4000
"""Bytes of a file on a disk that is full: a journal of four trials needs more."""

RANGES = {"kernel_size": (3.0, 5.0), "batch_size": (8.0, 16.0), "dropout": (0.0, 0.2)}


class Numbers:
    """Networks that are numbers: a child's is its own, its parent the best."""

    def seed(self, number: int) -> dict[str, Any]:
        return {"network": number}

    def propose(self, finished: Sequence[Trial], taken: Sequence[Trial], number: int) -> Made | None:
        best = max(finished, key=lambda trial: trial.accuracy or 0.0)
        return Made(best.number, [{"kind": "deeper"}], {"network": number})

    def settled(self, graph: dict[str, Any], hyperparameters: dict[str, Any]) -> dict[str, Any]:
        return graph

    def per_image(self, graph: dict[str, Any]) -> dict[str, int]:
        return PER_IMAGE


def settings(trials: int, devices: int = 1, **more: Any) -> SearchSettings:
    fields: dict[str, Any] = {
        "environments": ({},) * devices,
        "epochs": (1, 2),
        "study_from": 2,
        "ranges": RANGES,
        "startup": 2,
        "defaults": {"kernel_size": 3, "batch_size": 8, "dropout": 0.0},
        "patience": None,
        "most_trials": trials,
        "most_seconds": 6000.0,
        "seed": 0,
        "hang": 600.0,
        "setup": 600.0,
        "devices": devices,
        "ahead": True,
    }
    return SearchSettings(**{**fields, **more})


def spec_maker(cache: Path, does: dict[int, str] | None = None) -> MakeSpec:
    """Makes specs of trials that do as they are told."""

    def spec(directory: Path, **trial: Any) -> TrialSpec:
        config = {
            "suite": "made_up",
            "case": "numbers",
            "host": {"cache_dir": str(cache)},
            "does": {str(number): what for number, what in (does or {}).items()},
        }
        paths = (str(ROOT),)
        return TrialSpec(("", ""), "none", "", config, str(directory), paths, **trial)

    return spec


def search(
    folder: Path,
    settled: SearchSettings,
    does: dict[int, str] | None = None,
    launcher: Launcher | None = None,
    networks: Networks | None = None,
    tell: Callable[[Progress], None] = lambda _: None,
) -> State:
    """A search in a folder, or the rest of one."""
    spec, launched = spec_maker(folder.parent / "cache", does), launcher or LocalLauncher()
    journal = Journal(folder)
    try:
        study = Study(folder, settled.ranges, settled.seed, settled.startup)
        driver = Driver(folder, journal, settled, networks or Numbers(), study, launched, spec, tell, STUB)
        return driver.run(describe_host().model_dump(), "0")
    finally:
        journal.close()


@contextlib.contextmanager
def session(*arguments: str, as_users_do: bool = False, **variables: str) -> Iterator[subprocess.Popen[str]]:
    """`python -m pytest ARGUMENTS`, forked unless it is started as users do; it has ended at the end."""
    words = [*arguments, "-p", "no:cacheprovider"]
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST_")} | variables
    forked = None if as_users_do else fork_session(ROOT, words, environment | SETTLED)
    running = cast(subprocess.Popen[str] | None, forked) or subprocess.Popen(
        [sys.executable, "-m", "pytest", *words],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        yield running
    finally:
        end_group(running)
        if running.stdout:
            running.stdout.close()


if __name__ == "__main__":
    if sys.argv[2] == "disk full":
        resource.setrlimit(resource.RLIMIT_FSIZE, (LARGEST, LARGEST))
    search(Path(sys.argv[1]), settings(4), {2: sys.argv[2]})
