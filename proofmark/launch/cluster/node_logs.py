"""What a node's agent and ranks wrote, as it comes home, and how the agent ended."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from proofmark.launch.far_end.protocol import LOG_NAME

FULL = 1 << 20
"""Bytes on a disk below which it is full."""


class NodeLogs:
    """One node's logs of one job. Nothing that a host says of them is believed before it was looked at."""

    def __init__(self, home: Path | None) -> None:
        """Keep them in `home`; nothing is kept without one."""
        self._home = home
        self.ended: int | None = None
        """The exit code of the agent."""
        self.full = False
        """Whether the disk was, when the agent ended."""
        self.incomplete: str | None = None
        """Which log has not come whole, and why, after the agent's end."""

    def add(self, name: str, offset: int, piece: bytes) -> None:
        """Add what follows of a log.

        Raises:
            ValueError: it is no log, or something else follows.
            OSError: it can't be written here.
        """
        if self._home is None:
            return
        if not LOG_NAME.fullmatch(name):
            raise ValueError(name)
        with (self._home / name).open("ab") as stream:
            if stream.tell() != offset:
                raise ValueError(offset)
            stream.write(piece)

    def end(self, told: dict[str, Any]) -> None:
        """Take the agent's end, which counts if all of its logs have come."""
        for name, size in told["sizes"].items():
            if self._home is not None and LOG_NAME.fullmatch(name):
                here = self._home / name
                if not here.is_file() or here.stat().st_size != size:
                    self.incomplete = f"{name} has not come home whole"
        for name, why in printable(told["unread"]).items():
            self.incomplete = f"{name} cannot be read there: {why}"
        self.full = told["free_bytes"] < FULL
        self.ended = int(told["code"])


def printable(value: Any) -> Any:
    """What a host says, without what would move a terminal's cursor."""
    if isinstance(value, str):
        return "".join(c if c.isprintable() or c == "\n" else "?" for c in value)
    if isinstance(value, dict):
        return {printable(key): printable(item) for key, item in value.items()}
    return [printable(item) for item in value] if isinstance(value, list) else value
