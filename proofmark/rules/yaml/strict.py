"""YAML as data: a safe loader that also refuses duplicate keys, other keys than text, and values that are not plain.

Numbers are as people read them: 1e-4 and 1E5 are floats, as in YAML 1.2; YAML 1.1 asks for a dot and a sign in them.
What that reads as another number than it looks like (0100 as 64, 1:30 as 90, 1_6 as 16) is text.
"""

from __future__ import annotations

import math
import os
import re
import stat
from collections.abc import Hashable
from pathlib import Path
from typing import Any

import yaml

from proofmark.errors import ConfigurationError, Problem
from proofmark.names import hint

DEEPEST, MOST = 50, 100_000
"""Levels and values that a file of ours may have."""

LARGEST = 1 << 20
"""Bytes that a file of ours may have."""

_UNFIT = (ValueError, LookupError, AttributeError, TypeError, ArithmeticError)
"""What PyYAML raises of a value that does not fit its tag."""

_NEITHER = (yaml.YAMLError, RecursionError, *_UNFIT)
"""Likewise, and of text that is no YAML."""

_DOES_NOT_FIT = "a value does not fit its tag"

_UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x84\x86-\x9f\u202a-\u202e\u2066-\u2069]")
"""Characters that move a terminal's cursor, or turn the direction in which what follows is read."""


class _StrictLoader(yaml.SafeLoader):
    """SafeLoader whose mappings have unique string keys, and which says where a value does not fit its tag."""

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        try:
            return super().construct_object(node, deep)
        except _UNFIT as error:
            reason = str(error).splitlines()[0] if isinstance(error, ValueError) and str(error) else _DOES_NOT_FIT
            raise yaml.constructor.ConstructorError(None, None, reason, node.start_mark) from None

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: dict[str, int] = {}
        for key_node, _ in node.value:
            line = key_node.start_mark.line + 1
            if not isinstance(key_node, yaml.ScalarNode) or key_node.tag != "tag:yaml.org,2002:str":
                shown = f" {key_node.value}" if isinstance(key_node, yaml.ScalarNode) else ""
                raise yaml.constructor.ConstructorError(
                    None, None, f"key{shown} on line {line} is not a string", key_node.start_mark
                )
            key = str(self.construct_scalar(key_node))
            if key in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"duplicate key '{key}', first on line {seen[key]}", key_node.start_mark
                )
            seen[key] = line
        return super().construct_mapping(node, deep)


_INT, _FLOAT = "tag:yaml.org,2002:int", "tag:yaml.org,2002:float"
_NUMBERS = {
    _INT: r"[-+]?(?:0|[1-9][0-9]*)$",
    _FLOAT: r"[-+]?(?:(?:[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?|[0-9]+[eE][-+]?[0-9]+|\.(?:inf|Inf|INF))$"
    r"|\.(?:nan|NaN|NAN)$",
}

_NUMBER = re.compile(r"[-+]?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")
LONGEST_NUMBER = 40
"""Characters."""

_StrictLoader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in known if tag not in _NUMBERS]
    for first, known in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
for _tag, _pattern in _NUMBERS.items():
    _StrictLoader.add_implicit_resolver(_tag, re.compile(_pattern), list("-+.0123456789"))


def load_mapping(path: Path, root: Path | None = None) -> dict[str, Any]:
    """Read the YAML mapping in `path`; an empty file is an empty mapping.

    Args:
        path: the file.
        root: the tree that it must lie in, once links are followed; None of a file that the user names.

    Raises:
        ConfigurationError: unreadable, outside its tree, too large, not UTF-8, not YAML, a duplicate key, or not a
            mapping.
    """
    where = str(path)
    content = parse(text_of(path, root), where)
    if content is None:
        return {}
    if not isinstance(content, dict):
        what = f"expected a mapping of keys to values, found {type(content).__name__}"
        raise ConfigurationError([Problem(where, "", what)])
    return content


def number_of(text: str) -> int | float | None:
    """The number that people read in a text, as it would be without its quotes; None if there is none."""
    if len(text) > LONGEST_NUMBER or not _NUMBER.fullmatch(text):
        return None
    number = int(text) if text.lstrip("+-").isdecimal() else float(text)
    return None if _not_plain(number) else number


