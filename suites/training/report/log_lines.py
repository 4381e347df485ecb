"""Lines of a log that a mark and JSON make up, written after the fact from a record's own times."""

from __future__ import annotations

import json
import sys
from typing import Any

from pydantic_core import from_json, to_json

LONGEST = 1e15
"""Seconds that are told: more is no moment, and may be more than a float in milliseconds."""


class LogLines:
    """Collects lines, each with its time."""

    def __init__(self, mark: str) -> None:
        self._mark = mark
        self._lines: list[tuple[float, str]] = []

    def add(self, time: float, content: dict[str, Any]) -> None:
        """One line. What is not a finite number becomes null: a bare NaN is no JSON.

        Args:
            time: seconds since the epoch.
            content: the line's fields.
        """
        plain = from_json(to_json(content, inf_nan_mode="null"))
        self._lines.append((time, f"{self._mark} {json.dumps(plain, allow_nan=False)}\n"))

    def text(self) -> str:
        """All lines in the order of their times."""
        return "".join(line for _, line in sorted(self._lines, key=lambda entry: entry[0]))


def milliseconds(seconds: float) -> int:
    """Whole milliseconds since the epoch."""
    return round(max(-LONGEST, min(LONGEST, seconds)) * 1000)


def caller() -> dict[str, Any]:
    """File and line of the code that calls the caller, as both formats want them."""
    frame = sys._getframe(2)
    return {"file": f"{frame.f_globals['__name__'].replace('.', '/')}.py", "lineno": frame.f_lineno}
