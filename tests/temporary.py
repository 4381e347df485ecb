"""A temporary directory for a test session and all that it starts, its hosts too: nothing is left in the user's."""

from __future__ import annotations

import atexit
import contextlib
import getpass
import shutil
import tempfile
from collections.abc import MutableMapping
from pathlib import Path

OWNER = "PROOFMARK_TESTS_TEMPORARY"
"""The variable with the directory, in the session's environment and its workers'."""


def take(environment: MutableMapping[str, str]) -> Path | None:
    """Make the session's directory, which goes with it; None where the session that started this one has.

    Pytest's own folder stays where it was, and in it those of tests that fail.
    """
    if OWNER in environment:
        return None
    root = Path(environment.setdefault("PYTEST_DEBUG_TEMPROOT", tempfile.gettempdir()))
    folder = tempfile.mkdtemp(prefix="pm-")  # short: sockets lie below
    environment.update({OWNER: folder, "TMPDIR": folder})
    tempfile.tempdir = folder
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    atexit.register(_remove_empty, root / f"pytest-of-{getpass.getuser()}")
    return Path(folder)


def _remove_empty(folder: Path) -> None:
    with contextlib.suppress(OSError):  # tests have failed, or others run
        folder.rmdir()
