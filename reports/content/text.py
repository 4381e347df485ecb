"""Numbers, units and values as readers see them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import fields, is_dataclass, replace
from datetime import UTC, datetime
from operator import is_
from typing import Any

from pydantic import BaseModel

from proofmark.literal import MISSING as MISSING
from proofmark.literal import digits_apart
from proofmark.literal import number as number
from proofmark.literal import percent as percent
from proofmark.literal import plural as plural

_NUMBERS = frozenset({float, int})
_PREFIXES = ((1e18, "E"), (1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


def brief(value: float, digits: int = 3) -> str:
    """Three significant digits, whatever the size: 1.00 and 0.000529 and 5.59e-07."""
    return f"{value:#.{digits}g}".rstrip(".") if value else "0"


def score(value: float, target: float | None = None) -> str:
    """An accuracy, to the five decimals that the verdict's reasons have, or as many as tell it from its target; a count
    as one.

    What is too small for those, or too large to be read so, to five significant digits.
    """
    if value and not 1e-3 <= abs(value) < 1e9:
        return brief(value, 5)
    whole = abs(value) > 1 and float(value).is_integer()
    return f"{value:.{0 if whole else digits_apart(value, target, 5, 'f')}f}"


def scaled(value: float, unit: str) -> str:
    """`value` of `unit` with a decimal prefix: 8.18e9 FLOP is 8.180 GFLOP."""
    for factor, prefix in _PREFIXES:
        if abs(value) >= factor:
            return f"{number(value / factor)} {prefix}{unit}"
    return f"{number(value)} {unit}"


def gibibytes(size: float) -> str:
    """Bytes as GiB (2**30), to three significant digits."""
    return f"{number(size / 2**30, 3)} GiB"


def instant(epoch: float) -> str:
    """Seconds since the epoch as a date and time in UTC."""
    try:
        return f"{datetime.fromtimestamp(epoch, UTC):%Y-%m-%d %H:%M:%S} UTC"
    except (OverflowError, OSError, ValueError):  # of no year that there is
        return f"{epoch:g} s since 1970"


def duration(seconds: float) -> str:
    """A time as people say it, in its largest unit or two: 95 s, 12 min, 3 h 5 min, 2 d 4 h."""
    if seconds < 99.5:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    if minutes < 100:
        return f"{minutes} min"
    if minutes < 48 * 60:
        return f"{minutes // 60} h {minutes % 60} min"
    hours = round(minutes / 60)
    return f"{hours // 24} d {hours % 24} h"


def literal(value: Any) -> str:
    """A configuration's value as JSON, so that null, "null", 1 and true don't look alike."""
    return json.dumps(value, ensure_ascii=False, default=str)


def visible(text: str) -> str:
    """`text` with control characters, and others that nobody sees, as escapes: harmless on a page and a terminal.

    Line ends and tabs stay, other white space becomes a space.
    """
    return text if text.isprintable() else "".join(map(_visible, text))


def _visible(character: str) -> str:
    if character.isprintable() or character in "\n\t":
        return character
    return " " if character.isspace() else character.encode("unicode_escape").decode()


def all_visible(value: Any) -> Any:
    """A record, or a part of one, with `visible` done to every text in it; itself, where all can be seen."""
    if value is None or isinstance(value, int | float):
        return value
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, list | tuple):
        if _NUMBERS.issuperset(map(type, value)):  # a series has thousands
            return value
        seen = [all_visible(item) for item in value]
        return value if all(map(is_, seen, value)) else type(value)(seen)
    if isinstance(value, dict):
        return {all_visible(key): all_visible(item) for key, item in value.items()}
    if isinstance(value, BaseModel):
        update = _changed(value, type(value).model_fields)
        return value.model_copy(update=update) if update else value
    if is_dataclass(value) and not isinstance(value, type):
        update = _changed(value, [each.name for each in fields(value)])
        return replace(value, **update) if update else value
    return value


def _changed(value: Any, names: Iterable[str]) -> dict[str, Any]:
    """Those attributes of which a text can't all be seen, made visible."""
    seen = {name: all_visible(getattr(value, name)) for name in names}
    return {name: now for name, now in seen.items() if now is not getattr(value, name)}


def printable(text: str) -> str:
    """`text` on one line, what cannot be seen as escapes."""
    return visible(" ".join(text.splitlines()).replace("\t", " "))
