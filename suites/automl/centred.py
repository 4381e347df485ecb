"""Images of a folder to train on, as they are evaluated: the search's split of it."""

from __future__ import annotations

from PIL import Image

from suites.data.image_folder import ImageFolder, RandomCrops


class CentredCrops(RandomCrops):
    """The middle of each image, scaled to its shorter side; identified as those that are trained on are."""

    def _cut(self, image: Image.Image, index: int) -> Image.Image:
        return ImageFolder._cut(self, image, index)
