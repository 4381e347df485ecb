"""What an engine's process says in words, looked at before anything is believed of its form."""

from __future__ import annotations

import json
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, TypeAdapter, ValidationError
from typing_extensions import TypedDict

from proofmark.errors import harmless
from proofmark.inference.engine.engine_process import EngineFailed
from proofmark.inference.failure import LONGEST
from proofmark.plain_json import first_of
from proofmark.wall.isolation import Isolation


class Reply(TypedDict, total=False):
    """A message in words from an engine's process."""

    isolation: Isolation
    done: Any
    failed: Annotated[str, Field(max_length=4 * LONGEST["reason"])]
    detail: Annotated[str, Field(max_length=2 * LONGEST["detail"])] | None


_REPLY = TypeAdapter(Reply)


def _is_a_line(reason: str) -> str:
    if not reason.strip() or not reason.isprintable():
        raise ValueError("expected a line of text")
    return reason


class Made(BaseModel):
    """What an engine's process says of itself, once it has made its engine."""

    model_config = ConfigDict(extra="forbid")

    foo_time_reason: Annotated[str, Field(max_length=LONGEST["message"]), AfterValidator(_is_a_line)] | None


def content_of(message: bytes) -> Reply:
    """What a message says.

    Raises:
        EngineFailed: it is none, or says that something failed.
    """
    try:
        content = _REPLY.validate_python(json.loads(message[1:]))
    except ValidationError as error:
        raise EngineFailed(f"the engine's process sent an invalid answer: {first_of(error)}") from None
    except (ValueError, RecursionError):
        raise EngineFailed("the engine's process sent an invalid answer: not JSON") from None
    if "failed" in content:
        lines = content["failed"][: LONGEST["reason"]].strip().splitlines()
        unsaid = ["the engine's process failed, and does not say why"]
        raise EngineFailed("\n".join(map(harmless, lines or unsaid)), content.get("detail"))
    return content
