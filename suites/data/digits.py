"""Scikit-learn's scanned digits: 1,797 real images of 8x8 pixels that come with the package."""

from __future__ import annotations

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch.nn.functional import interpolate

from suites.data.loading import TensorData

_PARTS = 5
_BRIGHTEST = 16.0


def digits(split: str, image_size: int, channels: int) -> TensorData:
    """One split of the digits, upscaled: images of shape (items, channels, image_size, image_size).

    Every fifth image of each class is for validation, the others are for training: both splits
    are the same on every machine. Pixels run from -1 to 1.
    """
    source = load_digits()
    chosen = torch.from_numpy(_validation(source.target) ^ (split == "train"))
    images = torch.from_numpy(source.images).float()[chosen].unsqueeze(1) / _BRIGHTEST * 2 - 1
    images = interpolate(images, size=(image_size, image_size), mode="bilinear", align_corners=False)
    images = images.expand(-1, channels, -1, -1).contiguous()
    labels = torch.from_numpy(source.target).long()[chosen]
    return TensorData(f"digits/{split}", [images], labels, origin="sklearn.datasets.load_digits")


def _validation(labels: np.ndarray) -> np.ndarray:
    """Which items are for validation, as booleans of shape (items,)."""
    chosen = np.zeros(len(labels), dtype=bool)
    for label in np.unique(labels):
        chosen[np.flatnonzero(labels == label)[_PARTS - 1 :: _PARTS]] = True
    return chosen
