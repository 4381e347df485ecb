"""The loaders of images, of the data set that a profile's parameter `dataset` names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from suites.data.chosen import data_directory, named_dataset
from suites.data.loading import BatchDataset, BatchLoader, batch_loader

if TYPE_CHECKING:
    from proofmark.rules.config import EffectiveConfig


def image_loader(config: EffectiveConfig, split: str) -> BatchLoader:
    """The loader over `image_dataset`."""
    return batch_loader(image_dataset(config, split), config)


def image_dataset(config: EffectiveConfig, split: str) -> BatchDataset:
    """`digits`, or `image_folder`: the images under `--data-dir`, cut at random where they are to train on.

    Raises:
        StepError: there is no data directory, it is not what was expected, or it has no such split.
    """
    if named_dataset(config, "digits", "image_folder") == "digits":
        from suites.data.images.digits import digits

        return digits(split, config.image_size, config.channels)
    from suites.data.images.image_folder import ImageFolder, RandomCrops

    root = data_directory(config, split, "the images, one folder per class")
    if split == "train":
        return RandomCrops(root, config.classes, config.image_size, config.mean, config.std, config.seed)
    return ImageFolder(root, config.classes, config.resize, config.image_size, config.mean, config.std)


def detection_loader(config: EffectiveConfig, split: str) -> BatchLoader:
    """Images and the objects in them, as `suites.detection` has them: `scenes`, or `coco` under `--data-dir`.

    Raises:
        StepError: there is no data directory, it is not what was expected, or it has no such split.
    """
    if named_dataset(config, "scenes", "coco") == "scenes":
        from suites.data.images.scenes import Scenes

        made = Scenes(split, config.scenes[split], config.image_size[0], config.seed)
        return batch_loader(made if split == "train" else made.kept(), config)
    from suites.data.images.coco import CocoImages

    root = data_directory(config, split, "val2017 and annotations of COCO")
    return batch_loader(CocoImages(root, config.classes, config.image_size, config.mean, config.std), config)
