"""Markdown that no text of others can break: a table stays a table, and nothing becomes a link, a tag or a mention."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from reports.content.text import printable

LONGEST = 400
"""Characters of a cell or a line that are shown."""

MOST = 200
"""Rows of a table, and lines of a list, that are shown."""

_PLAIN = frozenset(" ,;()%=")
"""Punctuation that means nothing anywhere in a line; a colon or a dot may make a link."""


@dataclass(frozen=True)
class Section:
    """A part of a summary: a table, then lines. All text in it is plain text, of anybody's.

    Attributes:
        title: its heading.
        columns: names of the table's columns; without any there is no table.
        rows: cells, as many as columns.
        lines: what is told in sentences.
    """

    title: str
    columns: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()
    lines: Sequence[str] = ()

    def __bool__(self) -> bool:
        return bool(self.rows or self.lines)


def escaped(text: str) -> str:
    """Any text on one line, as Markdown that shows exactly it: every character that could mean anything is an entity.

    A mention is broken by a character without width: services look for those after entities are resolved.
    """
    shown = printable(text)
    shown = shown if len(shown) <= LONGEST else f"{shown[:LONGEST]} ..."
    return "".join(map(_escaped, shown))


def _escaped(character: str) -> str:
    if character == "@":
        return "&#64;&#8203;"
    harmless = not character.isascii() or character.isalnum() or character in _PLAIN
    return character if harmless else f"&#{ord(character)};"


def markdown(sections: Sequence[Section]) -> str:
    """The sections that say anything, in order."""
    return "\n".join(line for section in sections if section for line in _section(section)) + "\n"


def _section(section: Section) -> Iterator[str]:
    yield from (f"## {escaped(section.title)}", "")
    if section.columns and section.rows:
        yield _row(section.columns)
        yield _row(["---"] * len(section.columns), raw=True)
        yield from map(_row, section.rows[:MOST])
        yield from ("", *_more(len(section.rows)))
    if section.lines:
        yield from (f"- {escaped(line)}" for line in section.lines[:MOST])
        yield from ("", *_more(len(section.lines)))


def _row(cells: Sequence[str], raw: bool = False) -> str:
    return f"| {' | '.join(cells if raw else map(escaped, cells))} |"


def _more(count: int) -> list[str]:
    return [f"and {count - MOST} more", ""] if count > MOST else []
