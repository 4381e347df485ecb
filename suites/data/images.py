"""The images that a profile's parameter `dataset` names."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from proofmark.errors import StepError
from proofmark.names import hint
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
        from suites.data.digits import digits

        return digits(split, config.image_size, config.channels)
    from suites.data.image_folder import ImageFolder, RandomCrops

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
        from suites.data.scenes import Scenes

        made = Scenes(split, config.scenes[split], config.image_size[0], config.seed)
        return batch_loader(made if split == "train" else made.kept(), config)
    from suites.data.coco import CocoImages

    root = data_directory(config, split, "val2017 and annotations of COCO")
    return batch_loader(CocoImages(root, config.classes, config.image_size, config.mean, config.std), config)


def named_dataset(config: EffectiveConfig, *known: str) -> str:
    """What the parameter `dataset` names.

    Raises:
        StepError: it is none of those that are known.
    """
    name = str(config.dataset)
    if name not in known:
        raise StepError(f"unknown dataset '{name}': there are {', '.join(known)}{hint(name, known)}")
    return name


def data_directory(config: EffectiveConfig, split: str, content: str) -> str:
    """The directory given by `--data-dir`; for a training, the folder `train` or `val` within.

    Raises:
        StepError: none is given, it has no such folder, or data to train on is wanted where nothing is trained.
    """
    training = config.suite == "training"
    if split != "validation" and not training:
        raise StepError(f"Case {config.case}, profile {config.profile}, has no {split} split; it is not trained here.")
    if not training:
        return needed_directory(config, f"the folder with {content}, to validate with")
    root = needed_directory(config, f"the folder with train and val, each with {content}")
    folder = Path(root) / {"train": "train", "validation": "val"}[split]
    if not folder.is_dir():
        what = f"has no folder {folder.name}; expected train and val, each with {content}"
        raise StepError(f"The data directory {root} {what}.")
    return str(folder)


def needed_directory(config: EffectiveConfig, content: str) -> str:
    """What `--data-dir` says.

    Raises:
        StepError: it isn't given.
    """
    if config.host.data_dir is None:
        raise StepError(f"Case {config.case}, profile {config.profile}, needs --data-dir: {content}.")
    return config.host.data_dir
