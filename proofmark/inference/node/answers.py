"""What a case's agent answers from its host: what its process does, and how it began and ended. A claim, looked at."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError
from typing_extensions import TypedDict

from proofmark.plain_json import first_of
from proofmark.process.answering.answers import read_answer

FILE = "answers.jsonl"

_OptionalText = Annotated[str, Field(max_length=4096)] | None
_Device = Annotated[int, Field(ge=0, lt=1 << 20)] | None


class _Ready(TypedDict):
    __pydantic_config__ = ConfigDict(extra="forbid", strict=True)  # type: ignore[misc]

    device: _Device


class _Lost(TypedDict):
    __pydantic_config__ = ConfigDict(extra="forbid", strict=True)  # type: ignore[misc]

    reason: Annotated[str, Field(max_length=4096)]
    detail: Annotated[str, Field(max_length=1 << 16)] | None


class _Closed(TypedDict):
    __pydantic_config__ = ConfigDict(extra="forbid", strict=True)  # type: ignore[misc]

    monitor_failure: _OptionalText
    lost: _OptionalText


class _Answer(TypedDict, total=False):
    __pydantic_config__ = ConfigDict(extra="allow", strict=True)  # type: ignore[misc]

    ready: _Ready
    lost: _Lost
    closed: _Closed


_ANSWER = TypeAdapter(_Answer)


def read_node_answer(line: bytes) -> dict[str, Any]:
    """A line of an agent's answers.

    Raises:
        ValueError: it is none; the text is one line.
    """
    try:
        return dict(_ANSWER.validate_python(read_answer(line)))
    except ValidationError as error:
        raise ValueError(first_of(error)) from None
