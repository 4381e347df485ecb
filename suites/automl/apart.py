"""Whether held-out images are among those that are trained on."""

from __future__ import annotations

import os
import random
from collections import defaultdict
from filecmp import cmp
from pathlib import Path

from proofmark.errors import StepError

CLASSES = 100
"""Classes that are looked at, drawn anew each time: of all of ImageNet's images the sizes alone take minutes."""

MOST = 0.02
"""Of the held-out images, that may be others' equals by chance: ImageNet's own collectors missed a few."""


def hold_apart(train: Path, held_out: Path) -> None:
    """Compare files of a class that are as long as one another, byte by byte.

    Raises:
        StepError: more than a few of the held-out images are among those to train on; or one can't be read.
    """
    seen, known = 0, list[str]()
    try:
        classes = sorted(entry.name for entry in os.scandir(held_out) if entry.is_dir())
        for name in random.SystemRandom().sample(classes, min(CLASSES, len(classes))):
            there = _by_size(train / name)
            for path in (path for paths in _by_size(held_out / name).values() for path in paths):
                seen += 1
                if any(cmp(path, other, shallow=False) for other in there.get(path.stat().st_size, ())):
                    known.append(str(path))
    except OSError as error:
        raise StepError(f"{error.filename}: {error.strerror}") from None
    if len(known) > MOST * seen:
        found = f"{len(known)} of {seen} images that were looked at are in {train} too, such as {known[0]}"
        raise StepError(f"The held-out images in {held_out} are not apart: {found}.")


def _by_size(folder: Path) -> dict[int, list[Path]]:
    """Files of a folder by their length; of a folder that is not there none."""
    found = defaultdict[int, list[Path]](list)
    if folder.is_dir():
        for entry in os.scandir(folder):
            if entry.is_file():
                found[entry.stat().st_size].append(Path(entry.path))
    return found
