"""A plugin of a session, `-p tests.automl.stops_at`: its search stands still at an event of its journal, or is killed
there, however long whoever looks at it takes to see that."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

PLUGIN = ("-p", "tests.automl.stops_at")

AT, UNTIL = "SEARCH_STOPS_AT", "SEARCH_STOPS_UNTIL"
"""The variables with the event's kind, which is in the journal by then, and with the file for which it is waited for;
without the latter the session is killed."""


def pytest_configure() -> None:
    """Before there is a search."""
    from proofmark.automl.search.journal import Journal

    write, path = Journal.write, os.environ.get(UNTIL)

    def written(journal: Journal, kind: str, /, **fields: Any) -> Any:
        event = write(journal, kind, **fields)
        if kind == os.environ[AT]:
            if path is None:
                os.kill(os.getpid(), signal.SIGKILL)
            while not Path(str(path)).exists():
                time.sleep(0.02)
        return event

    Journal.write = written  # type: ignore[method-assign]
