"""One browser for all tests, and a report to look at."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from reports.html import write_html
from tests.browser.chromium import Chromium
from tests.reports.records import CHEATED, make_record, watched, watched_record
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
    path = tmp_path_factory.mktemp("report") / "report.html"
    runs = [
        watched_record(),
        watched_record(case="cheater", checks=CHEATED, dishonest=("it answers from a cache",)),
        watched_record(case=long, vendor=EVIL, item="sequence", monitoring=disturbed, config={long: EVIL}),
        make_record(case="unwatched"),
    ]
    write_html(runs, path)
    return path
