"""YAML as data: a safe loader that also refuses duplicate keys and keys that are not strings."""

from __future__ import annotations

from collections.abc import Hashable
from pathlib import Path
from typing import Any

import yaml

from harness.errors import ConfigurationError, Problem

DEEPEST, MOST = 50, 100_000
"""Levels and values that a file of ours may have."""


class _StrictLoader(yaml.SafeLoader):
    """SafeLoader whose mappings have unique string keys."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[str] = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            line = key_node.start_mark.line + 1
            if not isinstance(key, str):
                raise yaml.constructor.ConstructorError(
                    None, None, f"key {key!r} on line {line} is not a string", key_node.start_mark
                )
            if key in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"duplicate key '{key}' on line {line}", key_node.start_mark
                )
            seen.add(key)
        return super().construct_mapping(node, deep)


def load_mapping(path: Path, where: str | None = None) -> dict[str, Any]:
    """Read the YAML mapping in `path`; an empty file is an empty mapping.

    Args:
        path: the file.
        where: how error messages call it (default: the path).

    Raises:
        ConfigurationError: unreadable, not UTF-8, not YAML, a duplicate key, or not a mapping.
    """
    where = where or str(path)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError([Problem(where, "", f"cannot be read: {error}")]) from None
    content = parse(text, where)
    if content is None:
        return {}
    if not isinstance(content, dict):
        what = f"expected a mapping of keys to values, found {type(content).__name__}"
        raise ConfigurationError([Problem(where, "", what)])
    return content


def parse(text: str, where: str) -> Any:
    """Parse one YAML document.

    Raises:
        ConfigurationError: not YAML, a duplicate key, or nesting too deep to parse.
    """
    try:
        content = yaml.load(text, Loader=_StrictLoader)  # noqa: S506 (a SafeLoader)
        _refuse_what_no_reader_takes(content)
        return content
    except yaml.MarkedYAMLError as error:
        line = f"line {error.problem_mark.line + 1}: " if error.problem_mark else ""
        raise ConfigurationError([Problem(where, "", f"not valid YAML: {line}{error.problem}")]) from None
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ConfigurationError([Problem(where, "", f"not valid YAML: {reason}")]) from None


def _refuse_what_no_reader_takes(value: Any) -> None:
    """Integers beyond 64 bits, text that UTF-8 can't hold, and what aliases make endless or huge.

    Raises:
        ValueError: there is one.
    """
    left = [(value, 0)]
    seen = 0
    while left:
        item, depth = left.pop()
        seen += 1
        if depth > DEEPEST or seen > MOST:
            raise ValueError("it is nested too deeply, refers to itself, or is too large")
        if isinstance(item, int) and item.bit_length() > 63:
            raise ValueError("an integer is larger than 64 bits can hold")
        if isinstance(item, str):
            item.encode("utf-8")
        inner = [*item.keys(), *item.values()] if isinstance(item, dict) else item if isinstance(item, list) else ()
        left += [(each, depth + 1) for each in inner]
