"""Answers with a list that computes when somebody walks it, after the clock."""

from collections.abc import Iterator
from typing import Any

from vendors.fake import honest

VERDICT, REASON = "ERROR", "the outputs are a Later; expected a list of tensors"


class Later(list[Any]):
    """Empty until it is walked."""

    def __init__(self, compute: Any) -> None:
        super().__init__([None])
        self._compute = compute

    def __iter__(self) -> Iterator[Any]:
        return iter(self._compute())


class InferModel(honest.InferModel):
    """Computes nothing when it is called."""

    def __call__(self, inputs: Any) -> Any:
        return Later(lambda: super(InferModel, self).__call__(inputs)[0]), 0.0
