"""`make docs`: the vendor contract's reference, from the docstrings of proofmark/vendor/, and a page for each case.

`python -m docs.generate --results DIR --out DIR` writes cases' pages with the results below a directory.
"""

from __future__ import annotations

import argparse
import ast
import inspect
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from docs.case_pages import case_pages
from proofmark.errors import ProofmarkError, UsageError, harmless
from proofmark.record.envelope import CaseRecord
from proofmark.suite import find_suites
from proofmark.verification.verify import verify
from reports.site.discover import discover

ROOT = Path(__file__).resolve().parents[1]
MODULES = ("contract", "engine", "readings", "adapter")
"""Of the contract, in the order of the page."""

PAGE = ROOT / "docs" / "vendor-contract.md"
CASES = ROOT / "docs" / "cases"
USAGE = 4


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


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the pages; 0, or 4 with a line that says what is wrong."""
    parser = argparse.ArgumentParser(prog="python -m docs.generate", description="Write the generated pages.")
    parser.add_argument(
        "--results", type=Path, action="append", default=[], metavar="DIR", help="with verified records"
    )
    parser.add_argument("--out", type=Path, metavar="DIR", help="where cases' pages with results are written")
    given = parser.parse_args(arguments)
    try:
        _write(given.results, given.out)
    except (ProofmarkError, OSError) as error:
        print(harmless(f"error: {error}"), file=sys.stderr)
        return USAGE
    return 0


def _write(results: Sequence[Path], out: Path | None) -> None:
    """Results are nobody's in particular: pages with them lie elsewhere than those that are shipped."""
    if bool(results) != bool(out):
        raise UsageError("--results and --out belong together: no results are shipped in docs/")
    suites = find_suites(ROOT / "suites")
    pages = case_pages(ROOT, suites, list(_verified(results)))
    for name, text in pages.items():
        path = (out or CASES) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    if out is None:
        PAGE.write_text(reference(), encoding="utf-8")


def _verified(results: Sequence[Path]) -> Iterator[CaseRecord]:
    """The records of folders in which nothing is wrong; the others are told and left out."""
    suites = find_suites(ROOT / "suites")
    for session in discover(results):
        verified = verify(session.folder, suites)
        if verified.holds:
            yield from verified.records.values()
        else:
            print(harmless(f"left out: {session.folder}: {verified.findings[0]}"), file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
