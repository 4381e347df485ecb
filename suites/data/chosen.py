"""Which data set a case's configuration names, and the directory that it was given for it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from proofmark.errors import StepError
from proofmark.names import hint

if TYPE_CHECKING:
    from proofmark.rules.config import EffectiveConfig


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
