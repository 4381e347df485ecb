"""The standard images: what is read, and what is refused."""

from __future__ import annotations

import random
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from PIL import Image

from proofmark.errors import StepError
from proofmark.training.feeding.loading import RankLoader
from suites.data.images.image_folder import random_box
from suites.data.images.loaders import image_dataset, image_loader
from suites.data.loading import BatchDataset, BatchLoader
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


def test_a_dataset_that_nobody_knows_is_told_as_that() -> None:
    with pytest.raises(StepError, match="unknown dataset 'digit': there are digits, image_folder; did you mean 'dig"):
        image_loader(config_of("resnet50", "embedded", dataset="digit"), "validation")


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


def to_train_on(root: Path, split: str = "train", **values: Any) -> BatchDataset:
    sizes = {"classes": 3, "resize": 32, "image_size": 24}
    host = {"data_dir": str(root)}
    return image_dataset(config_of("resnet50", "standard", host=host, suite="training", **sizes | values), split)


@pytest.fixture
def splits(images: Path) -> Path:
    shutil.copytree(images, images.parent / "train")
    return images.parent


def test_what_is_cut_changes_with_the_epoch_and_comes_again_from_any_worker(splits: Path) -> None:
    data, again = to_train_on(splits), to_train_on(splits)

    def epochs(data: BatchDataset, workers: int = 0) -> list[torch.Tensor]:
        loader, lists = RankLoader(data, workers), [[0, 1, 2], [3, 4], [5, 6]]
        return [torch.cat([inputs[0] for inputs, _ in loader.load(lists, number)]) for number in range(3)]

    first = epochs(data)
    assert first[0].shape == (7, 3, 24, 24)
    assert not torch.equal(first[0], first[1]) and not torch.equal(first[1], first[2])
    assert all(map(torch.equal, epochs(again, workers=2), first))
    assert not torch.equal(epochs(to_train_on(splits, seed=1))[0], first[0])


def test_validation_cuts_the_middle_in_every_epoch(splits: Path) -> None:
    data = to_train_on(splits, "validation")
    [first], labels = data.batch([0, 5])
    data.epoch = 3
    assert torch.equal(data.batch([0, 5])[0][0], first)
    assert labels.tolist() == [0, 2]


def test_half_of_the_images_are_mirrored(tmp_path: Path) -> None:
    (tmp_path / "train" / "only").mkdir(parents=True)
    image = Image.new("RGB", (64, 64))
    image.putdata([(4 * (at % 64), 0, 0) for at in range(64 * 64)])
    image.save(tmp_path / "train" / "only" / "a.png")
    data = to_train_on(tmp_path, classes=1)
    mirrored = 0
    for data.epoch in range(200):
        [pixels], _ = data.batch([0])
        mirrored += bool(pixels[0, 0, 12, 0] > pixels[0, 0, 12, -1])
    assert 70 < mirrored < 130


@pytest.mark.parametrize("size", [(500, 375), (24, 24), (1000, 20), (3, 400), (1, 1)])
def test_random_parts_lie_within_the_image(size: tuple[int, int]) -> None:
    draw = random.Random(0)
    areas, aspects = [], []
    for _ in range(300):
        left, upper, right, lower = random_box(*size, draw)
        assert 0 <= left < right <= size[0] and 0 <= upper < lower <= size[1]
        areas.append((right - left) * (lower - upper) / (size[0] * size[1]))
        aspects.append((right - left) / (lower - upper))
    if size == (500, 375):
        assert 0.07 < min(areas) < 0.15 and max(areas) > 0.8
        assert 0.74 < min(aspects) < 0.8 and 1.25 < max(aspects) < 1.35


def test_identity_of_images_to_train_on_is_of_names_and_sizes(splits: Path) -> None:
    first = to_train_on(splits).identity
    assert first.items == 7 and "names and sizes" in first.origin
    with (splits / "train" / "n01" / "a.JPEG").open("ab") as stream:
        stream.write(b"\0")
    assert to_train_on(splits).identity.sha256 != first.sha256


def test_a_training_needs_both_folders(images: Path) -> None:
    with pytest.raises(StepError, match="has no folder train; expected train and val, each with the images, one"):
        to_train_on(images.parent)
