"""Literal values in Python's syntax: what of an expression is one, without running any of it."""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

LARGEST, LEVELS = 100_000, 20
"""Values and characters of a value, and how deep it may be: names are resolved, so that a short file can say a large
value."""

DEEPEST = 100
"""Levels of a statement that is read: what is deeper would end in the interpreter's own limit, wherever that is."""

GREATEST = 10**18
"""No whole number that is computed here, nor any on the way to it, is as large."""

_OPERATORS: Mapping[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
}

LONGEST = 60
"""Characters of a line that are quoted."""


class Assigned(NamedTuple):
    """A literal value and where it was given to its name."""

    value: Any
    file: str
    line: int


class NotLiteral(Exception):
    """An expression is no literal; the text says what it is instead."""


def check_depth(statement: ast.stmt) -> None:
    """Refuse an expression that is nested too deeply to be read.

    Raises:
        NotLiteral: it is nested too deeply.
    """
    level: list[ast.AST] = [statement]
    for _ in range(DEEPEST):
        level = [child for node in level for child in ast.iter_child_nodes(node)]
    if level:
        raise NotLiteral("is nested too deeply")


def literal_of(node: ast.expr, names: Mapping[str, Assigned]) -> Any:
    """A plain value: a constant, a known name, a module's, a list or mapping of these, or texts or lists put together.

    Of arithmetic only sums, differences and products of whole numbers that are written out are one.

    Raises:
        NotLiteral: it is anything else.
    """
    if isinstance(node, ast.Constant):
        return _plain(node.value, node)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
        number = literal_of(node.operand, names)
        if isinstance(number, bool) or not isinstance(number, int | float):
            raise NotLiteral(f"computes: {quoted(node)}")
        return -number if isinstance(node.op, ast.USub) else number
    if isinstance(node, ast.List | ast.Tuple):
        return [literal_of(each, names) for each in node.elts]
    if isinstance(node, ast.Dict):
        return dict(_pairs(node, lambda each: literal_of(each, names)))
    if isinstance(node, ast.Name):
        if node.id in names:
            return names[node.id].value
        raise NotLiteral(f"takes '{node.id}', which has no literal value here")
    if isinstance(node, ast.Attribute) and (whole := _dotted(node)) in names:
        return names[whole].value
    if isinstance(node, ast.JoinedStr) and all(isinstance(part, ast.Constant) for part in node.values):
        text = "".join(str(part.value) for part in node.values if isinstance(part, ast.Constant))
        return _plain(text, node)
    if (number := _whole(node)) is not None:
        return number
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return joined(literal_of(node.left, names), literal_of(node.right, names), node)
    raise NotLiteral(f"computes: {quoted(node)}")


def _whole(node: ast.expr) -> int | None:
    """A whole number as it is written out, or the sum, difference or product of such; None for anything else."""
    number = None
    if isinstance(node, ast.Constant) and type(node.value) is int:
        number = node.value
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = _whole(node.operand)
        number = None if inner is None else -inner
    elif isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS and (right := _whole(node.right)) is not None:
        left = _whole(node.left)
        number = None if left is None else _OPERATORS[type(node.op)](left, right)
    return number if number is not None and abs(number) < GREATEST else None


def _dotted(node: ast.expr) -> str:
    """The name of a module's own; empty for anything else."""
    if isinstance(node, ast.Name):
        return node.id
    before = _dotted(node.value) if isinstance(node, ast.Attribute) else ""
    return f"{before}.{node.attr}" if isinstance(node, ast.Attribute) and before else ""


def joined(one: Any, other: Any, node: ast.AST) -> Any:
    """Texts or lists put together, as FlagPerf's mutable_params and container options are; nothing else is computed."""
    texts, lists = (all(isinstance(each, kind) for each in (one, other)) for kind in (str, list))
    if (texts or lists) and len(one) + len(other) <= LARGEST:
        return one + other
    raise NotLiteral(f"computes: {quoted(node)}")


def room_after(value: Any, room: int, levels: int) -> int:
    """What a value leaves of the room that there is; less than nothing where it is too large, or too deep."""
    room -= len(value) if isinstance(value, str) else 1
    if isinstance(value, dict):
        room -= sum(map(len, value))
    for part in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        if room < 0 or not levels:
            return -1
        room = room_after(part, room, levels - 1)
    return room


def _pairs(node: ast.Dict, value_of: Callable[[ast.expr], Any]) -> Iterator[tuple[str, Any]]:
    for key, value in zip(node.keys, node.values, strict=True):
        if not isinstance(key, ast.Constant) or not isinstance(key.value, str):
            raise NotLiteral(f"has a key that is not text: {quoted(node)}")
        yield _plain(key.value, key), value_of(value)


def _plain(value: Any, node: ast.expr) -> Any:
    whole = isinstance(value, int) and value.bit_length() <= 63
    if value is None or whole or (isinstance(value, float) and math.isfinite(value)):
        return value
    if isinstance(value, str) and value.isprintable():
        return value
    raise NotLiteral(f"is not a plain value: {quoted(node)}")


def quoted(node: ast.AST) -> str:
    """A part of a line for a message: short, and in one line."""
    try:
        text = " ".join(ast.unparse(node).split())
    except RecursionError:
        return "(nested too deeply to be shown)"
    return text if len(text) <= LONGEST else f"{text[:LONGEST]} ..."
