"""Which modules import which, by their text: nothing is imported to find out."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from proofmark.folders import files_below

LARGEST, LONGEST = 1 << 20, 512
"""Bytes of a module that is read, and letters of a name in one that is imported from: no file has a longer one, and all
its packages together would fill a machine's memory."""

DOTS = 256
"""In what may be one name: Python's parser keeps each of its packages' names whole, which of 100,000 fills a memory."""

_MAY_BE_A_NAME = re.compile(r"[\w\s.\\]+")

DYNAMIC = frozenset(
    "importlib runpy pkgutil builtins __import__ __builtins__ __loader__ exec eval compile marshal".split()
)
"""Names by which a module may import another that its text does not name. An attribute is none: model.eval()."""


Imports = Mapping[str, frozenset[str]]
"""Of each module, by its path, the dotted names that it may import."""


def imports_in(house: Path, *rooms: str) -> Imports:
    """The imports of every module in these folders. One that can't be read may import whatever is beside it.

    Any vendor's are among them, in every vendor's session: nothing is read but files, and none that is too large.
    """
    found = {}
    for path in (path for room in rooms for path in sorted(files_below(house / room)) if path.suffix == ".py"):
        try:
            if not path.is_file() or path.stat().st_size > LARGEST:
                raise ValueError("no module's text")
            text = path.read_text(encoding="utf-8")
        except (OSError, ValueError):
            text = "("
        name = path.relative_to(house).as_posix()
        found[name] = imports_of(name, text)
    return found


def imports_of(path: str, text: str) -> frozenset[str]:
    """The imports of one module."""
    return frozenset(_imported(path, text))


def dependents(changed: str, imports: Imports) -> set[str]:
    """Modules that import `changed`, directly or by others, and itself; it need not be there any more."""
    reached, left = {changed}, [changed]
    while left:
        path = left.pop()
        names = {_dotted(path), _whole_room(path)}
        importers = [other for other, theirs in imports.items() if names & theirs and other not in reached]
        reached.update(importers)
        left += importers
    return reached


def _imported(path: str, text: str) -> Iterator[str]:
    """Dotted names that a module may import; its whole room, where its text does not say which."""
    try:
        if any(name[0].count(".") > DOTS for name in _MAY_BE_A_NAME.finditer(text)):
            raise ValueError("no name has so many parts")
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        yield _whole_room(path)
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield from _with_packages(alias.name) if len(alias.name) <= LONGEST else [_whole_room(path)]
        elif isinstance(node, ast.ImportFrom):
            source = _absolute(path, node)
            if len(source) > LONGEST:
                yield _whole_room(path)
                continue
            yield from _with_packages(source)
            yield from (f"{source}.{alias.name}" for alias in node.names)
            if any(alias.name == "*" for alias in node.names):
                yield _whole_room(path)
        if _is_dynamic(node):
            yield _whole_room(path)


def _is_dynamic(node: ast.AST) -> bool:
    if isinstance(node, ast.Import):
        return any(alias.name.partition(".")[0] in DYNAMIC for alias in node.names)
    if isinstance(node, ast.ImportFrom):
        return (node.module or "").partition(".")[0] in DYNAMIC or any(alias.name in DYNAMIC for alias in node.names)
    return isinstance(node, ast.Name) and node.id in DYNAMIC


def _absolute(path: str, node: ast.ImportFrom) -> str:
    if not node.level:
        return node.module or ""
    package = path.split("/")[: -node.level]
    return ".".join([*package, *([node.module] if node.module else [])])


def _with_packages(name: str) -> Iterator[str]:
    parts = name.split(".")
    yield from (".".join(parts[: count + 1]) for count in range(len(parts)))


def _whole_room(path: str) -> str:
    """What stands for all modules of the same vendor or suite."""
    return ".".join([*path.removesuffix(".py").split("/")[:2], "*"])


def _dotted(path: str) -> str:
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
