"""Services that a test needs and a machine may lack: a browser, an sshd, a container engine, a device."""

from __future__ import annotations

import os
import shutil
from typing import NoReturn

import pytest

STRICT = "PROOFMARK_SKIPS_FAIL"
"""Set to 1 where everything is installed, as in CI: then a test that cannot run fails."""


def missing(what: str) -> NoReturn:
    """Skip the running test or fixture because `what` is missing; fail it if PROOFMARK_SKIPS_FAIL is 1.

    A skipped test is silent: on a machine that should have every service, one that lacks it must not pass for tested.

    Args:
        what: one line that names the service and, if it helps, how to get it: "chromium (apt-get install chromium)".
    """
    reason = f"missing: {what}"
    if os.environ.get(STRICT) == "1":
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)


def program(name: str, hint: str = "") -> str:
    """The path of an executable, or the end of the test that needs it, as `missing` has it."""
    return shutil.which(name) or missing(f"{name} ({hint})" if hint else name)
