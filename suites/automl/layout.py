"""What can be seen of a folder of images at once: whether those to judge a search by have the others' classes, and are
none of them.

Who looked only when the held-out images are needed would find out in the end, after hours.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from proofmark.errors import Problem, StepError
from proofmark.literal import some
from proofmark.rules.config import EffectiveConfig
from suites.automl.apart import hold_apart

OPTION = "--data-dir"
NAMED = 5
"""Classes that a message names."""


def layout_problems(config: EffectiveConfig) -> list[Problem]:
    """What is wrong with the folders train and val; nothing where the images are elsewhere, or are no folder's."""
    if config.get("dataset") != "image_folder" or config.host.data_dir is None:
        return []
    root = Path(config.host.data_dir)
    try:
        filled, empty = zip(*(_classes(root / part) for part in ("train", "val")), strict=True)
    except OSError as error:
        what = f"{error.filename}: {error.strerror}; expected train and val, each with one folder of images per class"
        return [Problem(OPTION, "", what)]
    if (root / "train").samefile(root / "val"):
        return [Problem(OPTION, "", f"{root}: train and val are one folder; expected held-out images in val")]
    found = list(_wrong(root, config.classes, filled, empty)) or _together(root)
    return [Problem(OPTION, "", what) for what in found]


def _together(root: Path) -> list[str]:
    """Whether held-out images are among those to train on; the examination looks once more, at other classes."""
    try:
        hold_apart(root / "train", root / "val")
    except StepError as error:
        return [str(error)]
    return []


def _wrong(root: Path, classes: int, filled: tuple[set[str], ...], empty: tuple[set[str], ...]) -> Iterator[str]:
    for part, found, without in zip(("train", "val"), filled, empty, strict=True):
        if without:
            yield f"{root / part}: no images of class {_named(without)}"
        elif len(found) != classes:
            yield f"{root / part}: images of {len(found)} classes; expected {classes}"
    train, val = (found | without for found, without in zip(filled, empty, strict=True))
    if len(train) == len(val) and train != val:
        yield f"{root / 'val'}: has class {_named(val - train)}, which {root / 'train'} has not"


def _classes(folder: Path) -> tuple[set[str], set[str]]:
    """Names of classes that have files, and of those that have none."""
    with os.scandir(folder) as entries:
        names = {entry.name: _has_any(entry.path) for entry in entries if entry.is_dir()}
    return {name for name, full in names.items() if full}, {name for name, full in names.items() if not full}


def _has_any(folder: str) -> bool:
    with os.scandir(folder) as entries:
        return any(True for _ in entries)


def _named(names: set[str]) -> str:
    return some(sorted(names), NAMED)
