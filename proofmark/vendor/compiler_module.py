"""What a compiler's module must hold: seen in its text, before any of it runs, and in the class once it has run."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Collection, Iterator
from pathlib import Path

from proofmark.errors import harmless
from proofmark.names import misnamed

NAME = "InferModel"

_DEFINES = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef

_ANYTHING = frozenset({"*", "__getattr__"})
"""Among a module's names, for any that the text doesn't tell."""


def wrong_with(path: Path) -> str | None:
    """Why nothing can come of a compiler's module; None where its import may tell otherwise, or it can't be read."""
    try:
        tree = ast.parse(path.read_bytes())
        names = set(_names(tree))
    except SyntaxError as error:
        return harmless(f"line {error.lineno}: {error.msg}")
    except (OSError, ValueError, RecursionError, MemoryError):
        return None
    if NAME in names or _ANYTHING & names:
        return None
    return lacks_class([node.name for node in tree.body if isinstance(node, _DEFINES)])


def lacks_class(there: Collection[str]) -> str:
    """What is told of a module that has other names."""
    has = f"has {', '.join(there)}{misnamed(NAME, there)}" if there else "defines nothing"
    return harmless(f"expected a class {NAME} with __init__ and __call__; it {has}")


def wrong_arguments(infer_model: type) -> str | None:
    """Why a class can't be made of what it is given, after the number of its line; None where nobody knows."""
    try:
        signature = inspect.signature(infer_model)
    except (TypeError, ValueError):  # of a class that is written in C, say
        return None
    try:
        signature.bind(None, None, None)
    except TypeError:
        code = getattr(getattr(infer_model, "__init__", None), "__code__", None)
        line = f":{code.co_firstlineno}" if code else ""
        return harmless(f"{line}: expected {NAME}(config, onnx_path, model), found {NAME}{signature}")
    return None


def _names(tree: ast.Module) -> Iterator[str]:
    """All that anything in the text is called, wherever it stands: in an `if` or a `try` it may be the module's too."""
    for node in ast.walk(tree):
        if isinstance(node, _DEFINES):
            yield node.name
        elif isinstance(node, ast.alias):
            yield node.asname or node.name
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
