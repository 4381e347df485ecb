"""FlagPerf's settings in Python, read by their syntax tree. Nothing of them is run."""

from __future__ import annotations

import ast
from collections import ChainMap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from proofmark.errors import ConfigurationError
from proofmark.flagperf.adaptation.python.code import parsed
from proofmark.flagperf.adaptation.python.literals import (
    LARGEST,
    LEVELS,
    Assigned,
    NotLiteral,
    check_depth,
    joined,
    literal_of,
    quoted,
    room_after,
)
from proofmark.rules.yaml.strict import text_of

DEEPEST = 8
"""Modules that import each other."""

MOST = 2_000
"""Names that a file sets, or lines that are none."""

NO_SETTINGS = frozenset({"__future__", "os", "typing"})
"""Modules that say how a file is read, of what type a value is, or what a line that computes needs: nothing is lost
without them."""


class Refused(NamedTuple):
    """A line that is no literal assignment. `key` is the name that it would have set, or else the line."""

    file: str
    line: int
    key: str
    what: str


class Replaced(NamedTuple):
    """A name that was set before, and the line that sets it again; `known` is whether that could be read."""

    name: str
    before: Assigned
    file: str
    line: int
    known: bool


@dataclass
class PythonFile:
    """What of a file is literal, by name, and every line that is not."""

    values: dict[str, Assigned] = field(default_factory=dict)
    refused: list[Refused] = field(default_factory=list)
    modules: dict[str, Assigned] = field(default_factory=dict)
    """What the modules have that it imports whole, as it calls it: `common.lr`."""
    replaced: list[Replaced] = field(default_factory=list)
    """Names that were set before."""
    sources: set[Path] = field(default_factory=set)
    """All files that it imports."""

    @property
    def plain(self) -> dict[str, Any]:
        """The values, without their places."""
        return {key: assigned.value for key, assigned in self.values.items()}

    @property
    def is_unread(self) -> bool:
        """Whether nothing of it could be read: it is refused as a whole."""
        return not self.values and any(not each.key and not each.line for each in self.refused)

    def put(self, name: str, value: Assigned) -> None:
        """Keep the value of a name."""
        before = self.values.get(name)
        if before is not None and before != value:
            self.replaced.append(Replaced(name, before, value.file, value.line, known=True))
        self.values[name] = value

    @property
    def known(self) -> Mapping[str, Assigned]:
        """What a line of it may take."""
        return ChainMap(self.values, self.modules)


def read_python(path: Path, root: Path, folders: Iterable[Path] = ()) -> PythonFile:
    """Read a file's literal assignments; names are resolved in it and in the modules that it imports.

    Args:
        path: the file.
        root: the checkout, out of which nothing is read.
        folders: where modules that it imports may lie, beside its own folder.
    """
    return _Reader(root, (path.parent, *folders)).read(path, ())


class _Unread(NotLiteral):
    """What an import sets and nobody can read, by the names that it has here."""

    def __init__(self, what: str, names: Iterable[str]) -> None:
        super().__init__(what)
        self.names = tuple(names)


