"""Folders that anybody may have written, walked through: however deep they are, nobody falls over."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

DEEPEST = 64
"""Folders in one another that are entered."""


def files_below(folder: Path) -> Iterator[Path]:
    """All that is no folder; links are not followed, and what is deeper than anybody's files are is left out."""
    for here, _, files in _walked(folder):
        yield from (here / file for file in files)


def too_deep(folder: Path) -> Path | None:
    """A folder, the deepest that is entered, with others in it; None where there is none."""
    return next((here for here, folders, _ in _walked(folder) if folders and _depth(here, folder) >= DEEPEST), None)


def _walked(folder: Path) -> Iterator[tuple[Path, list[str], list[str]]]:
    for here, folders, files in os.walk(folder):
        yield Path(here), [*folders], files
        if _depth(Path(here), folder) >= DEEPEST:
            folders.clear()


def _depth(here: Path, folder: Path) -> int:
    return len(here.parts) - len(folder.parts)


def make_folder(folder: Path) -> None:
    """A folder and those that it lies in, however many.

    Raises:
        OSError: one can't be made.
    """
    missing = []
    while not folder.is_dir():
        missing.append(folder)
        folder = folder.parent
    for each in reversed(missing):
        each.mkdir(exist_ok=True)
