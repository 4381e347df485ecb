"""Scenes: shapes of random places, sizes and colours on a noisy ground, to be found and named."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable
from pathlib import Path

import torch

from proofmark.record.parts import Identity
from suites.data.loading import Batch, BatchDataset, TensorData
from suites.detection import COLUMNS, NOTHING

SMALLEST, LARGEST = 0.3, 0.6
"""Width and height of a shape, as shares of the scene's side."""

OBJECTS = 2
"""Shapes of a scene, at most; one at least."""

TRIES = 20
"""Places that are tried for a shape before it is left out."""

NOISE = 0.1
"""Standard deviation of the ground's and the shapes' pixels, which run from -1 to 1."""

Form = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]

SHAPES: dict[str, Form] = {
    "disc": lambda x, y: x**2 + y**2 <= 1,
    "rectangle": lambda x, y: (x.abs() <= 1) & (y.abs() <= 1),
    "triangle": lambda x, y: x.abs() <= (y + 1) / 2,
    "cross": lambda x, y: (x.abs() <= 1 / 3) | (y.abs() <= 1 / 3),
}
"""Which points of its box a shape covers; both coordinates run from -1 to 1. The n-th is class n."""


class Scenes(BatchDataset):
    """Scenes that are made when they are asked for; each follows from the seed, its split and its number.

    A batch is `([images], objects)`: (batch, 3, size, size), and (batch, OBJECTS, 6) as `suites.detection` has them.
    The boxes of two shapes don't meet.

    Args:
        split: scenes of two splits have none in common.
        count: how many scenes there are.
        size: of a scene's sides, in pixels.
        seed: what they follow from.
    """

    def __init__(self, split: str, count: int, size: int, seed: int) -> None:
        self._split, self._count, self._size, self._seed = split, count, size, seed
        made_of = f"{Path(__file__).read_text(encoding='utf-8')} {split} {count} {size} {seed}"
        self.identity = Identity(
            name=f"scenes/{split}",
            sha256=hashlib.sha256(made_of.encode()).hexdigest(),
            items=count,
            origin="suites.data.images.scenes (its text, split, sizes and seed)",
        )

    def __len__(self) -> int:
        return self._count

    def batch(self, indices: list[int]) -> Batch:
        """Make the scenes at `indices`."""
        made = [self._scene(index) for index in indices]
        return [torch.stack([image for image, _ in made])], torch.stack([objects for _, objects in made])

    def kept(self) -> TensorData:
        """All of them, made now and held in memory."""
        inputs, objects = self.batch(list(range(self._count)))
        return TensorData(self.identity.name, inputs, objects, origin="suites.data.images.scenes")

    def _scene(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        draw = random.Random(f"{self._seed}/{self._split}/{index}")  # noqa: S311 (not for secrets)
        size = self._size
        noise = torch.randn(3, size, size, generator=torch.Generator().manual_seed(draw.getrandbits(62)))
        image = torch.full((3, size, size), -0.8)
        objects = torch.zeros(OBJECTS, COLUMNS)
        objects[:, 0] = NOTHING
        taken: list[tuple[int, int, int, int]] = []
        for row in range(draw.randint(1, OBJECTS)):
            box = _free(draw, size, taken)
            if box is None:
                continue
            taken.append(box)
            left, upper, right, lower = box
            width, height, kind = right - left, lower - upper, draw.randrange(len(SHAPES))
            colour = torch.tensor([draw.uniform(0, 0.8) for _ in range(3)]).view(3, 1, 1)
            part = image[:, upper:lower, left:right]
            part.copy_(torch.where(_covered(kind, width, height), colour, part))
            objects[row, 0] = kind
            objects[row, 1:5] = torch.tensor([left + width / 2, upper + height / 2, width, height]) / size
        return (image + NOISE * noise).clamp(-1, 1), objects


def _free(draw: random.Random, size: int, taken: list[tuple[int, int, int, int]]) -> tuple[int, int, int, int] | None:
    """Left, upper, right and lower of a place that meets none that is taken, if one is found."""
    width, height = (round(size * draw.uniform(SMALLEST, LARGEST)) for _ in range(2))
    for _ in range(TRIES):
        left, upper = draw.randint(0, size - width), draw.randint(0, size - height)
        right, lower = left + width, upper + height
        if not any(left < other[2] and other[0] < right and upper < other[3] and other[1] < lower for other in taken):
            return left, upper, right, lower
    return None


def _covered(kind: int, width: int, height: int) -> torch.Tensor:
    """Which pixels of its box a shape covers, (height, width)."""
    x = (torch.arange(width) + 0.5) / width * 2 - 1
    y = (torch.arange(height) + 0.5) / height * 2 - 1
    return list(SHAPES.values())[kind](x.view(1, -1), y.view(-1, 1)).expand(height, width)
