"""`make docs`: the vendor contract's reference, from the docstrings of proofmark/vendor/."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
MODULES = ("contract", "engine", "readings", "adapter")
"""Of the contract, in the order of the page."""

PAGE = ROOT / "docs" / "vendor-contract.md"


def reference() -> str:
    """The page."""
    package = ROOT / "proofmark" / "vendor"
    told = "Generated from the modules of `proofmark/vendor/` by `make docs`."
    parts = ["# The vendor contract", told, _doc(ast.parse((package / "__init__.py").read_text(encoding="utf-8")))]
    for name in MODULES:
        for node in ast.parse((package / f"{name}.py").read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef):
                parts += [f"## `{node.name}`", _doc(node), *_members(node)]
    return "\n\n".join(filter(None, parts)) + "\n"


def _members(node: ast.ClassDef) -> Iterator[str]:
    told_in_docstring = any("dataclass" in ast.unparse(decorator) for decorator in node.decorator_list)
    for member, following in zip(node.body, [*node.body[1:], None], strict=True):
        if isinstance(member, ast.FunctionDef):
            arguments, returns = ast.unparse(member.args), ast.unparse(member.returns) if member.returns else "None"
            must = " (required)" if any("abstractmethod" in ast.unparse(d) for d in member.decorator_list) else ""
            yield f"### `{member.name}({arguments}) -> {returns}`{must}"
            yield _doc(member)
        elif isinstance(member, ast.AnnAssign) and not told_in_docstring:
            default = f" = {ast.unparse(member.value)}" if member.value else ""
            yield f"### `{ast.unparse(member.target)}: {ast.unparse(member.annotation)}{default}`"
            if isinstance(following, ast.Expr) and isinstance(following.value, ast.Constant):
                yield inspect.cleandoc(str(following.value.value))


def _doc(node: ast.Module | ast.ClassDef | ast.FunctionDef) -> str:
    """A docstring, its indented lists as code so that Markdown keeps their lines."""
    text = ast.get_docstring(node) or ""
    paragraphs = text.split("\n\n")
    return "\n\n".join(f"```\n{p}\n```" if "\n    " in p else p for p in paragraphs)


if __name__ == "__main__":
    PAGE.write_text(reference(), encoding="utf-8")
