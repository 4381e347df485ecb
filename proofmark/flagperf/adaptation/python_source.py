"""FlagPerf's settings in Python, read by their syntax tree. Nothing of them is run."""

from __future__ import annotations

import ast
import math
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from proofmark.errors import ConfigurationError
from proofmark.rules.strict_yaml import text_of

DEEPEST = 8
"""Modules that import each other."""

MOST, LARGEST, LEVELS = 2_000, 100_000, 20
"""Names that a file sets or lines that are none, values and characters of a value, and how deep it may be: names are
resolved, so that a short file can say a large value."""

LONGEST = 60
"""Characters of a line that are quoted."""


class Assigned(NamedTuple):
    """A literal value and where it was given to its name."""

    value: Any
    file: str
    line: int


class Refused(NamedTuple):
    """A line that is no literal assignment. `key` is the name that it would have set, empty where it sets none."""

    file: str
    line: int
    key: str
    what: str


@dataclass
class PythonFile:
    """What of a file is literal, by name, and every line that is not."""

    values: dict[str, Assigned] = field(default_factory=dict)
    refused: list[Refused] = field(default_factory=list)

    @property
    def plain(self) -> dict[str, Any]:
        """The values alone."""
        return {key: assigned.value for key, assigned in self.values.items()}


class _NotLiteral(Exception):
    """With what it is in the place of a literal."""


def read_python(path: Path, root: Path, folders: Iterable[Path] = ()) -> PythonFile:
    """Read a file's literal assignments; names are resolved in it and in the modules that it imports.

    Args:
        path: the file.
        root: the checkout, out of which nothing is read.
        folders: where modules that it imports may lie, beside its own folder.
    """
    return _Reader(root, (path.parent, *folders)).read(path, ())


def functions_of(path: Path, root: Path) -> list[tuple[str, int]]:
    """Names and lines of the functions that a file defines, those of its classes too; none where it can't be read."""
    try:
        tree = _parsed(text_of(path, root))
    except (ConfigurationError, _NotLiteral):
        return []
    return [(node.name, node.lineno) for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]


def returned_by(path: Path, root: Path, function: str) -> list[ast.expr]:
    """The parts of the tuple that a function returns at last; none where there is no such thing."""
    try:
        tree = _parsed(text_of(path, root))
    except (ConfigurationError, _NotLiteral):
        return []
    found = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name == function]
    returns = [node.value for each in found for node in ast.walk(each) if isinstance(node, ast.Return)]
    return list(returns[-1].elts) if returns and isinstance(returns[-1], ast.Tuple) else []


def names_in(path: Path, root: Path) -> set[str]:
    """All names that a file's code reads."""
    try:
        tree = _parsed(text_of(path, root))
    except (ConfigurationError, _NotLiteral):
        return set()
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}


def _parsed(text: str) -> ast.Module:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text)
    except SyntaxError as error:
        raise _NotLiteral(f"is no Python: {error.msg} (line {error.lineno})") from None
    except (ValueError, RecursionError, MemoryError) as error:
        raise _NotLiteral(f"is no Python that can be read: {type(error).__name__}") from None


