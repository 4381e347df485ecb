"""Several records set side by side: a table for the page, a line for each of its subjects on the terminal."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Comparison:
    """What records say together.

    Attributes:
        title: of the table.
        columns: their names; the first is that of the rows.
        rows: cells as text, the first of each its name.
        note: a sentence below the table.
        lines: what the terminal says, by label.
    """

    title: str
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    note: str = ""
    lines: Mapping[str, str] = field(default_factory=dict)
