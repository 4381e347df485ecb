"""`ci/rooms.yaml`: which files no case depends on, and what a vendor's pull request may touch."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from proofmark.errors import ConfigurationError
from proofmark.git_content import is_read_by_git
from proofmark.rules.yaml.strict import parse
from proofmark.rules.yaml.typed import problems_of

FILE = "ci/rooms.yaml"


class Rooms(BaseModel):
    """What the file says. Without one no file is known to affect nothing, and no pull request is a vendor's."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    version: Literal[1] = 1
    affect_no_case: list[str] = Field(default_factory=list)
    vendor_may_touch: list[str] = Field(default_factory=list)

    def affects_no_case(self, path: str) -> bool:
        """Whether no case can depend on a file."""
        return any(_covers(pattern, path) for pattern in self.affect_no_case)

    def may_touch(self, vendor: str, path: str) -> bool:
        """Whether a file is a vendor's own. What Python compiled is nobody's: it may run whatever its source says. Nor
        is what git reads (.gitattributes, .gitignore): it says what counts as a difference."""
        parts = path.split("/")
        return not ("__pycache__" in parts or any(map(is_read_by_git, parts))) and any(
            _covers(pattern.replace("{vendor}", vendor), path) for pattern in self.vendor_may_touch
        )


def read_rooms(text: str, where: str) -> Rooms:
    """The file's text, understood.

    Raises:
        ConfigurationError: with every problem in it.
    """
    try:
        return Rooms.model_validate(parse(text, where) or {})
    except ValidationError as error:
        raise ConfigurationError(problems_of(error, where, model=Rooms)) from None


def _covers(pattern: str, path: str) -> bool:
    if pattern.endswith("/"):
        return path.startswith(pattern)
    if pattern.startswith("*."):
        return "/" not in path and path.endswith(pattern[1:])
    return path == pattern
