"""One record on its way into the site: read, verified, written as a page, told to the index."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from proofmark.errors import ProofmarkError, harmless
from proofmark.plain_json import LARGEST
from proofmark.record.load import load_record
from proofmark.suite import Suite
from reports.content.view import View
from reports.site.discover import Found
from reports.site.entry import entry_of, values_of
from reports.site.files import as_json
from reports.site.index import Read
from reports.site.pages import write_run
from reports.site.verification import Verify

DIGITS = 16
"""Of a record's SHA-256 that its pages are called by."""


@dataclass(frozen=True)
class Reader:
    """What reading records needs. `runs` is the folder for their pages, `assets` where their styles lie in the site."""

    suites: Mapping[str, Suite]
    verify: Verify
    runs: Path
    assets: str

    def read(self, found: Found) -> Read:
        """Read a record and write its page; or a problem in a line, whatever is in the file.

        Raises:
            OSError: the page can't be written.
        """
        path, state = str(found.path), found.state
        try:
            identity = _identity(found.path)
            record = load_record(found.path, self.suites.get)
        except ProofmarkError as error:
            return Read(path, state, problem=harmless(str(error)))
        view = View(record)
        entry = entry_of(identity, view, list(self.verify(found.path.parent)))
        write_run(self.runs, entry, view, self.suites, self.assets)
        return Read(path, state, entry, as_json(values_of(view)))


def _identity(path: Path) -> str:
    """Of a file's content.

    Raises:
        ProofmarkError: it can't be read, or is too large for a record.
    """
    try:
        with path.open("rb") as stream:
            content = stream.read(LARGEST + 1)
    except OSError as error:
        raise ProofmarkError(f"{path}: {error.strerror}") from None
    if len(content) > LARGEST:
        raise ProofmarkError(f"{path}: not a run record: it is larger than {LARGEST >> 20} MiB")
    return hashlib.sha256(content).hexdigest()[:DIGITS]
