"""COCO's layout: what is read, and what is refused."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from PIL import Image

from proofmark.errors import StepError
from suites.data.images import coco
from suites.data.images.loaders import detection_loader
from suites.data.loading import BatchLoader
from tests.suites.conftest import config_of

IMAGES = [("a.jpg", 40, 20), ("b.png", 10, 30), ("c.jpg", 16, 16)]
OBJECTS = [(7, 1, [4.0, 2.0, 20.0, 10.0], 0), (7, 3, [0.0, 0.0, 40.5, 20.0], 1), (9, 2, [1, 3, 2, 6], 0)]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Three images, of which the last has no objects; listed out of order."""
    folder = tmp_path / "coco"
    (folder / "val2017").mkdir(parents=True)
    (folder / "annotations").mkdir()
    for name, width, height in IMAGES:
        Image.new("RGB", (width, height), (255, 0, 0)).save(folder / "val2017" / name)
    ids = {"a.jpg": 7, "b.png": 9, "c.jpg": 12}
    described = [
        {"id": ids[name], "file_name": name, "width": width, "height": height, "license": 1}
        for name, width, height in reversed(IMAGES)
    ]
    objects = [
        {"id": number, "image_id": image, "category_id": category, "bbox": box, "iscrowd": crowd, "segmentation": []}
        for number, (image, category, box, crowd) in enumerate(OBJECTS)
    ]
    write(folder, {"info": {}, "images": described, "annotations": objects, "categories": []})
    return folder


def file_of(root: Path) -> Path:
    return root / "annotations" / "instances_val2017.json"


def write(root: Path, content: Any) -> None:
    file_of(root).write_text(json.dumps(content))


def changed(root: Path, change: Callable[[Any], object]) -> None:
    content = json.loads(file_of(root).read_text())
    change(content)
    write(root, content)


def loader_of(root: Path, **values: Any) -> BatchLoader:
    values = {"classes": 4, "image_size": [8, 12], "batch_size": 2, "num_workers": 0} | values
    return detection_loader(config_of("yolos", "standard", host={"data_dir": str(root)}, **values), "validation")


def test_images_are_scaled_and_boxes_are_shares_of_them(root: Path) -> None:
    loader = loader_of(root, mean=[0.5] * 3, std=[0.5] * 3)
    (first, objects), (last, none) = list(loader)
    assert first[0].shape == (2, 3, 8, 12) and last[0].shape == (1, 3, 8, 12)
    assert first[0][1, :, 4, 6].tolist() == pytest.approx([1, -1, -1])
    assert objects[0].tolist() == [
        pytest.approx([1, 0.35, 0.35, 0.5, 0.5, 0]),
        pytest.approx([3, 20.25 / 40, 0.5, 40.5 / 40, 1, 1]),
    ]
    assert objects[1].tolist() == [pytest.approx([2, 0.2, 0.2, 0.2, 0.2, 0]), [-1, 0, 0, 0, 0, 0]]
    assert none[0, :, 0].tolist() == [-1, -1]
    assert loader.dataset.identity.items == len(loader.dataset) == 3


def test_identity_follows_annotations_and_images(root: Path, tmp_path: Path) -> None:
    first = loader_of(root).dataset.identity.sha256
    copy = shutil.copytree(root, tmp_path / "elsewhere")
    assert loader_of(copy).dataset.identity.sha256 == first
    changed(copy, lambda content: content["annotations"][0]["bbox"].__setitem__(0, 5.0))
    second = loader_of(copy).dataset.identity.sha256
    Image.new("RGB", (40, 20)).save(copy / "val2017" / "a.jpg")
    assert len({first, second, loader_of(copy).dataset.identity.sha256}) == 3