class _Reader:
    """One file's, and of those that it imports."""

    def __init__(self, root: Path, folders: Iterable[Path]) -> None:
        self._root, self._folders = root, tuple(folders)

    def read(self, path: Path, within: tuple[Path, ...]) -> PythonFile:
        file, shown = PythonFile(), str(path)
        try:
            tree = _parsed(text_of(path, self._root))
        except ConfigurationError as error:
            file.refused.append(Refused(shown, 0, "", error.problems[0].what))
            return file
        except _NotLiteral as error:
            file.refused.append(Refused(shown, 0, "", str(error)))
            return file
        for statement in tree.body:
            if len(file.values) + len(file.refused) > MOST:
                file.refused.append(
                    Refused(shown, statement.lineno, "", "is where reading ends: no settings are so many")
                )
                break
            try:
                self._take(file, shown, statement, (*within, path))
            except _NotLiteral as error:
                self._refuse(file, shown, statement, str(error))
            except RecursionError:
                self._refuse(file, shown, statement, "is nested too deeply")
        return file

    def _take(self, file: PythonFile, shown: str, statement: ast.stmt, within: tuple[Path, ...]) -> None:
        if isinstance(statement, ast.Import | ast.ImportFrom):
            self._import(file, statement, within)
        elif isinstance(statement, ast.Assign | ast.AnnAssign):
            if statement.value is None:
                return
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            names = [target.id for target in targets if isinstance(target, ast.Name)]
            if len(names) < len(targets):
                raise _NotLiteral(f"sets more than names: {_quoted(statement)}")
            self._set(file, shown, statement, names, literal_of(statement.value, file.values))
        elif isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Name):
            name = statement.target.id
            if not isinstance(statement.op, ast.Add) or name not in file.values:
                raise _NotLiteral(f"computes: {_quoted(statement)}")
            added = literal_of(statement.value, file.values)
            self._set(file, shown, statement, [name], _joined(file.values[name].value, added, statement))
        elif not isinstance(statement, ast.Pass) and not _is_docstring(statement):
            raise _NotLiteral(f"computes: {_quoted(statement)}")

    def _set(self, file: PythonFile, shown: str, statement: ast.stmt, names: list[str], value: Any) -> None:
        if _room_after(value, LARGEST, LEVELS) < 0:
            raise _NotLiteral(f"is larger than a setting can be: {_quoted(statement)}")
        file.values |= dict.fromkeys(names, Assigned(value, shown, statement.lineno))

    def _refuse(self, file: PythonFile, shown: str, statement: ast.stmt, what: str) -> None:
        """Whatever it would have set is unknown from here on."""
        names = dict.fromkeys(
            node.id for node in ast.walk(statement) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
        )
        for name in names:
            file.values.pop(name, None)
        file.refused += [Refused(shown, statement.lineno, name, what) for name in names or [""]]

    def _import(self, file: PythonFile, statement: ast.Import | ast.ImportFrom, within: tuple[Path, ...]) -> None:
        module = statement.module or "" if isinstance(statement, ast.ImportFrom) else ""
        wanted = [alias.name for alias in statement.names]
        if isinstance(statement, ast.Import):
            missing = [name for name in wanted if self._find(name, within) is None]
            if missing:
                raise _NotLiteral(
                    f"imports {', '.join(missing)}, which is no file of the adaptation: nothing of it is read"
                )
            return
        path = self._find(module, within)
        if path is None:
            raise _NotLiteral(f"imports {module or '.'}, which is no file of the adaptation: nothing of it is read")
        found = self.read(path, within)
        file.refused += found.refused
        for alias in statement.names:
            names = [name for name in found.values if name[:1] != "_"] if alias.name == "*" else [alias.name]
            for name in names:
                if name not in found.values:
                    raise _NotLiteral(f"imports {name}, which is no literal value in {path.name}")
                file.values[alias.asname or name] = found.values[name]

    def _find(self, module: str, within: tuple[Path, ...]) -> Path | None:
        """The file of a module, which lies beside the one that imports it or in a folder of the case's settings."""
        name = module.rpartition(".")[2]
        if not name.isidentifier() or len(within) > DEEPEST:
            return None
        files = (folder / f"{name}.py" for folder in self._folders)
        return next((file for file in files if file.is_file() and file not in within), None)


def literal_of(node: ast.expr, names: Mapping[str, Assigned]) -> Any:
    """A plain value: a constant, a known name, a list or mapping of these, or texts or lists put together.

    Raises:
        _NotLiteral: it is anything else.
    """
    if isinstance(node, ast.Constant):
        return _plain(node.value, node)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
        number = literal_of(node.operand, names)
        if isinstance(number, bool) or not isinstance(number, int | float):
            raise _NotLiteral(f"computes: {_quoted(node)}")
        return -number if isinstance(node.op, ast.USub) else number
    if isinstance(node, ast.List | ast.Tuple):
        return [literal_of(each, names) for each in node.elts]
    if isinstance(node, ast.Dict):
        return dict(_pairs(node, lambda each: literal_of(each, names)))
    if isinstance(node, ast.Name):
        if node.id in names:
            return names[node.id].value
        raise _NotLiteral(f"takes '{node.id}', which has no literal value here")
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return _joined(literal_of(node.left, names), literal_of(node.right, names), node)
    raise _NotLiteral(f"computes: {_quoted(node)}")


def _joined(one: Any, other: Any, node: ast.AST) -> Any:
    """Texts or lists put together, as FlagPerf's mutable_params and container options are; nothing else is computed."""
    texts, lists = (all(isinstance(each, kind) for each in (one, other)) for kind in (str, list))
    if (texts or lists) and len(one) + len(other) <= LARGEST:
        return one + other
    raise _NotLiteral(f"computes: {_quoted(node)}")


def _room_after(value: Any, room: int, levels: int) -> int:
    """What a value leaves of the room that there is; less than nothing where it is too large, or too deep."""
    room -= len(value) if isinstance(value, str) else 1
    if isinstance(value, dict):
        room -= sum(map(len, value))
    for part in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        if room < 0 or not levels:
            return -1
        room = _room_after(part, room, levels - 1)
    return room


def _pairs(node: ast.Dict, value_of: Callable[[ast.expr], Any]) -> Iterator[tuple[str, Any]]:
    for key, value in zip(node.keys, node.values, strict=True):
        if not isinstance(key, ast.Constant) or not isinstance(key.value, str):
            raise _NotLiteral(f"has a key that is no text: {_quoted(node)}")
        yield key.value, value_of(value)


def _plain(value: Any, node: ast.expr) -> Any:
    whole = isinstance(value, int) and value.bit_length() <= 63
    if value is None or whole or (isinstance(value, float) and math.isfinite(value)):
        return value
    if isinstance(value, str) and value.isprintable():
        return value
    raise _NotLiteral(f"is no plain value: {_quoted(node)}")


def _quoted(node: ast.AST) -> str:
    text = " ".join(ast.unparse(node).split())
    return text if len(text) <= LONGEST else f"{text[:LONGEST]} ..."


def _is_docstring(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
