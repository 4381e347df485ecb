"""How well a process with others' code is kept from the rest: typed data for records."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

Network = Literal["closed", "asked for", "between ranks", "open"]


class Isolation(BaseModel):
    """What held when the wall was put on, by real attempts where one costs nothing.

    Attributes:
        kind: `wall` where neither foreign files nor the network can be reached, unless asked for, and no daemon by its
            socket in a file; else `process`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Literal["wall", "process"] = "process"
    container: bool = Field(
        default=False,
        description="what closes it in is a container of its vendor's image, that an engine on its host runs",
    )
    landlock: int = Field(default=0, ge=0, description="version of the kernel's Landlock interface; 0: not used")
    network: Network = Field(
        default="open",
        description="`asked for`: the vendor's own file wants it; `between ranks`: TCP, which they need to be several",
    )
    user: str | None = Field(default=None, description="whose process it is, where that is another than the referee")
    devices: tuple[str, ...] = Field(default=(), description="device files that can be used")
    gaps: tuple[str, ...] = Field(default=(), description="what is not closed, each with its reason")

    @classmethod
    def none(cls, reason: str) -> Isolation:
        """The isolation of a process of its own, and nothing else."""
        return cls(gaps=(reason,))


def weakest(kept: Iterable[Isolation]) -> Isolation | None:
    """The weakest of several isolations; None where there are none."""
    return min(kept, key=lambda each: (each.kind == "wall", each.network == "closed", -len(each.gaps)), default=None)
