"""Scikit-learn's scanned digits: 1,797 real images of 8x8 pixels that come with the package."""

from __future__ import annotations

from functools import cache
from importlib.metadata import PackageNotFoundError, distribution

import numpy as np
import torch
from torch.nn.functional import interpolate

from proofmark.errors import StepError
from suites.data.loading import TensorData

_PARTS = 5
_BRIGHTEST = 16.0
_SIZE = 8
_FILE = "sklearn/datasets/data/digits.csv.gz"
"""Of the package, 64 pixels and the class a line. It is read as `sklearn.datasets.load_digits` does, without the import
of that, which takes each process of a case more than a second."""


def digits(split: str, image_size: int, channels: int) -> TensorData:
    """One split of the digits, upscaled: images of shape (items, channels, image_size, image_size).

    Every fifth image of each class is for validation, the others are for training: both splits
    are the same on every machine. Pixels run from -1 to 1.

    Raises:
        StepError: scikit-learn or its file is missing.
    """
    scanned, classes = _scanned()
    chosen = torch.from_numpy(_validation(classes) ^ (split == "train"))
    images = torch.from_numpy(scanned).float()[chosen].unsqueeze(1) / _BRIGHTEST * 2 - 1
    images = interpolate(images, size=(image_size, image_size), mode="bilinear", align_corners=False)
    images = images.expand(-1, channels, -1, -1).contiguous()
    labels = torch.from_numpy(classes).long()[chosen]
    return TensorData(f"digits/{split}", [images], labels, origin="sklearn.datasets.load_digits")


@cache
def _scanned() -> tuple[np.ndarray, np.ndarray]:
    """Images of shape (items, 8, 8), from 0 to 16, and their classes, (items,)."""
    try:
        lines = np.loadtxt(str(distribution("scikit-learn").locate_file(_FILE)), delimiter=",")
    except (PackageNotFoundError, OSError) as error:
        raise StepError(f"the embedded images are scikit-learn's: {error}; pip install scikit-learn") from None
    return lines[:, :-1].reshape(-1, _SIZE, _SIZE), lines[:, -1].astype(int)


def _validation(labels: np.ndarray) -> np.ndarray:
    """Which items are for validation, as booleans of shape (items,)."""
    chosen = np.zeros(len(labels), dtype=bool)
    for label in np.unique(labels):
        chosen[np.flatnonzero(labels == label)[_PARTS - 1 :: _PARTS]] = True
    return chosen
