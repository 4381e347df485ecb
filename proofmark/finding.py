"""What is found by its name, as vendors and suites are: imported, or refused in one line."""

from __future__ import annotations

import importlib
import traceback
from types import ModuleType

from proofmark.errors import UsageError


def imported(target: str, what: str) -> ModuleType:
    """Import a module of others.

    Args:
        target: its name.
        what: what people know it as.

    Raises:
        UsageError: it raises, or ends the process, while it is imported.
    """
    try:
        return importlib.import_module(target)
    except (Exception, SystemExit) as error:  # noqa: BLE001 (a module of others may raise anything)
        frames = traceback.extract_tb(error.__traceback__)
        file, line = (frames[-1].filename, frames[-1].lineno) if frames else (target, 0)
        if isinstance(error, SyntaxError):
            file, line = error.filename or file, error.lineno or line
        reason = str(error).splitlines()[0] if str(error) else ""
        raise UsageError(f"{what} cannot be imported: {type(error).__name__}: {reason} ({file}:{line})") from None
