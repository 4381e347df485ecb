"""`python -m benchmarks.mutants [MODULE ...]`: which small changes of the judging modules their unit tests do not see.

Each mutant is one change of one operator, constant, condition or returned value. A process that has imported what
the module's tests need is forked for each, imports the changed module and what depends on it again, and runs the tests;
no file is changed. A mutant is killed if a test fails, or never ends. Survivors are printed, and the exit code is 1
where too few were killed.
"""

from __future__ import annotations

import argparse
import ast
import copy
import importlib
import importlib.machinery
import os
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from types import CodeType
from typing import Any, NamedTuple

from benchmarks.judging_modules import EQUIVALENT, TESTS
from proofmark.affected.imports import dependents, imports_in

ROOT = Path(__file__).parents[1]
UNIT = ROOT / "tests" / "unit"
LEAST = 0.95
"""Share of a module's mutants that its tests must kill."""

PATIENCE = 5.0
"""How many times as long as without a change, and ten seconds more, the tests get to end."""

COMPARED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
COMPUTED: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.Pow: ast.Mult,
    ast.BitOr: ast.BitAnd,
    ast.BitAnd: ast.BitOr,
}


class Mutant(NamedTuple):
    """One change: its number, its line, and what became of what."""

    number: int
    line: int
    change: str
    tree: ast.Module


class _Mutator(ast.NodeTransformer):
    """Makes the change of one number, and counts all."""

    def __init__(self, wanted: int) -> None:
        self.wanted, self.count, self.made = wanted, 0, (0, "")

    def visit(self, node: ast.AST) -> Any:
        """Change the node, or what is in it."""
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            return node  # a docstring
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            return node  # is never run
        for changed in _variants(node):
            self.count += 1
            if self.count == self.wanted:
                change = f"{ast.unparse(node)} -> {ast.unparse(changed)}"
                self.made = getattr(node, "lineno", 0), " ".join(change.split())
                return ast.copy_location(changed, node)
        return self.generic_visit(node)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> Any:
        """Leave the text of a message alone."""
        return node

    def generic_visit(self, node: ast.AST) -> Any:
        """Leave annotations and decorators alone."""
        kept = {
            name: getattr(node, name) for name in ("annotation", "returns", "decorator_list") if hasattr(node, name)
        }
        for name in kept:
            setattr(node, name, [] if name == "decorator_list" else None)
        if isinstance(node, ast.JoinedStr):
            return node
        super().generic_visit(node)
        for name, value in kept.items():
            setattr(node, name, value)
        return node


def _variants(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, ast.Compare):
        for at, operator in enumerate(node.ops):
            changed = copy.deepcopy(node)
            changed.ops[at] = COMPARED[type(operator)]()
            yield changed
    elif isinstance(node, ast.BinOp | ast.AugAssign) and type(node.op) in COMPUTED:
        changed_operation = copy.deepcopy(node)
        changed_operation.op = COMPUTED[type(node.op)]()
        yield changed_operation
    elif isinstance(node, ast.BoolOp):
        yield ast.BoolOp(ast.Or() if isinstance(node.op, ast.And) else ast.And(), node.values)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.USub):
        yield node.operand
    elif isinstance(node, ast.If | ast.IfExp | ast.While) and isinstance(
        node.test, ast.Name | ast.Call | ast.Attribute
    ):
        negated = copy.deepcopy(node)
        negated.test = ast.UnaryOp(ast.Not(), negated.test)
        yield negated
    elif isinstance(node, ast.Return) and node.value is not None and not _is_none(node.value):
        yield ast.Return(ast.Constant(None))
    elif isinstance(node, ast.Constant):
        yield from map(ast.Constant, _other_constants(node.value))


def _is_none(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _other_constants(value: Any) -> list[Any]:
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int | float):
        return [value + 1]
    return [f"XX{value}XX"] if isinstance(value, str) else []


def mutants_of(path: Path) -> Iterator[Mutant]:
    """All mutants of a module."""
    source = path.read_text(encoding="utf-8")
    number = 0
    while True:
        number += 1
        mutator = _Mutator(number)
        tree = mutator.visit(ast.parse(source))
        if mutator.count < number:
            return
        yield Mutant(number, *mutator.made, ast.fix_missing_locations(tree))


