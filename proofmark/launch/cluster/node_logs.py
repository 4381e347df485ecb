"""What a node's agent and ranks wrote, as it comes home, and how the agent ended."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from proofmark.launch.far_end.protocol import goes_home

FULL = 1 << 20
"""Bytes on a disk below which it is full."""

MOST = 64 << 30
"""Bytes that a node may send home of one job."""

FILES = 100_000
"""Files that they may be: an empty one takes of a disk too."""


class NodeLogs:
    """What one node leaves of one job. Nothing that a host says of it is believed before it was looked at."""

    def __init__(self, home: Path | None, leaves: Sequence[str] = ()) -> None:
        """Keep files that the job says it leaves in `home`; nothing is kept without one."""
        self._home, self._leaves = home, tuple(leaves)
        self._received = self._files = 0
        self.ended: int | None = None
        """The exit code of the agent."""
        self.full = False
        """Whether the disk was, when the agent ended."""
        self.incomplete: str | None = None
        """Which log has not come whole, and why, after the agent's end."""

    def expect(self, leaves: Sequence[str]) -> None:
        """Take more files, which were asked for."""
        self._leaves += tuple(leaves)

    def add(self, name: str, offset: int, piece: bytes) -> None:
        """Add what follows of a file.

        Raises:
            ValueError: the job leaves no file of that name, something else follows, or it is too much.
            OSError: it can't be written here.
        """
        if self._home is None:
            return
        if not goes_home(name, self._leaves):
            raise ValueError(name)
        path = self._home / name
        self._received += len(piece)
        self._files += not path.exists()
        if self._received > MOST or self._files > FILES:
            raise ValueError(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab") as stream:
            if stream.tell() != offset:
                raise ValueError(offset)
            if piece.count(0) == len(piece):  # a hole there, it may be of any size, is one here too
                stream.truncate(offset + len(piece))
            else:
                stream.write(piece)

    def end(self, answer: dict[str, Any]) -> None:
        """Take the agent's end, which counts if all of its logs have come."""
        self.incomplete = self.lacking(answer["sizes"])
        for name, why in printable(answer["unread"]).items():
            self.incomplete = f"{name} cannot be read there: {why}"
        self.full = answer["free_bytes"] < FULL
        self.ended = int(answer["code"])

    def lacking(self, sizes: dict[str, int]) -> str | None:
        """Which of some files is not here as long as it is there."""
        for name, size in sizes.items():
            if self._home is not None and goes_home(name, self._leaves):
                here = self._home / name
                if not here.is_file() or here.stat().st_size != size:
                    return f"{name} has not come home whole"
        return None


def printable(value: Any) -> Any:
    """What a host says, without what would move a terminal's cursor."""
    if isinstance(value, str):
        return "".join(c if c.isprintable() or c == "\n" else "?" for c in value)
    if isinstance(value, dict):
        return {printable(key): printable(item) for key, item in value.items()}
    return [printable(item) for item in value] if isinstance(value, list) else value
