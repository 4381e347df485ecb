"""The files of a folder of images: which there are, in how little memory, and that they are identified as ever."""

from __future__ import annotations

import gc
import hashlib
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from proofmark.errors import StepError
from suites.data.images.files import ImageFiles, files_identity, sizes_of
from suites.data.images.listing import listed

NAMES = {
    "n02": ["b.JPEG", "a.jpg", "..png", "two.dots.PNG"],
    "n01": ["字.png", ".png", "none", "dot.", "notes.txt"],
    "n10": [f"{number}.JPEG" for number in range(1500)],
}
"""By folder; images are those that a path's suffix says so of."""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for folder, names in NAMES.items():
        (tmp_path / folder).mkdir()
        for number, name in enumerate(names):
            (tmp_path / folder / name).write_text(name * (number % 3))
    (tmp_path / "beside.png").touch()
    return tmp_path


def paths_of(root: Path) -> list[Path]:
    suffixes = {".jpeg", ".png", ".jpg"}
    folders = sorted(path for path in root.iterdir() if path.is_dir())
    return [path for folder in folders for path in sorted(folder.iterdir()) if path.suffix.lower() in suffixes]


def test_images_are_those_of_the_folders_in_order(root: Path) -> None:
    files, wanted = ImageFiles(root, 3), paths_of(root)
    labels = {"n01": 0, "n02": 1, "n10": 2}
    assert len(files) == len(wanted) == 1505
    assert list(files.paths()) == wanted
    assert [files[index] for index in range(len(files))] == [(path, labels[path.parent.name]) for path in wanted]
    for beyond in (-1, len(files)):
        with pytest.raises(IndexError):
            files[beyond]


def test_they_are_identified_as_records_have_it(root: Path) -> None:
    """Records of earlier versions are held against later ones."""
    whole, sizes = hashlib.sha256(), hashlib.sha256()
    for path in paths_of(root):
        content, name = path.read_bytes(), path.relative_to(root).as_posix()
        sizes.update(f"{name}\0{len(content)}\n".encode())
        whole.update(f"{name}\0{len(content)}\0{hashlib.sha256(content).hexdigest()}\n".encode())
    found = [files_identity(root, ImageFiles(root, 3).paths()), listed(root, 3, None)[1]]
    assert [each.sha256 for each in found] == [whole.hexdigest(), sizes.hexdigest()]
    assert [each.items for each in found] == [1505, 1505]


@pytest.mark.parametrize("identity", [files_identity, lambda *given: list(sizes_of(*given))])
def test_a_file_that_is_gone_is_named(root: Path, identity: Callable[[Path, list[Path]], object]) -> None:
    with pytest.raises(StepError, match=r"gone\.png cannot be read: No such file"):
        identity(root, [root / "gone.png"])


def test_a_file_takes_little_more_than_its_name(root: Path) -> None:
    """Each rank's feeder has all of them: 1.28 million in ImageNet."""
    gc.collect()
    tracemalloc.start()
    files = ImageFiles(root, 3)
    gc.collect()
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert held / len(files) < 40
