"""A folder of images in ImageNet's layout: one folder per class, sorted by name, any image files within."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from PIL import Image

from proofmark.errors import StepError
from proofmark.record.parts import Identity
from suites.data.images.files import ImageFiles, files_identity
from suites.data.images.listing import listed
from suites.data.loading import Batch, BatchDataset


class ImageFolder(BatchDataset):
    """Images scaled to `resize` on the shorter side, cropped at the centre, normalised.

    A batch is `([images], labels)` of shapes (batch, 3, image_size, image_size) and (batch,).

    Args:
        root: the folder that holds one folder per class.
        classes: how many classes there must be.
        resize: length of the shorter side after scaling, in pixels.
        image_size: side of the square that is cropped, in pixels.
        mean: of each of the three channels, for pixels from 0 to 1.
        std: likewise.

    Raises:
        StepError: `root` is not such a folder; on a batch: an image cannot be decoded.
    """

    def __init__(
        self, root: str, classes: int, resize: int, image_size: int, mean: Sequence[float], std: Sequence[float]
    ) -> None:
        self._files, self.identity = self._found(Path(root), classes)
        self._resize, self._size = resize, image_size
        self._mean = torch.tensor(mean).view(3, 1, 1)
        self._std = torch.tensor(std).view(3, 1, 1)

    def __len__(self) -> int:
        return len(self._files)

    def batch(self, indices: list[int]) -> Batch:
        """Read the items at `indices`."""
        images = torch.stack([self._load(index) for index in indices])
        return [images], torch.tensor([self._files[index][1] for index in indices])

    def _load(self, index: int) -> torch.Tensor:
        path, _ = self._files[index]
        try:
            with Image.open(path) as image:
                pixels = self._cut(image.convert("RGB"), index)
        except Exception as error:  # which one a broken file raises depends on its format
            raise StepError(f"The image {path} cannot be decoded: {error}. Replace or remove the file.") from error
        tensor = torch.from_numpy(np.array(pixels)).permute(2, 0, 1).float() / 255
        return (tensor - self._mean) / self._std

    def _cut(self, image: Image.Image, index: int) -> Image.Image:
        return _crop(image, self._resize, self._size)

    def _found(self, root: Path, classes: int) -> tuple[ImageFiles, Identity]:
        files = ImageFiles(root, classes)
        return files, files_identity(root, files.paths())


class RandomCrops(ImageFolder):
    """Images to train on: of each a random part, scaled to `image_size`, mirrored every other time.

    Which part, and whether mirrored, follows from `seed`, the epoch and the image's index alone. The identity is a
    checksum of the files' names and sizes: reading all of ImageNet takes longer than an epoch. `kept` is the file by
    which processes tell one another what these are.
    """

    def __init__(
        self,
        root: str,
        classes: int,
        image_size: int,
        mean: Sequence[float],
        std: Sequence[float],
        seed: int,
        kept: Path | None = None,
    ) -> None:
        self._kept = kept
        super().__init__(root, classes, image_size, image_size, mean, std)
        self._seed = seed

    def _cut(self, image: Image.Image, index: int) -> Image.Image:
        draw = random.Random(f"{self._seed}/{self.epoch}/{index}")  # noqa: S311 (not for secrets)
        size = (self._size, self._size)
        image = image.resize(size, Image.Resampling.BILINEAR, box=random_box(*image.size, draw))
        return image.transpose(Image.Transpose.FLIP_LEFT_RIGHT) if draw.random() < 0.5 else image

    def _found(self, root: Path, classes: int) -> tuple[ImageFiles, Identity]:
        return listed(root, classes, self._kept)


def random_box(width: int, height: int, draw: random.Random) -> tuple[int, int, int, int]:
    """A part of an image as Inception was trained with: left, upper, right, lower, in pixels.

    Its area is 8 % to 100 % of the image's and its width 3/4 to 4/3 of its height, uniform in the logarithm (Szegedy
    et al. 2015, section 6). Where ten draws don't fit in the image it is the largest part from the middle that does.
    """
    for _ in range(10):
        area = width * height * draw.uniform(0.08, 1)
        aspect = math.exp(draw.uniform(math.log(3 / 4), math.log(4 / 3)))
        across, down = round(math.sqrt(area * aspect)), round(math.sqrt(area / aspect))
        if 0 < across <= width and 0 < down <= height:
            left, upper = draw.randint(0, width - across), draw.randint(0, height - down)
            return left, upper, left + across, upper + down
    across, down = min(width, max(1, round(height * 4 / 3))), min(height, max(1, round(width * 4 / 3)))
    left, upper = (width - across) // 2, (height - down) // 2
    return left, upper, left + across, upper + down


def _crop(image: Image.Image, resize: int, size: int) -> Image.Image:
    """Scale the shorter side to `resize`, then cut a square of `size` from the middle."""
    scale = resize / min(image.size)
    width, height = (max(resize, round(side * scale)) for side in image.size)
    image = image.resize((width, height), Image.Resampling.BILINEAR)
    left, top = (width - size) // 2, (height - size) // 2
    return image.crop((left, top, left + size, top + size))
