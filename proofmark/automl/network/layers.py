"""Layers of an image network, as data: what they take, what they give, how many parameters they have."""

from __future__ import annotations

from typing import Annotated, Literal, NamedTuple

from pydantic import Field

from proofmark.record.parts import Part

MOST_CHANNELS = 1 << 15
"""Channels that a tensor may have."""

Name = Annotated[str, Field(pattern="^[a-z][a-z0-9_]{0,47}$")]
Channels = Annotated[int, Field(strict=True, ge=1, le=MOST_CHANNELS)]
LARGEST_KERNEL = 15
Kernel = Annotated[int, Field(strict=True, ge=1, le=LARGEST_KERNEL, multiple_of=1)]
Stride = Annotated[int, Field(strict=True, ge=1, le=16)]


class Shape(NamedTuple):
    """The shape of one item's tensor: (channels, size, size), or (channels,) where `size` is None."""

    channels: int
    size: int | None

    def __str__(self) -> str:
        return f"({self.channels})" if self.size is None else f"({self.channels}, {self.size}, {self.size})"


class BadLayer(ValueError):
    """A layer doesn't fit what it is given; a sentence without its subject."""


class Layer(Part):
    """What every layer has: a name and the names of those whose results it takes."""

    name: Name
    inputs: tuple[Name, ...] = Field(max_length=2)

    def shape(self, given: tuple[Shape, ...]) -> Shape:
        """The shape of its output, given those of its inputs.

        Raises:
            BadLayer: it can't take those.
        """
        (only,) = _expect(given, 1, "")
        return only

    def parameters(self, given: tuple[Shape, ...]) -> int:
        """How many numbers are learned."""
        return 0


class Convolution(Layer):
    """Square, without bias, padded by half its kernel: n becomes ceil(n / stride)."""

    op: Literal["conv"] = "conv"
    channels: Channels
    kernel: Kernel
    stride: Stride = 1

    def shape(self, given: tuple[Shape, ...]) -> Shape:
        """See Layer."""
        return Shape(self.channels, _shrunk(given, self.kernel, self.stride).size)

    def parameters(self, given: tuple[Shape, ...]) -> int:
        """See Layer."""
        return self.kernel**2 * given[0].channels * self.channels


class BatchNorm(Layer):
    """Over batch and image, with scale and shift."""

    op: Literal["batch_norm"] = "batch_norm"

    def shape(self, given: tuple[Shape, ...]) -> Shape:
        """See Layer."""
        return _expect(given, 1, "images")[0]

    def parameters(self, given: tuple[Shape, ...]) -> int:
        """See Layer."""
        return 2 * given[0].channels


class Relu(Layer):
    """max(x, 0)."""

    op: Literal["relu"] = "relu"


class Dropout(Layer):
    """Zero at random while training."""

    op: Literal["dropout"] = "dropout"
    rate: float = Field(ge=0, lt=1)


class Add(Layer):
    """The sum of two alike."""

    op: Literal["add"] = "add"

    def shape(self, given: tuple[Shape, ...]) -> Shape:
        """See Layer."""
        left, right = _expect(given, 2, "")
        if left != right:
            raise BadLayer(f"adds {left} to {right}; expected two of one shape")
        return left


class Concat(Layer):
    """The channels of two, one behind the other."""

    op: Literal["concat"] = "concat"

    def shape(self, given: tuple[Shape, ...]) -> Shape:
        """See Layer."""
        left, right = _expect(given, 2, "")
        if left.size != right.size:
            raise BadLayer(f"joins {left} and {right}; expected images of one size")
        return Shape(left.channels + right.channels, left.size)


class MaxPool(Layer):
    """Padded by half its kernel: n becomes ceil(n / stride)."""

    op: Literal["max_pool"] = "max_pool"
    kernel: Kernel
    stride: Stride

    def shape(self, given: tuple[Shape, ...]) -> Shape:
        """See Layer."""
        return _shrunk(given, self.kernel, self.stride)


class GlobalAveragePool(Layer):
    """The mean over each image: from (channels, size, size) to (channels)."""

    op: Literal["global_average_pool"] = "global_average_pool"

    def shape(self, given: tuple[Shape, ...]) -> Shape:
        """See Layer."""
        return Shape(_expect(given, 1, "images")[0].channels, None)


class Dense(Layer):
    """A linear map with bias, of vectors."""

    op: Literal["dense"] = "dense"
    channels: Channels

    def shape(self, given: tuple[Shape, ...]) -> Shape:
        """See Layer."""
        return Shape(self.channels, _expect(given, 1, "a vector")[0].size)

    def parameters(self, given: tuple[Shape, ...]) -> int:
        """See Layer."""
        return (given[0].channels + 1) * self.channels


Node = Annotated[
    Convolution | BatchNorm | Relu | Dropout | Add | Concat | MaxPool | GlobalAveragePool | Dense,
    Field(discriminator="op"),
]


def _expect(given: tuple[Shape, ...], number: int, kind: Literal["", "images", "a vector"]) -> tuple[Shape, ...]:
    if len(given) != number:
        raise BadLayer(f"takes {number} inputs, has {len(given)}")
    if kind and any((shape.size is None) == (kind == "images") for shape in given):
        raise BadLayer(f"takes {kind}, is given {given[0]}")
    return given


def _shrunk(given: tuple[Shape, ...], kernel: int, stride: int) -> Shape:
    (shape,) = _expect(given, 1, "images")
    if kernel % 2 == 0:
        raise BadLayer(f"has a kernel of {kernel}; expected an odd number")
    assert shape.size is not None
    return Shape(shape.channels, -(-shape.size // stride))
