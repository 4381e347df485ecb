"""A data set with missing classes is refused before anything is searched."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from PIL import Image

from proofmark.errors import StepError
from proofmark.rules.config import EffectiveConfig, HostSettings
from suites.automl.apart import hold_apart
from suites.automl.data import EVERY_OF_FOLDER, search_dataset
from suites.automl.layout import layout_problems
from suites.data.images.image_folder import ImageFolder

GOOD = ("train/cat/1.png", "train/dog/1.png", "val/cat/2.png", "val/dog/2.png")
EMPTY = "nothing"
"""A file that is not made, though its folder is."""


def problems(root: Path, *files: str) -> list[str]:
    for name in files:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        if not name.endswith(EMPTY):
            (root / name).write_text(Path(name).name)
    host = HostSettings(data_dir=str(root))
    config = EffectiveConfig("automl", "c", "standard", "cpu", {"dataset": "image_folder", "classes": 2}, {}, host=host)
    return [str(problem) for problem in layout_problems(config)]


def test_folders_with_the_same_classes_are_taken(tmp_path: Path) -> None:
    assert problems(tmp_path, *GOOD) == []


def test_held_out_images_that_are_those_to_train_on_are_refused(tmp_path: Path) -> None:
    for name in GOOD[:2]:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "val").symlink_to("train")
    assert problems(tmp_path) == [
        f"--data-dir: {tmp_path}: train and val are one folder; expected held-out images in val"
    ]


def test_copies_among_the_held_out_are_refused_before_a_search(tmp_path: Path) -> None:
    (message,) = problems(tmp_path, *GOOD[:2], *(name.replace("train", "val") for name in GOOD[:2]))
    assert "not apart: 2 of 2 images" in message and message.startswith("--data-dir: ")


def test_trials_are_chosen_by_images_cut_as_those_that_the_best_is_judged_by(tmp_path: Path) -> None:
    folder = tmp_path / "train" / "cat"
    folder.mkdir(parents=True)
    for number in range(EVERY_OF_FOLDER):
        Image.effect_noise((48, 40), 99).save(folder / f"{number:02d}.png")
    parameters: dict[str, Any] = {"dataset": "image_folder", "classes": 1, "resize": 32, "image_size": 24, "seed": 0}
    parameters |= {"mean": [0.5] * 3, "std": [0.5] * 3}
    config = EffectiveConfig(
        "automl", "c", "standard", "cpu", parameters, {}, host=HostSettings(data_dir=str(tmp_path))
    )
    ([chosen_by], _), whole = search_dataset(config, "search").batch([0]), folder.parent
    ([judged], _) = ImageFolder(str(whole), 1, 32, 24, [0.5] * 3, [0.5] * 3).batch([EVERY_OF_FOLDER - 1])
    assert torch.equal(chosen_by, judged)


def test_copies_of_images_to_train_on_are_not_held_out(tmp_path: Path) -> None:
    def fill(part: str, *contents: bytes) -> Path:
        folder = tmp_path / part / "cat"
        folder.mkdir(parents=True)
        for number, content in enumerate(contents):
            (folder / f"{part}{number}.png").write_bytes(content)
        return folder.parent

    train = fill("train", *(b"%04d" % number for number in range(200)))
    hold_apart(train, fill("apart", *(b"%04d" % number for number in range(300, 400))))
    hold_apart(train, fill("almost", *(b"%04d" % number for number in range(198, 298))))
    known = fill("known", *(b"%04d" % number for number in range(197, 297)))
    with pytest.raises(
        StepError, match=r"not apart: 3 of 100 images .* are in .*/train too, such as .*/known/cat/known"
    ):
        hold_apart(train, known)
    with pytest.raises(StepError, match="nowhere: No such file or directory$"):
        hold_apart(train, tmp_path / "nowhere")


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
    (message,) = problems(tmp_path, *files)
    assert message.startswith("--data-dir: ") and reason in message
