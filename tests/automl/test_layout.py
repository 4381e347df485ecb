"""A data set with missing classes is refused before anything is searched."""

from __future__ import annotations

from pathlib import Path

import pytest

from proofmark.rules.config import EffectiveConfig, HostSettings
from suites.automl.layout import layout_problems

GOOD = ("train/cat/1.png", "train/dog/1.png", "val/cat/2.png", "val/dog/2.png")
EMPTY = "nothing"
"""A file that is not made, though its folder is."""


def problems(root: Path, *files: str) -> list[str]:
    for name in files:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        if not name.endswith(EMPTY):
            (root / name).touch()
    host = HostSettings(data_dir=str(root))
    config = EffectiveConfig("automl", "c", "standard", "cpu", {"dataset": "image_folder", "classes": 2}, {}, host=host)
    return [str(problem) for problem in layout_problems(config)]


def test_folders_with_the_same_classes_are_taken(tmp_path: Path) -> None:
    assert problems(tmp_path, *GOOD) == []


@pytest.mark.parametrize(
    ("files", "reason"),
    [
        (GOOD[:3], "val: images of 1 classes; expected 2"),
        ((*GOOD, "train/fox/1.png"), "train: images of 3 classes; expected 2"),
        ((*GOOD[:3], f"val/dog/{EMPTY}"), "val: no images of class dog"),
        ((*GOOD[:3], "val/fox/1.png"), "val: has class fox, which"),
        (GOOD[:2], "No such file or directory; expected train and val"),
    ],
)
def test_missing_classes_are_refused_in_a_line(tmp_path: Path, files: tuple[str, ...], reason: str) -> None:
    (told,) = problems(tmp_path, *files)
    assert told.startswith("--data-dir: ") and reason in told
