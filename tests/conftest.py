"""In CI a skip is a failure: what could not be tested there must not pass for tested."""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Generator, Iterator
from pathlib import Path

import hypothesis
import pytest

from proofmark.process.environment import quiet_environment, tidy_environment
from proofmark.process.warm import modules
from tests import temporary
from tests.disks import MakeDisk, disk_maker
from tests.services import STRICT

gc.disable()  # until all is collected: there is little garbage in what is imported

# how fast this machine is does not decide over a test
hypothesis.settings.register_profile(
    "slow machines", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("slow machines")

# read when ONNX Runtime is imported, by tests before any vendor; it writes to ~/.cache/Microsoft otherwise
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")

TEMPORARY = temporary.take(os.environ)

TREE = Path(__file__).parents[1]
THERE = {*TREE.iterdir()}
CACHES = frozenset(
    {".cache", ".hypothesis", ".pytest_cache", "baselines"}
)  # the last: pytest-benchmark's, until the end

# torch's threads wait for each other by spinning, which is fast alone; where threads outnumber the cores, each keeps
# the others from what it waits for: three small trainings side by side took twenty times as long
os.environ.setdefault("GOMP_SPINCOUNT", "1000")

# compile caches go to .cache, not to /tmp
os.environ |= tidy_environment(TREE / ".cache")

# sessions in tests run side by side, on devices that are stubs, and wait for none of the others
os.environ["PROOFMARK_DEVICE_WAIT"] = "off"

# a shell ignores Ctrl-C for what it runs in the background, and so would every session that is interrupted in a test
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def make_disk(tmp_path: Path) -> Iterator[MakeDisk]:
    """What makes a file system of so many KiB."""
    with disk_maker(tmp_path / "disk") as make:
        yield make


@pytest.fixture(scope="module")
def warm(request: pytest.FixtureRequest) -> None:
    """What a module's tests start is forked from a process that has imported its IMPORTED, as in a session."""
    modules.warm_up(request.module.IMPORTED, quiet_environment())


@pytest.fixture(autouse=True, scope="module")
def nothing_stays_warm() -> Iterator[None]:
    """Another module's tests may look at what is started from nothing, as its command line."""
    yield
    if modules._warm:
        modules._warm.close()


@pytest.fixture(autouse=True)
def imports_find_the_same() -> Iterator[None]:
    """A test that leaves another environment behind has all later sessions started from nothing: minutes, in all."""
    from tests.e2e.forked_session import early  # now: what it takes for the tests' own environment is settled above

    before = early(os.environ)
    yield
    assert early(os.environ) == before, "a variable that imports look at was left changed"


FREEZE = gc.freeze


def pytest_collection_finish() -> None:
    """Nobody else decides what collections of garbage walk over."""
    gc.enable()
    vars(gc).update(freeze=lambda: None, unfreeze=lambda: None)


@pytest.fixture(autouse=True, scope="module")
def loaded_by_now() -> None:
    """Leave it out of all collections, whatever tests ask for: rounds and trainings begin with one, which would walk
    over all that the modules and tests before have left, for a second and more."""
    gc.collect()
    FREEZE()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Name what tests have left behind. It goes with the session; in a user's directory it would stay."""
    if TEMPORARY is not None and (left := sorted(path.name for path in TEMPORARY.iterdir())):
        terminalreporter.line(f"left in the temporary directory by tests: {', '.join(left)}", yellow=True)
    if left := sorted(path.name for path in {*TREE.iterdir()} - THERE if path.name not in CACHES):
        terminalreporter.line(f"left in the source tree by tests: {', '.join(left)}", yellow=True)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Turn a skip into a failure where PROOFMARK_SKIPS_FAIL is 1."""
    report = yield
    if report.skipped and not hasattr(report, "wasxfail") and os.environ.get(STRICT) == "1":
        report.outcome = "failed"
        report.longrepr = f"skipped where every service should be: {report.longrepr}"
    return report