REFUSED: dict[str, tuple[Callable[[Any], object], str]] = {
    "captions": (lambda c: c["annotations"][0].pop("bbox"), r"not COCO's instances: annotations\.0\.bbox: Field requi"),
    "results": (lambda c: c.pop("images"), r"images: Field required"),
    "empty": (lambda c: c["images"].clear(), r"images: List should have at least 1 item"),
    "twice": (lambda c: c["images"].append(c["images"][0]), r"damaged: images: two have the same id"),
    "no such image": (lambda c: c["annotations"][1].update(image_id=8), r"annotations\.1: there is no image 8"),
    "no class": (
        lambda c: c["annotations"][2].update(category_id=4),
        r"annotations\.2: category_id is 4, expected 0 to 3",
    ),
    "text": (
        lambda c: c["annotations"][0].update(category_id="1"),
        r"annotations\.0\.category_id: Input should be a val",
    ),
    "negative": (
        lambda c: c["annotations"][0].update(bbox=[4, 2, -20, 10]),
        r"bbox\.2: Input should be greater than or",
    ),
    "before": (lambda c: c["annotations"][0].update(bbox=[-9, 2, 20, 10]), r"\[-9.0, 2.0, 20.0, 10.0\] reaches beyond"),
    "beyond": (lambda c: c["annotations"][2].update(bbox=[1, 3, 2, 60]), r"its image of 10x30 pixels"),
    "NaN": (
        lambda c: c["annotations"][0].update(bbox=[math.nan, 2, 3, 4]),
        r"bbox\.0: Input should be a finite number",
    ),
    "three": (lambda c: c["annotations"][0].update(bbox=[1, 2, 3]), r"annotations\.0\.bbox\.3: Field required"),
    "crowd": (lambda c: c["annotations"][0].update(iscrowd=2), r"annotations\.0\.iscrowd: Input should be less than"),
    "path": (lambda c: c["images"][0].update(file_name="../../x.jpg"), r"images\.0\.file_name: String should match"),
    "huge image": (lambda c: c["images"][0].update(width=1 << 40), r"images\.0\.width: Input should be less than"),
    "crowded": (lambda c: c["annotations"].extend([c["annotations"][0]] * 1000), r"an image has 1002 objects"),
    "many": (lambda c: [a.update(image_id=1) for a in c["annotations"] * 2], r"annotations\.2: there is no image 1\."),
}


@pytest.mark.parametrize("change, expected", REFUSED.values(), ids=REFUSED.keys())
def test_annotations_that_are_not_what_they_should_be(
    root: Path, change: Callable[[Any], object], expected: str
) -> None:
    changed(root, change)
    with pytest.raises(StepError, match=expected) as refused:
        loader_of(root)
    assert str(file_of(root)) in str(refused.value) and "\n" not in str(refused.value)


@pytest.mark.parametrize(
    "content", [b"", b"{", b'{"images": [', b"\xff\xfe{}", b"[]", b"7", b"[" * 100_000, b'{"images": 1e999}']
)
def test_a_file_that_is_no_instances(root: Path, content: bytes) -> None:
    file_of(root).write_bytes(content)
    with pytest.raises(StepError, match="is not COCO's instances") as refused:
        loader_of(root)
    assert "\n" not in str(refused.value)


def test_a_huge_file_is_not_read(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coco, "LARGEST", 100)
    with pytest.raises(StepError, match=r"instances_val2017\.json is larger than"):
        loader_of(root)


def test_another_layout_is_told_what_is_expected(root: Path) -> None:
    with pytest.raises(
        StepError, match=r"cannot be read \(No such file.*expected val2017/\*\.jpg and annotations/inst"
    ):
        loader_of(root / "val2017")


def test_missing_images_are_named(root: Path) -> None:
    (root / "val2017" / "a.jpg").unlink()
    (root / "val2017" / "c.jpg").unlink()
    with pytest.raises(StepError, match=r"lacks images that instances_val2017.json describes: a\.jpg, c\.jpg of 3"):
        loader_of(root)


@pytest.mark.parametrize("workers", [0, 1])
def test_an_image_that_is_broken_or_another_one(root: Path, workers: int) -> None:
    loader = loader_of(root, num_workers=workers)
    (root / "val2017" / "b.png").write_bytes(b"no image")
    with pytest.raises(StepError, match=r"b\.png cannot be decoded"):
        list(loader)
    Image.new("RGB", (30, 10)).save(root / "val2017" / "b.png")
    with pytest.raises(StepError, match=r"b\.png does not match .*they say 10x30 pixels, the image has 30x10"):
        list(loader)


def test_it_is_loaded_in_order_by_workers_too(root: Path) -> None:
    here, there = list(loader_of(root)), list(loader_of(root, num_workers=2))
    assert all(torch.equal(one[1], other[1]) for one, other in zip(here, there, strict=True))
    assert all(torch.equal(one[0][0], other[0][0]) for one, other in zip(here, there, strict=True))
