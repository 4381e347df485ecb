"""On which line of a YAML file a key stands."""

from __future__ import annotations

from functools import lru_cache

import yaml


def line_of(text: str, key: str) -> int:
    """The line, from 1, of a key such as `batch_size` or `unsupported.0.case`; of its nearest parent that is there.

    Of a text that is no YAML it is the line where reading ended; of one whose key is not there, the first.
    """
    try:
        node = _composed(text)
    except yaml.MarkedYAMLError as error:
        return error.problem_mark.line + 1 if error.problem_mark else 1
    except (yaml.YAMLError, ValueError, RecursionError):
        return 1
    line, left = 1, key
    while left and (found := _step(node, left)):
        line, node, left = found
    return line


def lines_of(text: str, within: str = "") -> dict[str, int]:
    """The lines, from 1, of all keys of a YAML mapping, or of the mapping that it has at the key `within`.

    None of a text that is no YAML, or where there is no mapping.
    """
    try:
        node = _composed(text)
    except (yaml.YAMLError, ValueError, RecursionError):
        return {}
    found = _step(node, within) if within else (1, node, "")
    if found is None or not isinstance(found[1], yaml.MappingNode):
        return {}
    return {key.value: key.start_mark.line + 1 for key, _ in found[1].value if isinstance(key, yaml.ScalarNode)}


@lru_cache(maxsize=1)
def _composed(text: str) -> yaml.Node | None:
    """The last text's nodes are kept: many keys of a large file may be asked for, one after another."""
    return yaml.compose(text, Loader=yaml.SafeLoader)


def _step(node: yaml.Node | None, key: str) -> tuple[int, yaml.Node, str] | None:
    """The line and the value of an entry that `key` begins with, and what is left of it."""
    if isinstance(node, yaml.SequenceNode):
        number, _, left = key.partition(".")
        if number.isdecimal() and int(number) < len(node.value):
            entry = node.value[int(number)]
            return entry.start_mark.line + 1, entry, left
    if isinstance(node, yaml.MappingNode):
        for name, value in node.value:
            if isinstance(name, yaml.ScalarNode) and (key == name.value or key.startswith(f"{name.value}.")):
                return name.start_mark.line + 1, value, key[len(name.value) + 1 :]
    return None
