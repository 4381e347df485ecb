"""A temporary directory for a test session and all that it starts, its hosts too: nothing is left in the user's."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from collections.abc import MutableMapping
from pathlib import Path

OWNER = "PROOFMARK_TESTS_TEMPORARY"
"""The variable with the directory, in the session's environment and its workers'."""


def take(environment: MutableMapping[str, str]) -> Path | None:
    """Make the session's directory, which goes with it; None where the session that started this one has.

    Pytest's own folders, of which it keeps the last three, stay where they were.
    """
    if OWNER in environment:
        return None
    environment.setdefault("PYTEST_DEBUG_TEMPROOT", tempfile.gettempdir())
    folder = tempfile.mkdtemp(prefix="pm-")  # short: sockets lie below
    environment.update({OWNER: folder, "TMPDIR": folder})
    tempfile.tempdir = folder
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)