def text_of(path: Path, root: Path | None = None) -> str:
    """A file's text, looked at as that of `load_mapping`.

    Raises:
        ConfigurationError: unreadable, outside its tree, too large, or not UTF-8.
    """
    try:
        return _read(path, root).removeprefix("\ufeff")  # a mark of Windows' editors
    except UnicodeDecodeError:
        what = "cannot be read: it is not UTF-8; save it as that"
    except FileNotFoundError as error:
        beside = [each.name for each in path.parent.glob("*.y*ml")]
        what = f"cannot be read: {error.strerror}{hint(path.name, beside)}"
    except (OSError, ValueError, RuntimeError) as error:
        what = f"cannot be read: {getattr(error, 'strerror', None) or error}"
    raise ConfigurationError([Problem(str(path), "", what)])


def _read(path: Path, root: Path | None) -> str:
    """A file's text. What lies elsewhere is not opened: its content would get into records and error messages.

    Raises:
        ValueError: it is outside its tree, no file, or too large.
        OSError: it is not there, or not ours to read.
    """
    if root is not None and not path.resolve().is_relative_to(root.resolve()):
        raise ValueError(f"it is a link out of {root}; put the file itself there")
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as stream:  # a pipe without a writer blocks
        if root is not None and not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
            raise ValueError("it is not a regular file")
        os.set_blocking(stream.fileno(), True)
        content = stream.read(LARGEST + 1)
    if len(content) > LARGEST:
        raise ValueError(f"it is larger than {LARGEST >> 20} MiB")
    return content.decode("utf-8")


def _advice(error: yaml.MarkedYAMLError) -> str:
    """What to do where a block doesn't go on: the parser only says what it expected."""
    parsed = str(error.problem)
    amiss = parsed.startswith("expected <block end>") or parsed == "mapping values are not allowed here"
    return "; keys beside each other need the same indentation, and those below them a deeper one" if amiss else ""


def parse(text: str, where: str) -> Any:
    """Parse one YAML document.

    Raises:
        ConfigurationError: not YAML, a duplicate key, nesting too deep to parse, or a value that is not plain: null,
            true, false, a finite number, text, or a list or mapping of these.
    """
    try:
        content = yaml.load(text, Loader=_StrictLoader)  # noqa: S506 (a SafeLoader)
    except yaml.MarkedYAMLError as error:
        line = f"line {error.problem_mark.line + 1}: " if error.problem_mark else ""
        raise ConfigurationError(
            [Problem(where, "", f"not valid YAML: {line}{error.problem}{_advice(error)}")]
        ) from None
    except _NEITHER as error:
        known = isinstance(error, yaml.YAMLError | RecursionError | ValueError)
        reason = str(error).splitlines()[0] if known and str(error) else _DOES_NOT_FIT
        raise ConfigurationError([Problem(where, "", f"not valid YAML: {reason}")]) from None
    problem = _no_reader_takes(content, where)
    if problem:
        raise ConfigurationError([problem])
    return content


def _no_reader_takes(value: Any, where: str) -> Problem | None:
    """The first value that is not plain, text that UTF-8 can't hold, and what aliases make endless or huge."""
    left = [(value, 0, "")]
    seen = letters = 0
    while left:
        item, depth, key = left.pop()
        seen += 1
        letters += len(item) if isinstance(item, str) else 0
        if depth > DEEPEST or seen > MOST or letters > 2 * LARGEST:  # by aliases: no file has more than it is long
            return Problem(where, "", "not valid YAML: it is nested too deeply, refers to itself, or is too large")
        what = _not_plain(item)
        if what:
            return Problem(where, key, what)
        if isinstance(item, dict):
            left += [(each, depth + 1, f"{key}.{name}" if key else name) for name, each in item.items()]
            left += [(name, depth + 1, key) for name in item]
        elif isinstance(item, list):
            left += [(each, depth + 1, key) for each in item]
    return None


def _not_plain(item: Any) -> str | None:
    if isinstance(item, int) and item.bit_length() > 63:
        return "an integer is larger than 64 bits can hold"
    if isinstance(item, float) and not math.isfinite(item):
        return f"expected a finite number, found {item}"
    if isinstance(item, str):
        try:
            item.encode("utf-8")
        except UnicodeEncodeError:
            return "not valid YAML: text that UTF-8 cannot hold"
        if found := _UNSEEN.search(item):
            return f"text with {found[0].encode('unicode_escape').decode()}, which alters what is shown; remove it"
    elif not isinstance(item, bool | int | float | list | dict | None):
        return f"a {type(item).__name__} is not a plain value; write it in quotes, or as a list"
    return None