class _Reader:
    """Reads one file, and those that it imports."""

    def __init__(self, root: Path, folders: Iterable[Path]) -> None:
        self._root, self._folders = root, tuple(folders)

    def read(self, path: Path, within: tuple[Path, ...]) -> PythonFile:
        file, shown = PythonFile(), str(path)
        try:
            tree = parsed(text_of(path, self._root))
        except ConfigurationError as error:
            file.refused.append(Refused(shown, 0, "", error.problems[0].what))
            return file
        except NotLiteral as error:
            file.refused.append(Refused(shown, 0, "", str(error)))
            return file
        for statement in tree.body:
            if len(file.values) + len(file.refused) > MOST:
                file.refused.append(
                    Refused(shown, statement.lineno, "", "is where reading ends: no settings are so many")
                )
                break
            try:
                check_depth(statement)
                self._take(file, shown, statement, (*within, path))
            except NotLiteral as error:
                self._refuse(file, shown, statement, error)
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
                raise NotLiteral(f"sets more than names: {quoted(statement)}")
            self._set(file, shown, statement, names, literal_of(statement.value, file.known))
        elif isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Name):
            name = statement.target.id
            if not isinstance(statement.op, ast.Add) or name not in file.values:
                raise NotLiteral(f"computes: {quoted(statement)}")
            added = literal_of(statement.value, file.known)
            self._set(file, shown, statement, [name], joined(file.values[name].value, added, statement))
        elif not isinstance(statement, ast.Pass) and not _is_docstring(statement):
            raise NotLiteral(f"computes: {quoted(statement)}")

    def _set(self, file: PythonFile, shown: str, statement: ast.stmt, names: list[str], value: Any) -> None:
        if room_after(value, LARGEST, LEVELS) < 0:
            raise NotLiteral(f"is larger than a setting can be: {quoted(statement)}")
        for name in names:
            file.put(name, Assigned(value, shown, statement.lineno))

    def _refuse(self, file: PythonFile, shown: str, statement: ast.stmt, what: NotLiteral) -> None:
        """Whatever it would have set is unknown from here on."""
        names = dict.fromkeys(
            node.id
            for node in ast.walk(statement)
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store | ast.Del)
        )
        unread = list(what.names if isinstance(what, _Unread) else _defined(statement, file.values))
        for module in (*names, *unread):
            file.modules = {name: each for name, each in file.modules.items() if not name.startswith(f"{module}.")}
        names |= dict.fromkeys(name for name in unread if name in file.values)
        changeable = {name for name, each in file.values.items() if isinstance(each.value, list | dict)}
        names |= dict.fromkeys(name for name in map(_changed, ast.walk(statement)) if name in changeable)
        before = {name: file.values.pop(name) for name in names if name in file.values}
        file.replaced += [Replaced(name, each, shown, statement.lineno, known=False) for name, each in before.items()]
        file.refused += [
            Refused(shown, statement.lineno, name, str(what)) for name in names or [f"line: {quoted(statement)}"]
        ]

    def _import(self, file: PythonFile, statement: ast.Import | ast.ImportFrom, within: tuple[Path, ...]) -> None:
        module = statement.module or "" if isinstance(statement, ast.ImportFrom) else ""
        if isinstance(statement, ast.Import) or not module:
            self._import_whole(file, statement.names, within)
            return
        if module in NO_SETTINGS:
            return
        path = self._find(module, within)
        if path is None:
            what = f"imports {module}, which is not a file of the adaptation, so it is not read"
            raise _Unread(what, _imported(statement, file.values))
        found = self._of_module(file, path, within)
        named = [(alias.name, alias.asname or alias.name) for alias in statement.names if alias.name != "*"]
        if len(named) < len(statement.names):
            named += [(name, name) for name in found.values if name[:1] != "_"]
            named += [(each.key, each.key) for each in found.refused if each.key in file.values]
        for name, called in named:
            if name in found.values:
                file.put(called, found.values[name])
        if unread := {called: name for name, called in named if name not in found.values}:
            what = f"imports {', '.join(unread.values())}, which is not a literal value in {path.name}"
            raise _Unread(what, unread)

    def _import_whole(self, file: PythonFile, aliases: Sequence[ast.alias], within: tuple[Path, ...]) -> None:
        missing = []
        for alias in aliases:
            path = self._find(alias.name, within)
            if path is not None:
                found = self._of_module(file, path, within)
                called = alias.asname or alias.name
                file.modules |= {f"{called}.{name}": each for name, each in found.values.items()}
            elif alias.name not in NO_SETTINGS:
                missing.append(alias.name)
        if missing:
            named = ", ".join(missing)
            what = f"imports {named}, which is not a file of the adaptation, so it is not read"
            raise _Unread(what, [alias.asname or alias.name.partition(".")[0] for alias in aliases])

    def _of_module(self, file: PythonFile, path: Path, within: tuple[Path, ...]) -> PythonFile:
        """A module that a file imports."""
        found = self.read(path, within)
        file.refused += found.refused
        file.replaced += found.replaced
        file.sources |= {path, *found.sources}
        return found

    def _find(self, module: str, within: tuple[Path, ...]) -> Path | None:
        """The file of a module, which lies beside the one that imports it or in a folder of the case's settings."""
        name = module.rpartition(".")[2]
        if not name.isidentifier() or len(within) > DEEPEST:
            return None
        files = (folder / f"{name}.py" for folder in self._folders)
        return next((file for file in files if file.is_file() and file not in within), None)


def _imported(statement: ast.Import | ast.ImportFrom, known: Iterable[str]) -> Iterator[str]:
    """The names that an import may set; of one that imports all, any that is known."""
    for alias in statement.names:
        yield from known if alias.name == "*" else [alias.asname or alias.name.partition(".")[0]]


def _defined(statement: ast.stmt, known: Iterable[str]) -> Iterator[str]:
    """The names that functions, classes, imports and patterns in a statement may set; not those within the body of a
    function or a class."""
    left: list[ast.AST] = [statement]
    for node in left:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
            continue
        left += ast.iter_child_nodes(node)
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield from _imported(node, known)
        elif isinstance(node, ast.MatchAs | ast.MatchStar | ast.ExceptHandler) and node.name:
            yield node.name
        elif isinstance(node, ast.MatchMapping) and node.rest:
            yield node.rest


def _changed(node: ast.AST) -> str:
    """The name whose value a part of a line may change: that of `a[0] = 1`, of `del a.b`, of `a.append(1)`."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        node = node.func
    elif not isinstance(node, ast.Subscript | ast.Attribute) or isinstance(node.ctx, ast.Load):
        return ""
    while isinstance(node, ast.Subscript | ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def _is_docstring(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
