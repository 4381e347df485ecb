"""The record of a case run: one typed, versioned JSON. Reports and gates read nothing else."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal, Self, TypeVar

from pydantic import Field, ValidationError, field_validator

from proofmark.atomic_file import write_atomically
from proofmark.errors import Problem, UsageError, harmless, reason
from proofmark.plain_json import first_of, read_json
from proofmark.record.compared import Compared
from proofmark.record.figures import Figure, refuse_doubled
from proofmark.record.parts import Flops, Identity, Kept, Part, Seal, Utilisation, Verdict
from proofmark.record.policy import RESTS_ON, Policy, RestsOn, default_policy
from proofmark.record.provenance import Chip, Container, Host, Provenance
from proofmark.rules.legality import Override
from proofmark.wall.isolation import Isolation

SCHEMA_VERSION: Final = 3

RECORD_FILE: Final = "record.json"
"""The record's name in the folder of its run."""


class CaseRecord(Part):
    """What the record of any suite's case run holds."""

    SPEEDS = frozenset({"seconds"})
    ADDED = frozenset({"parameters"})

    schema_version: Literal[3] = SCHEMA_VERSION
    suite: str
    case: str
    profile: str
    vendor: str
    precision: str
    item: str
    started: float = Field(description="seconds since the epoch")
    seconds: float | None = Field(description="null: withheld")
    config_hash: str
    case_hash: str | None = Field(None, description="of the case's files that the configuration was resolved from")
    config: dict[str, Any]
    parameters: tuple[str, ...] | None = Field(
        None, description="keys of it that are the task's own, which nobody may set; null: made before they were named"
    )
    overrides: tuple[Override, ...] = ()
    problems: tuple[Problem, ...] = ()
    expected_unsupported: str | None = Field(
        default=None, description="why the vendor's own file expects it not to work; null: it does not"
    )
    versions: dict[str, str]
    provenance: Provenance | None = None
    isolation: dict[str, Isolation] = Field(
        default_factory=dict, description="of each process that ran the vendor's code, by what it is for"
    )
    host: Host | None
    chip: Chip
    seed: int | None
    dataset: Identity | None = None
    weights: Identity | None = Field(default=None, description="that the run began from; null: fresh ones, or none yet")
    flops: Flops | None
    utilisation: Utilisation = Utilisation()
    interrupted: str | None = None
    corrupt_lines: int = Field(0, description="of the event logs")
    damaged: tuple[str, ...] = Field((), description="those lines, the first of them: file, line, what is wrong")
    log: Seal | None = Field(None, description="of the session's event log, as the session wrote it")
    changed: tuple[str, ...] = Field((), description="what shows that somebody else wrote into that log")
    partial: bool = Field(False, description="whether steps were left out because only some tests were selected")
    stopped: bool = Field(False, description="whether they were because the session ended before tests selected")
    kept: tuple[Kept, ...] = Field((), description="what is left of a run that failed")
    compared: Compared | None = Field(None, description="its speed beside a baseline's; null: none was asked for")
    policy: Policy = Field(default_factory=default_policy, description="what the verdict holds the run to, whole")
    policy_hash: str | None = Field(None, description="SHA-256 of it; null: made before there were policies")
    figures: tuple[Figure, ...] = Field((), description="made by the suite from its detail; what reports walk over")
    verdict: Verdict | None = None

    @field_validator("figures")
    @classmethod
    def _have_keys_of_their_own(cls, figures: tuple[Figure, ...]) -> tuple[Figure, ...]:
        refuse_doubled(figures)
        return figures

    def with_figures(self, figures: Sequence[Figure]) -> Self:
        """The record with its figures.

        Raises:
            ValueError: two have one key.
        """
        refuse_doubled(figures)
        return self.model_copy(update={"figures": tuple(figures)})

    @property
    def variant(self) -> dict[str, str]:
        """What tells runs of a case apart, beside vendor, precision and profile: a compiler, a scale."""
        return {}

    @property
    def run_name(self) -> str:
        """What a session calls the run, and where its files lie in the session's folder."""
        return f"{self.suite}/{self.case}"

    @property
    def failed(self) -> bool:
        """Whether the run needs looking into, so that what it left is kept. What any other run made, the next one makes
        again."""
        return self.verdict is not None and self.verdict.kind.failed

    @property
    def kept_apart(self) -> Mapping[str, Isolation]:
        """How each kind of process that ran the vendor's code was isolated, by the weakest."""
        return self.isolation

    @property
    def isolated(self) -> Literal["wall", "process"]:
        """How every process that ran the vendor's code was isolated, at least."""
        kept = [*self.kept_apart.values()]
        return "wall" if kept and all(each.kind == "wall" for each in kept) else "process"

    @property
    def claimed(self) -> frozenset[RestsOn]:
        """What of the run is only claimed by processes with vendor's code: everything, unless the suite says
        otherwise."""
        return frozenset(RESTS_ON)

    @property
    def unrankable(self) -> list[str]:
        """Why it must not be ranked though it passed, whatever the policy; empty if it may be."""
        return []

    @property
    def hosts(self) -> Sequence[Host]:
        """The machines that it ran on."""
        return [self.host] if self.host else []

    @property
    def containers(self) -> Sequence[Container]:
        """Those that it ran in, if a launcher put it into some."""
        return []

    @property
    def in_vendors_image(self) -> bool:
        """Whether what should hold the vendor's code, and counts and times it, ran on what the vendor itself had put
        together: all that it says is that one's word."""
        return any(container.vendors and not container.engines_alone for container in self.containers)

    @property
    def fresh_weights(self) -> bool:
        """Whether it began from weights that nobody had trained."""
        return False

    @property
    def batch_size(self) -> int | None:
        """How many items are computed at once, by all processes together; None where nobody said."""
        size = self.config.get("batch_size")
        return size if isinstance(size, int) else None

    def text(self) -> str:
        """The content of its file."""
        return self.model_dump_json(indent=1) + "\n"

    def whole(self, folder: Path) -> Self:
        """The record that was read from a file, completed by what lies beside the file in its folder.

        Raises:
            UsageError: that is not what was saved.
        """
        return self

    def save(self, path: Path) -> None:
        """Write the record whole or not at all.

        Raises:
            OSError: no space, no permission.
        """
        write_atomically(path, self.text())

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read a record back.

        Raises:
            UsageError: unreadable, of another schema version, or not a record.
        """
        raw = read_raw(path, (SCHEMA_VERSION,))
        return validated(cls, raw, path).whole(path.parent)


Kind = TypeVar("Kind", bound=CaseRecord)


def read_raw(path: Path, versions: Collection[int]) -> dict[str, Any]:
    """The plain value in a record's file, if it is of one of these schema versions.

    Raises:
        UsageError: unreadable, or of another version.
    """
    try:
        raw = read_json(path)
    except OSError as error:
        raise UsageError(harmless(f"{path}: cannot be read: {error.strerror or reason(error)}")) from None
    except (ValueError, RecursionError) as error:
        first = reason(error)
        if isinstance(error, json.JSONDecodeError):  # where its reader stopped says nothing of a file that is another
            first = "it is not JSON, or it is more than one value, as a log of events is"
        raise UsageError(harmless(f"{path}: not a run record: {first}")) from None
    return of_version(raw, path, versions)


def of_version(raw: Any, path: Path, versions: Collection[int]) -> dict[str, Any]:
    """A record's plain value, if it is of one of these schema versions.

    Raises:
        UsageError: it is of another, or no record.
    """
    if not isinstance(raw, dict) or "schema_version" not in raw:
        raise UsageError(f"{path}: not a run record: it has no schema_version")
    version = raw["schema_version"]
    if not isinstance(version, int) or version not in versions:
        known = " and ".join(map(str, sorted(versions)))
        raise UsageError(f"{path}: schema version {version!r:.80}, this Proofmark reads {known}")
    return dict(raw)


def validated(kind: type[Kind], raw: Mapping[str, Any], path: Path) -> Kind:
    """The record that a plain value describes.

    Raises:
        UsageError: it is none of this kind.
    """
    try:
        return kind.model_validate(raw)
    except (ValidationError, RecursionError) as error:
        first = first_of(error) if isinstance(error, ValidationError) else str(error)
        raise UsageError(harmless(f"{path}: not a run record: {first}")) from None
