"""What became of each key of each file: one table, for a terminal, for people, for programs."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from proofmark.errors import harmless
from proofmark.literal import literal

Fate = Literal["taken over", "renamed", "redundant", "differs", "illegal", "unknown", "refused", "by hand"]
FATES: dict[Fate, str] = {  # from what is done to what is to be done
    "taken over": "is in our file under the same name",
    "renamed": "is in our file under our name for it",
    "redundant": "is not needed: the case, the suite, or another of the vendor's settings says it",
    "differs": "is fixed by the case, which has another value here; both are shown",
    "illegal": "may not be set here; the rule is shown",
    "unknown": "is not used here",
    "refused": "is not a literal value, so it was not read; write the value in its place",
    "by hand": "is code, or needs what no file says; what to do is shown",
}
_RANKS = {fate: rank for rank, fate in enumerate(FATES)}

WIDEST = 48
"""Characters of a value that are shown."""

_MARKUP = re.compile(r"[|`<>\[\]()!*~#&@\\]|:(?=//)|(?<=www)\.|(?<![^\W_])_|_(?![^\W_])", re.IGNORECASE)
"""What can be more than itself in a line of Markdown. An underscore within a word is not: keys have those."""


@dataclass(frozen=True)
class Row:
    """What became of one key.

    Attributes:
        file: in the checkout.
        line: from 1; 0 of a whole file.
        key: its name there; empty for the whole file.
        value: as it was there.
        fate: what became of it.
        here: where it stands now, and how; empty where it does not.
        why: the rule, or what to do.
        theirs: what FlagPerf's own rules say of it; empty where they say nothing.
    """

    file: str
    line: int
    key: str
    value: Any
    fate: Fate
    here: str = ""
    why: str = ""
    theirs: str = ""

    @property
    def has_value(self) -> bool:
        """Whether there is a value to show: code has none, and what was not read neither."""
        return self.value is not None or self.fate not in ("refused", "by hand")

    def __str__(self) -> str:
        where = f"{self.file}:{self.line}" if self.line else self.file
        value = f" = {shown(self.value)}" if self.has_value else ""
        named = f"{self.key}{value}" if self.key else "(all of it)"
        arrow = f" -> {self.here}" if self.here else ""
        remarks = "; ".join(filter(None, (self.why, self.theirs)))
        return harmless(f"{self.fate:<10}  {where}  {named}{arrow}" + (f"  ({remarks})" if remarks else ""))


@dataclass(frozen=True)
class MutableCheck:
    """How FlagPerf's training settings keep FlagPerf's own list of what may be changed."""

    files: int
    breaking: int
    """Files that set what is not on the list of their case."""

    assignments: int
    off_the_list: int

    def __str__(self) -> str:
        if not self.files:
            return "no training settings with a mutable_params beside them"
        share = round(100 * self.breaking / self.files)
        return (
            f"{self.breaking} of {self.files} training settings ({share} %) break FlagPerf's own mutable_params, by "
            f"{self.off_the_list} of {self.assignments} assignments: FlagPerf applies them all the same"
        )


def work_last(rows: Sequence[Row]) -> list[Row]:
    """What needs nobody's hand first, so that a terminal's last lines are what is left to do; else in their order."""
    return sorted(rows, key=lambda row: _RANKS[row.fate])


def counted(rows: Sequence[Row]) -> str:
    """How many keys had which fate."""
    counts = Counter(row.fate for row in rows)
    return ", ".join(f"{counts[fate]} {fate}" for fate in FATES if counts[fate]) or "nothing was found"


def as_markdown(rows: Sequence[Row], check: MutableCheck, title: str) -> str:
    """The table for people: what is left to do first."""
    lines = [f"# {title}", "", f"{counted(rows)}. {str(check)[:1].upper()}{str(check)[1:]}.", ""]
    lines += ["| fate | |", "|---|---|", *(f"| {fate} | {meaning} |" for fate, meaning in FATES.items()), ""]
    lines += ["| file | key | value | fate | here | why |", "|---|---|---|---|---|---|"]
    for row in sorted(rows, key=lambda row: -_RANKS[row.fate]):
        where = f"{row.file}:{row.line}" if row.line else row.file
        why = "; ".join(filter(None, (row.why, row.theirs)))
        cells = (
            where,
            row.key,
            shown(row.value) if row.key and row.has_value else "",
            row.fate,
            row.here,
            why,
        )
        lines.append(f"| {' | '.join(map(_escaped, cells))} |")
    return "\n".join(lines) + "\n"


def as_json(rows: Sequence[Row], check: MutableCheck) -> str:
    """The table for programs."""
    return json.dumps({"mutable": asdict(check), "rows": [asdict(row) for row in rows]}, indent=1, ensure_ascii=False)


def _escaped(text: str) -> str:
    """Text of others as Markdown that shows exactly it: no code, link, tag, mention or emphasis comes of it."""
    return _MARKUP.sub(lambda found: f"&#{ord(found[0])};", harmless(text))


def shown(value: Any) -> str:
    """A value as it is written, cut where it is long."""
    text = literal(value)
    return text if len(text) <= WIDEST else f"{text[:WIDEST]} ..."
