"""Values in messages, as a user writes them in YAML."""

from __future__ import annotations

from typing import Any


def literal(value: Any) -> str:
    """null, true and false by their names in YAML, text in quotes, everything else as Python shows it."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, dict):
        return "{" + ", ".join(f"{literal(key)}: {literal(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(literal, value)) + "]"
    return repr(value)
