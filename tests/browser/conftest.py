"""One browser for all tests, and a report to look at."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from proofmark.record.parts import Utilisation
from proofmark.record.provenance import Chip, Host, Peak
from proofmark.training.outcome.record import Communication, Rank, Split, TrainingRecord
from reports.html import write_html
from tests.browser.chromium import Chromium
from tests.reports.records import CHEATED, make_record, readings, watched, watched_record
from tests.services import program
from tests.suites_there import SUITES
from tests.training_records import make_run, make_training

EVIL = "<img src=https://example.com/x onerror=console.error(1)><script>console.error(2)</script>"


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chromium]:
    """A headless Chromium."""
    chromium = Chromium(program("chromium", "apt-get install chromium"), tmp_path_factory.mktemp("profile"))
    yield chromium
    chromium.close()


def trainings(long: str) -> list[TrainingRecord]:
    """A case at two scales: alone, and on two nodes with a hostile name, of which one is slow and breaks off."""
    talk = Communication(share=0.2, steps=7)
    ranks = [
        Rank(rank=n, node=n, steps=8, compute_seconds=10.0 + n, data_seconds=9.0 * n, communication=talk)
        for n in range(2)
    ]
    host = Host(name=long, system="Linux", processor="p", cores=2, memory_bytes=1 << 30)
    series = tuple(one.model_copy(update={"node": node}) for node in range(2) for one in readings(2))
    split = Split(init=5.0, data=1.0, compute=9.0, communication=2.0, evaluation=2.0, checkpoint=0.0, other=0.5)
    many = {"ranks": ranks, "nodes": (host, host.model_copy(update={"name": EVIL})), "split": split}
    run = make_run(passes=5, monitoring=watched(series=series), **many)
    return [
        make_training(make_run(monitoring=watched())),
        make_training(run, make_run(seed=1, **many), scale="2x1", nnodes=2, nproc=1),
    ]


@pytest.fixture(scope="session")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report with a run of every kind, among them one whose every name is hostile or too long."""
    long = "a_name_that_goes_on_and_on_" * 6
    disturbed = watched(throttled=("power cap",), foreign_processes=(4711,), failures=(long, EVIL))
    peak = Peak(flops_per_second=9.89e14, precision="fp16", source="datasheet", achievable=7.2e14)
    fast = Chip(name="fast", peak=peak, memory_bandwidth=4.8e12)
    path = tmp_path_factory.mktemp("report") / "report.html"
    runs = [
        watched_record(),
        watched_record(case="cheater", checks=CHEATED, dishonest=("it answers from a cache",)),
        watched_record(case=long, vendor=EVIL, item="sequence", monitoring=disturbed, config={long: EVIL}),
        make_record(case="unwatched"),
        watched_record(
            case="many", chip=fast, utilisation=Utilisation(mfu=0.71), monitoring=watched(series=readings(8))
        ),
        watched_record(case="slow", chip=fast, utilisation=Utilisation(mfu=0.004)),
        watched_record(case="unroofed", chip=fast.model_copy(update={"memory_bandwidth": None})),
    ]
    write_html([*runs, *trainings(long)], path, SUITES)
    return path
