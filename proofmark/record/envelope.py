"""The record of a case run: one typed, versioned JSON. Reports and gates read nothing else."""

from __future__ import annotations

import os
import secrets
from pathlib import Path
from typing import Any, Final, Literal, Self

from pydantic import Field, ValidationError

from proofmark.errors import UsageError, harmless
from proofmark.plain_json import first_of, read_json
from proofmark.record.parts import (
    Chip,
    Flops,
    Host,
    Identity,
    Kept,
    OverrideEntry,
    Part,
    ProblemEntry,
    Provenance,
    Utilisation,
    Verdict,
)

SCHEMA_VERSION: Final = 2


class CaseRecord(Part):
    """What the record of any suite's case run holds."""

    schema_version: Literal[2] = SCHEMA_VERSION
    suite: str
    case: str
    profile: str
    vendor: str
    precision: str
    item: str
    started: float = Field(description="seconds since the epoch")
    seconds: float | None = Field(description="null: withheld")
    config_hash: str
    config: dict[str, Any]
    overrides: tuple[OverrideEntry, ...] = ()
    problems: tuple[ProblemEntry, ...] = ()
    expected_unsupported: str | None = Field(
        default=None, description="why the vendor's own file expects it not to work; null: it does not"
    )
    versions: dict[str, str]
    provenance: Provenance | None = None
    host: Host | None
    chip: Chip
    seed: int | None
    dataset: Identity | None = None
    flops: Flops | None
    utilisation: Utilisation = Utilisation()
    interrupted: str | None = None
    corrupt_lines: int = Field(0, description="of the event logs")
    damaged: tuple[str, ...] = Field((), description="those lines, the first of them: file, line, what is wrong")
    partial: bool = Field(False, description="whether steps were left out because only some tests were selected")
    kept: tuple[Kept, ...] = Field((), description="what is left of a run that failed")
    verdict: Verdict | None = None

    def save(self, path: Path) -> None:
        """Write the record whole or not at all.

        Raises:
            OSError: no space, no permission.
        """
        text = self.model_dump_json(indent=1)
        draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}")  # nobody can have laid a link there
        try:
            with draft.open("x", encoding="utf-8") as stream:
                stream.write(text + "\n")
                stream.flush()
                os.fsync(stream.fileno())
            draft.replace(path)
        finally:
            draft.unlink(missing_ok=True)

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read a record back.

        Raises:
            UsageError: unreadable, of another schema version, or not a record.
        """
        try:
            raw = read_json(path)
            version = raw.get("schema_version") if isinstance(raw, dict) else None
            if version != SCHEMA_VERSION:
                raise UsageError(f"{path}: schema version {version!r:.80}, this Proofmark reads {SCHEMA_VERSION}")
            return cls.model_validate(raw)
        except ValidationError as error:
            raise UsageError(harmless(f"{path}: not a run record: {first_of(error)}")) from None
        except (OSError, ValueError, RecursionError) as error:
            told = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise UsageError(harmless(f"{path}: not a run record: {told}")) from None
