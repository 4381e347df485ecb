"""Folders that anybody may have written, walked through: however deep they are, nobody falls over."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

DEEPEST = 64
"""Folders in one another that are entered."""

RANKS_WRITE = ".proofmark-checkpoints"
"""A file that lies above what a vendor's ranks may write outside of their session's folder: nothing below that folder
is a session's."""


def files_below(folder: Path) -> Iterator[Path]:
    """All that is no folder; links are not followed, and what is deeper than anybody's files are is left out."""
    for here, _, files in _walked(folder):
        yield from (here / file for file in files)


def too_deep(folder: Path) -> Path | None:
    """A folder, the deepest that is entered, with others in it; None where there is none."""
    return next((here for here, folders, _ in _walked(folder) if folders and _depth(here, folder) >= DEEPEST), None)


def walk(
    top: Path, refused: Callable[[OSError], object] = lambda _: None
) -> Iterator[tuple[Path, list[str], list[str]]]:
    """Each folder, with the names of the folders and of all else in it, by name; those that are taken out of the first
    list are not entered. Links are not followed.

    As `os.walk`, which before Python 3.12 calls itself for each folder in another, until it falls over.

    Args:
        top: where it begins.
        refused: hears of what can't be read.
    """
    left = [top]
    while left:
        here = left.pop()
        try:
            with os.scandir(here) as entries:
                found = sorted((entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries)
        except OSError as error:
            refused(error)
            continue
        folders = [name for name, is_folder in found if is_folder]
        yield here, folders, [name for name, is_folder in found if not is_folder]
        left += [here / name for name in reversed(folders)]


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
