"""The images that a profile's parameter `dataset` names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.errors import StepError
from suites.data.loading import BatchDataset, BatchLoader, batch_loader

if TYPE_CHECKING:
    from harness.config import EffectiveConfig


def image_loader(config: EffectiveConfig, split: str) -> BatchLoader:
    """The loader over `image_dataset`."""
    return batch_loader(image_dataset(config, split), config, split)


def image_dataset(config: EffectiveConfig, split: str) -> BatchDataset:
    """`digits`, or `image_folder`: the validation images under `--data-dir`.

    Raises:
        StepError: there is no data directory, it is not what was expected, or it has no such split.
    """
    if config.dataset == "digits":
        from suites.data.digits import digits

        return digits(split, config.image_size, config.channels)
    from suites.data.image_folder import ImageFolder

    root = data_directory(config, split, "the validation images, one folder per class")
    return ImageFolder(root, config.classes, config.resize, config.image_size, config.mean, config.std)


def data_directory(config: EffectiveConfig, split: str, content: str) -> str:
    """The directory given by `--data-dir`, for the validation split.

    Raises:
        StepError: none is given, or data to train on is wanted.
    """
    if split != "validation":
        raise StepError(f"Case {config.case}, profile {config.profile}, has no {split} split; it is not trained here.")
    if config.host.data_dir is None:
        raise StepError(f"Case {config.case}, profile {config.profile}, needs --data-dir: the folder with {content}.")
    return config.host.data_dir
