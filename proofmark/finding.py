"""What is found by its name, as vendors and suites are: imported, or refused in one line."""

from __future__ import annotations

import importlib
import sys
import traceback
from collections.abc import Callable
from functools import lru_cache
from importlib.metadata import EntryPoints, entry_points
from pathlib import Path
from types import ModuleType

from proofmark.errors import UsageError, named


def installed(group: str) -> EntryPoints:
    """What packages of others that are installed have under the name of a group. All of them are looked at once."""
    return _all(tuple(sys.path))(group=group)


@lru_cache(maxsize=1)
def _all(path: tuple[str, ...]) -> Callable[..., EntryPoints]:
    return entry_points().select


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
        frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith("<")]
        own = bool(frames) and frames[-1].filename not in (__file__, importlib.__file__)
        file, line = (frames[-1].filename, frames[-1].lineno) if own else (None, 0)
        if isinstance(error, SyntaxError):
            file, line = error.filename or file, error.lineno or line
        place = f" ({file}:{line})" if file else ""
        raise UsageError(f"{what} cannot be imported: {named(error)}{place}") from None


def place_in(folder: Path, error: BaseException) -> tuple[Path, int] | None:
    """File and line below a folder where an import failed: the innermost; None where none is there."""
    places = [(frame.filename, frame.lineno) for frame in traceback.extract_tb(error.__traceback__)]
    if isinstance(error, SyntaxError):
        places.append((error.filename or "", error.lineno))
    within = [(Path(file), line or 0) for file, line in places if Path(file).is_relative_to(folder)]
    return within[-1] if within else None
