"""One browser for all tests, and a report to look at."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.record import Chip, Peak, Utilisation
from reports.html import write_html
from tests.browser.chromium import Chromium
from tests.reports.records import CHEATED, make_record, readings, watched, watched_record
from tests.services import program

EVIL = "<img src=https://example.com/x onerror=console.error(1)><script>console.error(2)</script>"


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chromium]:
    """A headless Chromium."""
    chromium = Chromium(program("chromium", "apt-get install chromium"), tmp_path_factory.mktemp("profile"))
    yield chromium
    chromium.close()


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
    write_html(runs, path)
    return path
