"""Images in three parts: to train on, to choose trials by, and held out to judge the best of them by."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from proofmark.errors import StepError
from proofmark.record.parts import Identity
from suites.data.chosen import named_dataset, needed_directory
from suites.data.loading import Batch, BatchDataset

if TYPE_CHECKING:
    from proofmark.rules.config import EffectiveConfig

EVERY = 5
"""Of digits to train on, one of so many is for the search."""

EVERY_OF_FOLDER = 26
"""Of ImageNet's 1,281,167 images to train on: about as many for the search as there are in val."""


class Chosen(BatchDataset):
    """Some items of a dataset."""

    def __init__(self, whole: BatchDataset, items: Sequence[int], part: str) -> None:
        self._whole, self._items = whole, items
        of = whole.identity
        sha256 = hashlib.sha256(f"{of.sha256} {part}".encode()).hexdigest()
        self.identity = Identity(name=f"{of.name}, {part}", sha256=sha256, items=len(items), origin=of.origin)

    def __len__(self) -> int:
        return len(self._items)

    def batch(self, indices: list[int]) -> Batch:
        """The items at `indices`."""
        self._whole.epoch = self.epoch
        return self._whole.batch([self._items[index] for index in indices])


def search_dataset(config: EffectiveConfig, split: str) -> BatchDataset:
    """`train`, `search` or `held_out` of what the parameter `dataset` names; no item is in two of them.

    Raises:
        StepError: the data directory is not what was expected.
    """
    if named_dataset(config, "digits", "image_folder") == "digits":
        from suites.data.images.digits import digits

        if split == "held_out":
            return digits("validation", config.image_size, config.channels)
        return _part(digits("train", config.image_size, config.channels), split, EVERY)
    return _of_folder(config, split)


def _part(whole: BatchDataset, split: str, every: int) -> Chosen:
    """Every so-manieth item is for the search, the others are to train on."""
    of_search = split == "search"
    items = [item for item in range(len(whole)) if (item % every == every - 1) == of_search]
    return Chosen(whole, items, f"one of {every}" if of_search else f"{every - 1} of {every}")


def _of_folder(config: EffectiveConfig, split: str) -> BatchDataset:
    from suites.automl.apart import hold_apart
    from suites.automl.centred import CentredCrops
    from suites.data.images.image_folder import ImageFolder, RandomCrops

    root = Path(needed_directory(config, "the folder with train and val, each with one folder of images per class"))
    folder = root / ("val" if split == "held_out" else "train")
    if not folder.is_dir():
        raise StepError(f"The data directory {root} has no folder {folder.name}; expected train and val.")
    scale: dict[str, Any] = {"mean": config.mean, "std": config.std}
    if split == "held_out":
        hold_apart(root / "train", folder)
        return ImageFolder(str(folder), config.classes, config.resize, config.image_size, **scale)
    scale["kept"] = Path(config.host.listings, "train.images") if config.host.listings else None
    if split == "train":
        whole = RandomCrops(str(folder), config.classes, config.image_size, seed=config.seed, **scale)
    else:
        whole = CentredCrops(str(folder), config.classes, config.resize, config.image_size, **scale)
    return _part(whole, split, EVERY_OF_FOLDER)
