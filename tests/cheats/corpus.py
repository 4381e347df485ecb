"""The files of the corpus, and what they assign."""

from __future__ import annotations

import ast
from pathlib import Path

HERE = Path(__file__).parent


def files(kind: str) -> list[Path]:
    """All cheats of a kind."""
    return [path for path in sorted((HERE / kind).iterdir()) if path.suffix in (".py", ".yaml")]


def named(path: Path) -> dict[str, str]:
    """The texts that a cheat's file assigns: it is not imported here."""
    found: dict[str, str] = {}
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.Assign):
            names = node.targets[0].elts if isinstance(node.targets[0], ast.Tuple) else node.targets
            values = node.value.elts if isinstance(node.value, ast.Tuple) else [node.value]
            for name, value in zip(names, values, strict=True):
                if isinstance(name, ast.Name) and isinstance(value, ast.Constant):
                    found[name.id] = str(value.value)
    return found
