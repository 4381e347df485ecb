"""A key of the user's in the cache directory, which is behind every wall: what is in the cache is signed with it."""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import os
import secrets
from pathlib import Path

KEY = "own.key"
"""Its name there. Whoever can read it can sign."""

SIZE = 32


class OwnKey:
    """Signs what this user's own processes put into a cache."""

    def __init__(self, cache_dir: Path) -> None:
        """Take the key that is there, or make one.

        Raises:
            OSError: there is none, and none can be made; or it can't be read.
            ValueError: others than the user can read or write it, or it is none.
        """
        path = cache_dir / KEY
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            self._make(path)
        mode = path.stat().st_mode
        if mode & 0o077:
            raise ValueError(
                f"{path} can be read or written by others (mode {mode & 0o777:o}): chmod 600, or remove it"
            )
        self._key = path.read_bytes()
        if len(self._key) != SIZE:
            raise ValueError(f"{path} is not a key: expected {SIZE} bytes, found {len(self._key)}; remove it")

    def sign(self, *words: str) -> str:
        """A signature over words, in hexadecimal."""
        return hmac.new(self._key, "\n".join(words).encode(), hashlib.sha256).hexdigest()

    def signed(self, signature: object, *words: str) -> bool:
        """Whether that is one of this key's over these words."""
        return isinstance(signature, str) and hmac.compare_digest(signature.encode(), self.sign(*words).encode())

    @staticmethod
    def _make(path: Path) -> None:
        """Whole or not at all, and once: of two that make one at once, one's stays."""
        draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with os.fdopen(descriptor, "wb") as stream:
                stream.write(secrets.token_bytes(SIZE))
            with contextlib.suppress(FileExistsError):
                os.link(draft, path)
        finally:
            draft.unlink(missing_ok=True)
