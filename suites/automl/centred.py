"""Images of a folder to train on, as they are evaluated: the search's split of it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from PIL import Image

from suites.data.images.image_folder import ImageFolder, RandomCrops


class CentredCrops(RandomCrops):
    """The middle of each image, its shorter side scaled to `resize`; identified as those that are trained on are."""

    def __init__(
        self,
        root: str,
        classes: int,
        resize: int,
        image_size: int,
        mean: Sequence[float],
        std: Sequence[float],
        kept: Path | None = None,
    ) -> None:
        super().__init__(root, classes, image_size, mean, std, seed=0, kept=kept)  # nothing is drawn
        self._resize = resize

    def _cut(self, image: Image.Image, index: int) -> Image.Image:
        return ImageFolder._cut(self, image, index)
