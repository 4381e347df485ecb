"""The standard images: what is read, and what is refused."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from PIL import Image

from harness.errors import StepError
from suites.data.images import image_loader
from suites.data.loading import BatchLoader
from tests.suites.conftest import config_of


def loader_of(root: Path | None, split: str = "validation", **values: Any) -> BatchLoader:
    sizes = {"classes": 3, "resize": 32, "image_size": 24, "num_workers": 0, "batch_size": 3}
    host = {"data_dir": None if root is None else str(root)}
    return image_loader(config_of("resnet50", "standard", host=host, **sizes | values), split)


@pytest.mark.parametrize("workers", [0, 2])
def test_every_image_comes_once_with_its_folders_index(images: Path, workers: int) -> None:
    batches = list(loader_of(images, num_workers=workers))
    assert [tuple(inputs[0].shape) for inputs, _ in batches] == [(3, 3, 24, 24), (3, 3, 24, 24), (1, 3, 24, 24)]
    assert torch.cat([targets for _, targets in batches]).tolist() == [0, 0, 0, 1, 1, 2, 2]


def test_the_centre_is_cropped_and_normalised(tmp_path: Path) -> None:
    image = Image.new("RGB", (80, 40), (255, 0, 0))
    image.paste((0, 255, 0), (20, 0, 60, 40))
    (tmp_path / "only").mkdir()
    image.save(tmp_path / "only" / "a.png")
    [([pixels], _)] = loader_of(
        tmp_path, classes=1, resize=20, image_size=16, mean=[0.5, 0.5, 0.5], std=[0.5, 0.5, 0.5]
    )
    assert pixels[0, :, 8, 8].tolist() == [-1, 1, -1]
    assert (pixels[0, 1] == 1).all()


@pytest.mark.parametrize("size", [(24, 24), (57, 31), (31, 57), (5, 300)])
def test_any_shape_is_cropped_to_the_size(tmp_path: Path, size: tuple[int, int]) -> None:
    (tmp_path / "only").mkdir()
    Image.new("RGB", size).save(tmp_path / "only" / "a.png")
    [([pixels], _)] = loader_of(tmp_path, classes=1, resize=24, image_size=24)
    assert pixels.shape == (1, 3, 24, 24)


def test_identity_follows_name_and_content_not_the_place(images: Path, tmp_path: Path) -> None:
    first = loader_of(images).dataset.identity
    assert first.items == 7
    copy = shutil.copytree(images, tmp_path / "elsewhere")
    assert loader_of(copy).dataset.identity.sha256 == first.sha256
    (copy / "n01" / "a.JPEG").rename(copy / "n01" / "z.JPEG")
    renamed = loader_of(copy).dataset.identity.sha256
    (copy / "n01" / "b.jpg").write_bytes((copy / "n01" / "b.jpg").read_bytes()[:-1] + b"\0")
    changed = loader_of(copy).dataset.identity.sha256
    assert len({first.sha256, renamed, changed}) == 3


def test_missing_directory_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StepError, match=r"nowhere cannot be read \(No such file.*one folder per class"):
        loader_of(tmp_path / "nowhere")


def test_no_directory_is_refused() -> None:
    with pytest.raises(StepError, match="resnet50, profile standard, needs --data-dir"):
        loader_of(None)


def test_training_split_is_refused(images: Path) -> None:
    with pytest.raises(StepError, match="has no train split"):
        loader_of(images, split="train")


def test_images_without_class_folders_are_refused(images: Path) -> None:
    with pytest.raises(StepError, match="holds no images in class folders"):
        loader_of(images / "n01")


@pytest.mark.parametrize("name", ["val", "validation"])
def test_the_folder_above_is_told_where_the_class_folders_are(images: Path, name: str) -> None:
    images = images.rename(images.with_name(name))
    with pytest.raises(StepError, match=rf"one folder per class.*; did you mean {images}\?"):
        loader_of(images.parent)
    (images.parent / "train").mkdir()
    (images.parent / "train" / "a.png").touch()
    with pytest.raises(StepError, match=rf"2 class folders, expected 3; .*; did you mean {images}\?"):
        loader_of(images.parent)


def test_wrong_number_of_classes_is_refused(images: Path) -> None:
    with pytest.raises(StepError, match="holds 3 class folders, expected 1000"):
        loader_of(images, classes=1000)


def test_all_empty_class_folders_are_named(images: Path) -> None:
    for name in ("n00", "n04"):
        (images / name).mkdir()
    (images / "n04" / "notes.txt").write_text("no image")
    with pytest.raises(StepError, match="hold no images: n00, n04"):
        loader_of(images, classes=5)


def test_file_instead_of_directory_is_refused(images: Path) -> None:
    with pytest.raises(StepError, match="cannot be read"):
        loader_of(images / "n01" / "a.JPEG")


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("damage", ["truncated", "empty", "text"])
def test_undecodable_image_is_named_also_from_a_worker(images: Path, workers: int, damage: str) -> None:
    broken = images / "n02" / "a.JPEG"
    content = {"truncated": broken.read_bytes()[:300], "empty": b"", "text": b"not an image"}[damage]
    broken.write_bytes(content)
    with pytest.raises(StepError) as raised:
        list(loader_of(images, num_workers=workers))
    assert str(raised.value).startswith(f"The image {broken} cannot be decoded: ")
    assert str(raised.value).endswith("Replace or remove the file.")
    assert "Traceback" not in str(raised.value)
