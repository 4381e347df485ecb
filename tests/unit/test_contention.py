"""Who computes beside this process."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest

from proofmark.monitoring.contention import ContentionMeter

pytestmark = pytest.mark.quiet

SPIN = "import time; end = time.monotonic() + 3\nwhile time.monotonic() < end: pass"
ALONE = f"import os\nif os.fork(): os._exit(0)\n{SPIN}"
"""Nobody's child any more."""


@pytest.fixture(autouse=True)
def one_core(monkeypatch: pytest.MonkeyPatch) -> None:
    """A share is one of one core."""
    monkeypatch.setattr("os.cpu_count", lambda: 1)


def test_a_child_of_this_process_is_none_of_the_others_alive_or_waited_for() -> None:
    meter = ContentionMeter(os.getpid())
    child = subprocess.Popen([sys.executable, "-c", SPIN])
    time.sleep(1)
    alive = meter.seen().others
    child.kill()
    child.wait()
    assert alive < 0.5 and meter.seen().others < 0.5


def test_others_are() -> None:
    subprocess.run([sys.executable, "-c", ALONE], check=True, timeout=10)
    meter = ContentionMeter(os.getpid())
    time.sleep(1)
    assert meter.seen().others > 0.5
