"""Images with objects in COCO's layout: a folder of images beside `annotations`, whose JSON says what is where."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import numpy as np
import torch
from PIL import Image
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from proofmark.errors import StepError
from proofmark.literal import some
from proofmark.plain_json import first_of
from suites.data.images.files import files_identity
from suites.data.loading import Batch, BatchDataset
from suites.detection import COLUMNS, NOTHING

SPLIT = "val2017"

LARGEST = 256 << 20
"""Bytes that the annotations may have: those of val2017 have 20 MB."""

MOST_OBJECTS = 1000
"""Objects that an image may have: those of val2017 have 63 at most."""

BESIDE = 1.0
"""Pixels by which a box may reach beyond its image: the published ones are rounded."""

_NAMED = 3
_LAYOUT = f"expected {SPLIT}/*.jpg and annotations/instances_{SPLIT}.json"

Size = Annotated[int, Field(gt=0, le=1 << 16)]
Pixels = Annotated[float, Field(allow_inf_nan=False)]
Extent = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class _Image(BaseModel):
    model_config = ConfigDict(strict=True)

    id: int
    file_name: str = Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]*$", max_length=255)
    width: Size
    height: Size


class _Object(BaseModel):
    model_config = ConfigDict(strict=True)

    image_id: int
    category_id: int
    bbox: tuple[Pixels, Pixels, Extent, Extent]
    iscrowd: Annotated[int, Field(ge=0, le=1)] = 0


class _Instances(BaseModel):
    """Of the file, what is needed."""

    model_config = ConfigDict(strict=True)

    images: list[_Image] = Field(min_length=1)
    annotations: list[_Object] = Field(min_length=1)


class CocoImages(BatchDataset):
    """Images scaled to `image_size`, whatever their proportions, normalised; and what is to be found in them.

    A batch is `([images], objects)` of shapes (batch, 3, height, width) and, as `suites.detection` has them,
    (batch, objects, 6). A class is a category's id, as published weights number them.

    Args:
        root: the folder that holds `val2017` and `annotations`.
        classes: categories' ids are less than that.
        image_size: height and width, in pixels.
        mean: of each of the three channels, for pixels from 0 to 1.
        std: likewise.

    Raises:
        StepError: `root` is not such a folder, or its annotations are not what they should be; on a batch: an image
            cannot be decoded, or has another size than the annotations say.
    """

    def __init__(
        self, root: str, classes: int, image_size: Sequence[int], mean: Sequence[float], std: Sequence[float]
    ) -> None:
        self._folder, file = Path(root) / SPLIT, Path(root) / "annotations" / f"instances_{SPLIT}.json"
        content = _read(Path(root), file)
        self._images, self._objects = _checked(content, file, classes)
        _all_there(self._folder, self._images, file)
        self._size = image_size[1], image_size[0]
        self._mean, self._std = torch.tensor(mean).view(3, 1, 1), torch.tensor(std).view(3, 1, 1)
        self.identity = files_identity(Path(root), [file, *(self._folder / image.file_name for image in self._images)])
        # of the images; the annotations' file is no item
        self.identity = self.identity.model_copy(update={"items": len(self._images)})

    def __len__(self) -> int:
        return len(self._images)

    def batch(self, indices: list[int]) -> Batch:
        """Read the images at `indices`."""
        return [torch.stack([self._load(self._images[index]) for index in indices])], self._objects[indices]

    def _load(self, described: _Image) -> torch.Tensor:
        path = self._folder / described.file_name
        try:
            with Image.open(path) as image:
                size = image.size
                pixels = np.array(image.convert("RGB").resize(self._size, Image.Resampling.BILINEAR))
        except Exception as error:  # which one a broken file raises depends on its format
            raise StepError(f"The image {path} cannot be decoded: {error}. Replace the file.") from error
        if size != (described.width, described.height):
            what = f"{described.width}x{described.height} pixels, the image has {size[0]}x{size[1]}"
            raise StepError(f"The image {path} does not match its annotations: they say {what}.")
        return (torch.from_numpy(pixels).permute(2, 0, 1).float() / 255 - self._mean) / self._std


def _read(root: Path, file: Path) -> bytes:
    try:
        with file.open("rb") as stream:
            content = stream.read(LARGEST + 1)
    except OSError as error:
        what = f"The data directory {root} cannot be used: {file} cannot be read ({error.strerror}); {_LAYOUT}."
        raise StepError(what) from error
    if len(content) > LARGEST:
        raise StepError(f"The file {file} is larger than {LARGEST >> 20} MiB; {_LAYOUT}.")
    return content


def _checked(content: bytes, file: Path, classes: int) -> tuple[list[_Image], torch.Tensor]:
    """The images, by id, and each one's objects, (images, most objects, 6)."""
    try:
        found = _Instances.model_validate_json(content)
    except ValidationError as error:
        what = f"is not COCO's instances: {first_of(error)}"
        raise StepError(f"The file {file} {what}; take it as it is published.") from error
    images = {image.id: image for image in found.images}
    objects: dict[int, list[list[float]]] = defaultdict(list)
    problems = [] if len(images) == len(found.images) else ["images: two have the same id"]
    for number, each in enumerate(found.annotations):
        image = images.get(each.image_id)
        wrong = _wrong(each, image, classes)
        if wrong or image is None:
            problems.append(f"annotations.{number}: {wrong}")
        else:
            objects[image.id].append(_row(each, image))
    most = max(map(len, objects.values()), default=0)
    if most > MOST_OBJECTS:
        problems.append(f"annotations: an image has {most} objects, expected at most {MOST_OBJECTS}")
    if problems:
        raise StepError(f"The file {file} is damaged: {some(problems, _NAMED, '; ')}.")
    order = [images[key] for key in sorted(images)]
    padded = torch.zeros(len(order), most, COLUMNS)
    padded[..., 0] = NOTHING
    for index, image in enumerate(order):
        if rows := objects.get(image.id):
            padded[index, : len(rows)] = torch.tensor(rows)
    return order, padded


def _wrong(each: _Object, image: _Image | None, classes: int) -> str | None:
    """What is wrong with an object, or None."""
    if image is None:
        return f"there is no image {each.image_id}"
    if not 0 <= each.category_id < classes:
        return f"category_id is {each.category_id}, expected 0 to {classes - 1}"
    left, upper, width, height = each.bbox
    if min(left, upper) < -BESIDE or left + width > image.width + BESIDE or upper + height > image.height + BESIDE:
        return f"the box {list(each.bbox)} reaches beyond its image of {image.width}x{image.height} pixels"
    return None


def _row(each: _Object, image: _Image) -> list[float]:
    left, upper, width, height = each.bbox
    x, y = (left + width / 2) / image.width, (upper + height / 2) / image.height
    return [float(each.category_id), x, y, width / image.width, height / image.height, float(each.iscrowd)]


def _all_there(folder: Path, images: list[_Image], file: Path) -> None:
    missing = [image.file_name for image in images if not (folder / image.file_name).is_file()]
    if missing:
        what = f"{some(missing, _NAMED)} of {len(images)}"
        raise StepError(f"The folder {folder} lacks images that {file.name} describes: {what}; {_LAYOUT}.")
