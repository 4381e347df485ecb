"""An exception as a step's outcome tells of it."""

from __future__ import annotations

import os
import traceback
from collections.abc import Collection
from pathlib import Path

from proofmark.errors import first_line
from proofmark.literal import short

LONGEST = {"message": 700, "reason": 1000, "detail": 20_000}
"""Characters of a failure that are kept."""


def failure_text(error: BaseException, own: Collection[Path], root: Path | None = None, walled: bool = False) -> str:
    """Its first line, the last place in code below one of the `own` directories, and where the rest is.

    Paths are relative to `root`, by default the working directory. `walled` is whether it came from behind a wall, for
    which something may not have been permitted.
    """
    first = first_line(error)[: LONGEST["message"]]
    files = [(Path(frame.filename), frame.lineno) for frame in traceback.extract_tb(error.__traceback__)]
    places = [f"{short(file, root)}:{line}, " for file, line in files if any(map(file.resolve().is_relative_to, own))]
    hint = "; docs/isolation.md: what is open behind the wall, and how a vendor asks for more"
    wall = hint if walled and _not_permitted(error) else ""
    return f"{type(error).__name__}: {first} ({places[-1] if places else ''}traceback in worker.log{wall})"


def _not_permitted(error: BaseException | None) -> bool:
    """Whether it is of that kind, or comes from one that is; so is what is missed in a home that is not the user's."""
    home = os.environ.get("HOME")
    missed = isinstance(error, FileNotFoundError) and home and str(error.filename).startswith(f"{home}/")
    return error is not None and (
        isinstance(error, PermissionError) or bool(missed) or _not_permitted(error.__cause__ or error.__context__)
    )
