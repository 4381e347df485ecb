"""Which modules import which, by their text: nothing is imported to find out."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
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

ABOUT_PACKAGES = frozenset({"PackageNotFoundError", "distribution", "version"})
"""What of `importlib.metadata` imports nothing."""

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)

Imports = Mapping[str, frozenset[str]]
"""Of each module, by its path, the dotted names that it may import."""


def imports_in(house: Path, *rooms: str) -> Imports:
    """The imports of every module in these folders. One that can't be read may import whatever is beside it.

    Any vendor's are among them, in every vendor's session: nothing is read but files, and none that is too large.
    """
    found = {}
    for path in (path for room in rooms for path in sorted(files_below(house / room)) if path.suffix == ".py"):
        name = path.relative_to(house).as_posix()
        found[name] = imports_of(name, _text(path))
    return found


def imports_of(path: str, text: str) -> frozenset[str]:
    """The imports of one module, with the packages that these lie in."""
    return frozenset(each for name in _imported(path, text) for each in (name, *_packages_of(name)))


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


def sources(module: str, folders: Iterable[str]) -> dict[str, str]:
    """The text of a module and of what it may import of its own package, directly or by others, by path.

    What is imported already makes no difference. Of one whose text does not say what it imports it is its whole room.
    Of a package that is there only because another lies in it, it is what is imported with it, and not what its
    functions import.

    Args:
        module: dotted; its first part is the package.
        folders: where that package is.
    """
    package = module.partition(".")[0]
    found: dict[str, str] = {}
    seen = set[tuple[str, bool]]()
    left = {(module, True)}
    while left:
        name, is_named = left.pop()
        seen.add((name, is_named))
        left |= {(parent, False) for parent in _packages_of(name)} - seen
        for path, file in _files_of(name, package, folders):
            if path not in found:
                found[path] = _text(file)
            named = {(each, True) for each in _imported(path, found[path], is_named)}
            left |= {each for each in named - seen if each[0].partition(".")[0] == package}
    return found


def _files_of(name: str, package: str, folders: Iterable[str]) -> Iterator[tuple[str, Path]]:
    """The files of a module or of a whole room, by their paths from beside the package; none where it has no such."""
    inside = name.split(".")[1:]
    for folder in map(Path, folders):
        place = folder.joinpath(*inside)
        if place.name == "*":  # the room of a module that lies in none is the package
            files = files_below(place.parent if place.parent.is_dir() else folder)
        else:
            files = iter((place / "__init__.py", *([place.with_suffix(".py")] if inside else [])))
        for file in files:
            own = file.relative_to(folder)
            if file.suffix == ".py" and file.is_file() and not any(part.startswith(".") for part in own.parts):
                yield f"{package}/{own.as_posix()}", file


def _text(path: Path) -> str:
    """A module's text; of one that can't be read, a text that can't either."""
    try:
        if not path.is_file() or path.stat().st_size > LARGEST:
            raise ValueError("no module's text")
        return path.read_text(encoding="utf-8")
    except (OSError, ValueError):
        return "("


def _imported(path: str, text: str, by_functions: bool = True) -> Iterator[str]:
    """Dotted names that a module may import, when its functions are called too; its whole room, where its text does not
    say which."""
    try:
        if any(name[0].count(".") > DOTS for name in _MAY_BE_A_NAME.finditer(text)):
            raise ValueError("no name has so many parts")
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        yield _whole_room(path)
        return
    for node in ast.walk(tree) if by_functions else _outside_functions(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if len(alias.name) > LONGEST:
                    yield _whole_room(path)
                    continue
                yield alias.name
                yield from () if alias.asname else _packages_of(alias.name)  # by the name of the outermost
        elif isinstance(node, ast.ImportFrom):
            source = _absolute(path, node)
            if len(source) > LONGEST:
                yield _whole_room(path)
                continue
            yield source
            yield from (f"{source}.{alias.name}" for alias in node.names)
            if any(alias.name == "*" for alias in node.names):
                yield _whole_room(path)
        if _is_dynamic(node):
            yield _whole_room(path)


def _outside_functions(tree: ast.Module) -> Iterator[ast.AST]:
    """All of a module that is run when it is imported."""
    left: list[ast.AST] = [tree]
    for node in left:
        yield node
        left += (child for child in ast.iter_child_nodes(node) if not isinstance(child, FUNCTIONS))


def _is_dynamic(node: ast.AST) -> bool:
    if isinstance(node, ast.Import):
        return any(alias.name.partition(".")[0] in DYNAMIC for alias in node.names)
    if isinstance(node, ast.ImportFrom):
        if node.module == "importlib.metadata" and all(alias.name in ABOUT_PACKAGES for alias in node.names):
            return False
        return (node.module or "").partition(".")[0] in DYNAMIC or any(alias.name in DYNAMIC for alias in node.names)
    if isinstance(node, ast.Attribute):
        return node.attr == "entry_points"  # of a distribution: they are loaded by their names
    return isinstance(node, ast.Name) and node.id in DYNAMIC


def _absolute(path: str, node: ast.ImportFrom) -> str:
    if not node.level:
        return node.module or ""
    package = path.split("/")[: -node.level]
    return ".".join([*package, *([node.module] if node.module else [])])


def _packages_of(name: str) -> Iterator[str]:
    """Those that a module lies in, the outermost first; of a whole room none."""
    parts = name.split(".") if not name.endswith(".*") else []
    yield from (".".join(parts[:count]) for count in range(1, len(parts)))


def _whole_room(path: str) -> str:
    """What stands for all modules of the same vendor or suite."""
    return ".".join([*path.removesuffix(".py").split("/")[:2], "*"])


def _dotted(path: str) -> str:
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
