"""Directories for temporary files, one for each child: what is left there by what was killed goes with it."""

from __future__ import annotations

import os
import secrets
import tempfile
from pathlib import Path

from proofmark.process.scratch.own_directory import remove

TEMPORARY = "proofmark-"
"""How the names of temporary directories begin, those of a far end too."""

SOCKET_BASE = 107 - len("/proofmark-01234567/pymp-01234567/listener-01234567")


def temporary_directory() -> tempfile.TemporaryDirectory[str]:
    """A child's own TMPDIR: what is left there by what was killed goes with it."""
    return tempfile.TemporaryDirectory(prefix=TEMPORARY, dir=_temporary_base(), ignore_cleanup_errors=True)


def temporary_name() -> Path:
    """The path of one that is not there yet: a child's is made with the child, which removes it where its parent is
    gone. One made before would stay when the parent is killed while it waits for the child."""
    return Path(_temporary_base(), f"{TEMPORARY}{secrets.token_hex(4)}")


def _temporary_base() -> str:
    """Not where the path is long, if there is another place: multiprocessing puts sockets there, whose paths have 107
    bytes at most."""
    base, short = tempfile.gettempdir(), "/tmp"  # noqa: S108 (names there are random)
    return base if len(os.fsencode(base)) <= SOCKET_BASE or not os.access(short, os.W_OK) else short


def remove_own_temporary_directory() -> None:
    """Remove it in place of the parent that made it, which is gone."""
    directory = Path(os.environ.get("TMPDIR", ""))
    if directory.name.startswith(TEMPORARY):
        remove(directory)
