"""Values and numbers as they are written in messages."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

MISSING = "\N{EN DASH}"
"""What stands where a figure is null. Never 0."""


def literal(value: Any) -> str:
    """null, true and false by their names in YAML, text in quotes, everything else as Python shows it."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, dict):
        return "{" + ", ".join(f"{literal(key)}: {literal(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(literal, value)) + "]"
    return repr(value)


def number(value: float, digits: int = 4) -> str:
    """`digits` significant digits, thousands separated: 12,699 and 418.1 and 0.02340."""
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    if not 1e-15 < abs(value) < 1e21:
        return f"{value:.{digits - 1}e}"
    rounded = float(f"{value:.{digits - 1}e}")
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(rounded))))
    return f"{rounded if decimals else value:,.{decimals}f}"


def digits_apart(value: float | None, bound: float | None, least: int = 3, kind: str = "g") -> int:
    """Digits, significant ones or as many as `kind` has after the point, to which two values that differ are written
    otherwise."""
    if value is None or bound is None or value == bound:
        return least
    return next((digits for digits in range(least, 17) if f"{value:.{digits}{kind}}" != f"{bound:.{digits}{kind}}"), 17)


def percent(share: float) -> str:
    """A share of 1 in percent, to three significant digits."""
    return f"{number(100 * share, 3)} %"


def some(names: Sequence[str], most: int, separator: str = ", ") -> str:
    """The first `most` of them, and how many more there are."""
    more = len(names) - most
    return separator.join(names[:most]) + (f" and {more} more" if more > 0 else "")


def short(path: Path, seen_from: Path | None = None) -> Path:
    """A path relative to the working directory, or to `seen_from`, where it lies below that."""
    base = seen_from or Path.cwd()
    return path.relative_to(base) if path.is_relative_to(base) else path


def plural(item: str) -> str:
    """What several of a case's items are called: image gives images. In scripts without this ending they are as one."""
    return f"{item}s" if item[-1:].isascii() and not item.endswith("s") else item
