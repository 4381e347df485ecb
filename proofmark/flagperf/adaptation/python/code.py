"""What code defines, returns and names, by its syntax tree. Nothing of it is run."""

from __future__ import annotations

import ast
import warnings
from pathlib import Path

from proofmark.errors import ConfigurationError
from proofmark.flagperf.adaptation.python.literals import NotLiteral
from proofmark.rules.yaml.strict import text_of


def parsed(text: str) -> ast.Module:
    """The syntax tree of a text.

    Raises:
        NotLiteral: it is no Python.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text)
    except SyntaxError as error:
        line = f" (line {error.lineno})" if error.lineno else ""
        raise NotLiteral(f"is not valid Python: {error.msg}{line}") from None
    except (ValueError, RecursionError, MemoryError) as error:
        raise NotLiteral(f"is not readable Python: {type(error).__name__}") from None


def unreadable(path: Path, root: Path) -> str | None:
    """Why a file can't be read as Python; None if it can."""
    try:
        parsed(text_of(path, root))
    except ConfigurationError as error:
        return error.problems[0].what
    except NotLiteral as error:
        return str(error)
    return None


def _tree(path: Path, root: Path) -> ast.Module:
    """The syntax tree of a file; an empty one where it can't be read."""
    try:
        return parsed(text_of(path, root))
    except (ConfigurationError, NotLiteral):
        return ast.Module(body=[], type_ignores=[])


def functions_of(path: Path, root: Path) -> list[tuple[str, int]]:
    """Names and lines of the functions that a file defines, those of its classes too; none where it can't be read."""
    nodes = ast.walk(_tree(path, root))
    return [(node.name, node.lineno) for node in nodes if isinstance(node, ast.FunctionDef)]


def returned_by(path: Path, root: Path, function: str) -> list[ast.expr]:
    """The parts of the tuple that a function returns at last; none where there is no such thing."""
    tree = _tree(path, root)
    found = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name == function]
    returns = [each for node in found for each in _own_returns(node)]
    last = max(returns, key=lambda each: each.lineno).value if returns else None
    return list(last.elts) if isinstance(last, ast.Tuple) else []


def _own_returns(function: ast.FunctionDef) -> list[ast.Return]:
    """The returns of a function, without those of what is defined within it."""
    found, nodes = list[ast.Return](), list[ast.AST](function.body)
    while nodes:
        node = nodes.pop()
        if isinstance(node, ast.Return):
            found.append(node)
        elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            nodes += ast.iter_child_nodes(node)
    return found


def lines_within(path: Path, root: Path, name: str) -> dict[str, int]:
    """Lines of a mapping's keys, or of a list's texts, that a file gives a name; none without one."""
    tree = _tree(path, root)
    lines: dict[str, int] = {}
    for statement in tree.body:
        targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
        if any(isinstance(target, ast.Name) and target.id == name for target in targets):
            value = getattr(statement, "value", None)
            parts = value.keys if isinstance(value, ast.Dict) else getattr(value, "elts", [])
            texts = [part for part in parts if isinstance(part, ast.Constant) and isinstance(part.value, str)]
            lines |= {str(part.value): part.lineno for part in texts}
    return lines


def variables_set(path: Path, root: Path) -> list[tuple[str, str, int]]:
    """Variables of the environment that a file's code gives a literal value, by `os.environ[NAME] = VALUE`, each with
    its value and line."""
    tree = _tree(path, root)
    assigned = [node for node in ast.walk(tree) if isinstance(node, ast.Assign)]
    found = [(target, node.value, node.lineno) for node in assigned for target in node.targets]
    return [
        (target.slice.value, value.value, line)
        for target, value, line in found
        if isinstance(target, ast.Subscript)
        and _is_environment(target.value)
        and isinstance(target.slice, ast.Constant)
        and isinstance(target.slice.value, str)
        and isinstance(value, ast.Constant)
        and isinstance(value.value, str)
        and (target.slice.value + value.value).isprintable()
    ]


def _is_environment(node: ast.expr) -> bool:
    """Whether it is `os.environ`, or `environ` alone."""
    if isinstance(node, ast.Attribute):
        return node.attr == "environ" and isinstance(node.value, ast.Name) and node.value.id == "os"
    return isinstance(node, ast.Name) and node.id == "environ"


def names_in(path: Path, root: Path) -> set[str]:
    """All names that a file's code reads."""
    nodes = ast.walk(_tree(path, root))
    return {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}


def attributes_in(path: Path, root: Path) -> set[str]:
    """The names of all attributes that a file's code reads, whatever they are of."""
    nodes = ast.walk(_tree(path, root))
    return {node.attr for node in nodes if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load)}


def packages_in(path: Path, root: Path) -> list[str]:
    """The packages that a file imports, those beside it left out, in the order of its lines."""
    tree = _tree(path, root)
    names = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            names.append(node.module)
    tops = dict.fromkeys(name.partition(".")[0] for name in names)
    return [name for name in tops if not any((path.parent / each).exists() for each in (name, f"{name}.py"))]
