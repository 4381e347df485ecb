"""What a case's process may answer: progress, events, a step's outcome. Vendor code runs there: each is looked at."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Required

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError
from pydantic_core import from_json
from typing_extensions import TypedDict

from proofmark.plain_json import first_of, plain_text

LONGEST = 16 << 20
"""Bytes of a line: an outcome may carry a traceback."""

_Count = Annotated[int, Field(ge=0, lt=1 << 63)]


class _Outcome(TypedDict, total=False):
    __pydantic_config__ = ConfigDict(extra="allow", strict=True)  # type: ignore[misc]

    status: Required[Literal["done", "skipped", "failed", "not_reached"]]
    reason: str | None
    kind: Literal["unsupported", "error"] | None
    detail: str | None


class _Answer(TypedDict, total=False):
    __pydantic_config__ = ConfigDict(extra="allow", strict=True)  # type: ignore[misc]

    outcome: _Outcome
    event: dict[str, Any]
    note: str
    alive: Literal["setup", "calls", "loading", "waiting"]
    phase: str
    step: _Count
    steps: _Count
    items: _Count
    samples_per_second: float | None
    loss: float | None


_ANSWER = TypeAdapter(_Answer)


def read_answer(line: bytes) -> dict[str, Any]:
    """A line of the answer pipe.

    Raises:
        ValueError: it is none; the text is one line.
    """
    try:
        answer = dict(_ANSWER.validate_python(plain_text(from_json(line))))
    except ValidationError as error:
        raise ValueError(first_of(error)) from None
    except (ValueError, RecursionError):
        raise ValueError("not JSON") from None
    if "phase" in answer and not {"step", "steps"} <= answer.keys():
        raise ValueError("a phase without its steps")
    return answer