def _start(module: str, tests: list[str], tree: ast.Module | None, folder: Path) -> int:
    """Fork a process that runs the tests against the tree."""
    child = os.fork()
    if child:
        return child
    os.setsid()
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nothing, stream)
    code = 99
    try:
        if tree is not None:
            _replace(_dotted(module), compile(tree, str(ROOT / module), "exec"))
        import pytest

        code = pytest.main(
            ["-x", "-q", "--tb=no", "--assert=plain", f"--confcutdir={UNIT}", f"--basetemp={folder}", *tests]
        )
    finally:
        os._exit(code)


def _replace(name: str, code: CodeType) -> None:
    """Let the module have this code as soon as it is imported."""
    loader: Any = importlib.machinery.SourceFileLoader
    usual = loader.get_code
    loader.get_code = lambda self, fullname: code if fullname == name else usual(self, fullname)


def _dotted(path: str) -> str:
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def _forget_dependents(module: str, tests: list[str]) -> None:
    """Import all that the tests need, and forget what depends on the module: each mutant's process imports that."""
    for test in tests:
        importlib.import_module(_dotted(str(Path(test).relative_to(ROOT))))
    for path in dependents(module, imports_in(ROOT, "proofmark", "reports", "suites", "vendors", "tests")):
        room, _, name = _dotted(path).rpartition(".")
        if sys.modules.pop(_dotted(path), None) is not None and hasattr(sys.modules.get(room), name):
            delattr(sys.modules[room], name)  # or `from room import name` would find the old one


def _killed(child: int, deadline: float) -> bool | None:
    """Whether a test failed or none ends; None while they run."""
    done, status = os.waitpid(child, os.WNOHANG)
    if not done and time.monotonic() < deadline:
        return None
    if not done:
        os.killpg(child, signal.SIGKILL)
        os.waitpid(child, 0)
        return True
    return os.waitstatus_to_exitcode(status) != 0


def survivors(module: str, at_once: int, folder: Path) -> tuple[int, list[Mutant]]:
    """How many mutants a module has, and those that live.

    Raises:
        SystemExit: its tests fail as it is.
    """
    tests = [str(UNIT / name) for name in TESTS[module]]
    _forget_dependents(module, tests)
    begun = time.monotonic()
    baseline = _start(module, tests, None, folder / "whole")
    while (failed := _killed(baseline, begun + 600)) is None:
        time.sleep(0.05)
    if failed:
        raise SystemExit(f"{module}: its tests fail without a change: {' '.join(tests)}")
    patience = 10 + PATIENCE * (time.monotonic() - begun)
    waiting, running, living, count = mutants_of(ROOT / module), dict[int, tuple[Mutant, float]](), list[Mutant](), 0
    while True:
        while len(running) < at_once and (mutant := next(waiting, None)):
            count += 1
            child = _start(module, tests, mutant.tree, folder / str(mutant.number))
            running[child] = mutant, time.monotonic() + patience
        if not running:
            return count, sorted(living)
        time.sleep(0.02)
        for child, (mutant, deadline) in list(running.items()):
            killed = _killed(child, deadline)
            if killed is not None:
                del running[child]
            if killed is False:
                living.append(mutant)
                print(f"  {module}, line {mutant.line}: {mutant.change}", flush=True)


def main() -> None:
    """Print each module's score and its survivors."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.mutants", description=__doc__)
    parser.add_argument("modules", nargs="*", default=list(TESTS), metavar="MODULE", help=", ".join(TESTS))
    parser.add_argument("--at-once", type=int, default=2, help="processes")
    asked = parser.parse_args()
    os.chdir(ROOT)
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    import hypothesis

    phases = (hypothesis.Phase.explicit, hypothesis.Phase.generate)  # the smallest counterexample is not asked for
    hypothesis.settings.register_profile("mutants", deadline=None, database=None, max_examples=50, phases=phases)
    hypothesis.settings.load_profile("mutants")
    short = []
    for module in asked.modules:
        with tempfile.TemporaryDirectory() as folder:
            count, living = survivors(module, asked.at_once, Path(folder))
        same = EQUIVALENT.get(module, frozenset())
        text = (ROOT / module).read_text(encoding="utf-8").splitlines()
        missed = [mutant for mutant in living if (text[mutant.line - 1].strip(), mutant.change) not in same]
        score = 1 - len(missed) / count
        print(
            f"{module}: {score:.1%} of {count} mutants killed, {len(living) - len(missed)} are equivalent", flush=True
        )
        short += [module] if score < LEAST else []
    sys.exit(f"fewer than {LEAST:.0%}: {', '.join(short)}" if short else 0)


if __name__ == "__main__":
    main()
