"""What a job's nodes are told and what they tell: two files, one on its way there and one on its way back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from proofmark.launch.hosts.request import DescribeRequest
from proofmark.plain_json import first_of, read_json

TICKET, MANIFEST, PACKED = "ticket.json", "manifest.json", "code.zip"
"""What a node is told, what it tells, and the code tree on its way there."""

RUN, CODE, CACHE, DATA, MASTER = "${run}", "${code}", "${cache}", "${data}", "${master}"
"""What stands in a spec for what only a node knows."""

Count = Annotated[int, Field(ge=0, lt=1 << 40)]
Sha256 = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
M = TypeVar("M", bound=BaseModel)


class _WireModel(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


class Ticket(_WireModel):
    """A job, for its nodes.

    Attributes:
        independent: each node is a server for itself, and runs the whole job.
        packages: whose versions the record has.
        packed: the SHA-256 of the packed code, noted as it is sent.
    """

    name: str
    module: str
    spec: str
    leaves: tuple[str, ...]
    nodes: Annotated[int, Field(ge=1)]
    independent: bool
    packages: tuple[str, ...]
    described: DescribeRequest
    environment: dict[str, str]
    packed: Sha256 | None = None


class LeftFile(_WireModel):
    """A file that a node leaves."""

    size: Count
    sha256: Sha256


class Manifest(_WireModel):
    """What a node leaves, and how its agent ended. Times are seconds since the epoch by its clock.

    Attributes:
        job: the name of the ticket that it ran by.
        host: what is known of it, as of a host of a cluster.
    """

    job: str
    code: int
    began: float
    ended: float
    files: dict[str, LeftFile]
    host: dict[str, Any]


def read_wire(path: Path, kind: type[M]) -> M:
    """One of these files.

    Raises:
        ValueError: it is none; the text is one line, without the file's name.
        OSError: it can't be read.
    """
    try:
        return kind.model_validate_json(json.dumps(read_json(path)))  # as JSON: a list will do for a tuple
    except ValidationError as error:
        raise ValueError(first_of(error)) from None
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def filled(spec: str, places: Mapping[str, str]) -> str:
    """A spec with a node's own paths in it."""
    return json.dumps(_filled(json.loads(spec), places))


def _filled(value: Any, places: Mapping[str, str]) -> Any:
    if isinstance(value, dict):
        return {key: _filled(item, places) for key, item in value.items()}
    if isinstance(value, list):
        return [_filled(item, places) for item in value]
    if isinstance(value, str):
        for place, path in places.items():
            if value == place or value.startswith(f"{place}/"):
                return path + value.removeprefix(place)
    return value


def home_of(node: int, independent: bool) -> str:
    """Where a node's files lie, in a run's folder and among a job's results. The first server's are the run's own."""
    return f"server{node}/noderank0" if independent and node else f"noderank{node}"
