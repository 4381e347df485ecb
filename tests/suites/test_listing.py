"""A folder of images is looked through once for many processes, and none is told of others than it is identified by."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from proofmark.errors import StepError
from proofmark.rules.config import EffectiveConfig, HostSettings
from suites.automl.data import search_dataset
from suites.data.images import files
from suites.data.images.listing import listed

NAMES = ("dog/1.png", "dog/line\nend.png", "cat/字.png", "cat/2.jpeg")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for size, name in enumerate(NAMES):
        path = tmp_path / "train" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(bytes(size))
    return tmp_path / "train"


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """At a folder or a file's size."""
    seen, listdir, size = list[str](), os.listdir, files._size
    monkeypatch.setattr(os, "listdir", lambda folder: (seen.append(str(folder)), listdir(folder))[1])
    monkeypatch.setattr(files, "_size", lambda path: (seen.append(str(path)), size(path))[1])
    return seen


def told(root: Path, kept: Path | None) -> Any:
    found, identity = listed(root, 2, kept)
    return identity, [found[index] for index in range(len(found))]


def test_who_comes_later_is_told_what_the_first_one_saw(root: Path, tmp_path: Path, looks: list[str]) -> None:
    kept, alone = tmp_path / "train.images", told(root, None)
    assert told(root, kept) == alone and len(alone[1]) == len(NAMES)
    looks.clear()
    assert told(root, kept) == alone and looks == []
    assert {path.name for path in tmp_path.iterdir()} == {"train", "train.images", "train.lock"}


def test_who_comes_at_the_same_time_waits_for_the_first(
    root: Path, tmp_path: Path, looks: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else all devices' first trials would look through it at once."""
    alone, begun, size = told(root, None), threading.Event(), files._size
    looks.clear()

    def slow(path: Path) -> int:
        if not begun.is_set():
            begun.set()
            time.sleep(0.3)
        return size(path)

    def come() -> None:
        found.append(told(root, tmp_path / "kept"))

    monkeypatch.setattr(files, "_size", slow)
    found = list[Any]()
    first, second = threading.Thread(target=come), threading.Thread(target=lambda: (begun.wait(60), come()))
    for thread in (first, second):
        thread.start()
    for thread in (first, second):
        thread.join(60)
    assert found == [alone, alone] and looks.count(str(root / NAMES[0])) == 1


def test_who_is_told_of_others_identifies_others(root: Path, tmp_path: Path) -> None:
    """By which the referee, who looks for himself, sees it."""
    kept = tmp_path / "kept"
    identity, _ = told(root, kept)
    kept.write_bytes(b"".join(kept.read_bytes().partition(b"dog/1.png\0000\n")[::2]))
    fewer, images = told(root, kept)
    assert len(images) == len(NAMES) - 1 and fewer.sha256 != identity.sha256


@pytest.mark.parametrize("spoil", [lambda kept: kept.mkdir(), lambda kept: os.mkfifo(kept)], ids=["folder", "pipe"])
def test_where_nothing_can_be_kept_each_looks_for_himself(
    root: Path, tmp_path: Path, spoil: Callable[[Path], object]
) -> None:
    kept = tmp_path / "kept"
    spoil(kept)
    assert told(root, kept) == told(root, tmp_path / "missing/kept") == told(root, None)


@pytest.mark.parametrize("text", [b"", b"no image", b"cat/1.png\0001\n", b"a\0001\nb\0001\nc\0001\n"])
def test_what_tells_of_no_such_folder_is_refused(root: Path, tmp_path: Path, text: bytes) -> None:
    (tmp_path / "kept").write_bytes(text)
    with pytest.raises(StepError, match=r"holds (no images in class folders|\d class folders, expected 2)"):
        listed(root, 2, tmp_path / "kept")


def test_a_folder_that_is_not_as_expected_is_refused_as_ever(root: Path, tmp_path: Path) -> None:
    with pytest.raises(StepError, match="holds 2 class folders, expected 3"):
        listed(root, 3, tmp_path / "kept")
    assert not (tmp_path / "kept").exists()


def test_both_of_a_trials_splits_are_told(root: Path, looks: list[str]) -> None:
    parameters: dict[str, Any] = {"dataset": "image_folder", "classes": 2, "resize": 9, "image_size": 8, "seed": 0}
    parameters |= {"mean": [0.5] * 3, "std": [0.5] * 3}
    host = HostSettings(data_dir=str(root.parent), listings=str(root.parent))
    config = EffectiveConfig("automl", "c", "standard", "cpu", parameters, {}, host=host)
    search_dataset(config, "train")
    looks.clear()
    assert len(search_dataset(config, "search")) + len(search_dataset(config, "train")) == len(NAMES) and looks == []
