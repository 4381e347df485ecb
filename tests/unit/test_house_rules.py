"""Rules of the house that no type checker sees."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

import proofmark.vendor
from benchmarks.judging_modules import EQUIVALENT, TESTS
from proofmark.suite import find_suites

ROOT = Path(__file__).parents[2]
ROOMS = ("proofmark", "fixtures", "reports", "suites", "vendors")
VENDORS = sorted(path.parent.name for path in (ROOT / "vendors").glob("*/__init__.py"))
CASES = sorted(path.stem for path in (ROOT / "suites").glob("*/*.yaml") if path.stem != "contract")


def sources(*rooms: str) -> list[Path]:
    return [path for room in rooms for path in (ROOT / room).rglob("*.py")]


def words(path: Path) -> set[str]:
    return set(re.findall(r"[a-z0-9]+", path.read_text(encoding="utf-8").lower()))


@pytest.mark.parametrize("vendor", [name for name in VENDORS if name != "cpu"])  # cpu is a word of everyday use
def test_a_vendor_is_named_only_in_its_own_room(vendor: str) -> None:
    others = [path for path in sources(*ROOMS) if not path.is_relative_to(ROOT / "vendors" / vendor)]
    assert [path for path in others if vendor in words(path)] == []


@pytest.mark.parametrize("case", CASES)
def test_a_case_is_named_only_in_the_suites(case: str) -> None:
    assert [path for path in sources("proofmark", "fixtures", "reports", "vendors") if case in words(path)] == []


SUITES = sorted(find_suites(ROOT / "suites"))


@pytest.mark.parametrize("suite", SUITES)
def test_a_suite_is_named_only_in_its_own_rooms(suite: str) -> None:
    """In code: in a sentence, training is a word of everyday use. The host file is FlagPerf's, and has two forms."""
    own = [ROOT / "proofmark" / room for room in (*SUITES, "flagperf")]
    for path in sources("proofmark", "fixtures", "reports", "vendors"):
        if any(path.is_relative_to(room) for room in own):
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            text = node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""
            assert text != suite and not text.startswith(f"{suite}/"), f"{path}:{getattr(node, 'lineno', 0)}"


SERVICES = sorted(path.parent.name for path in (ROOT / "proofmark/launch/launchers").glob("*/__init__.py"))


@pytest.mark.parametrize("service", SERVICES)
def test_a_cloud_is_named_only_in_its_own_room(service: str) -> None:
    own = ROOT / "proofmark/launch/launchers" / service
    assert [path for path in sources(*ROOMS) if service in words(path) and not path.is_relative_to(own)] == []


def test_a_case_is_one_short_module() -> None:
    for path in (ROOT / "suites").glob("*/test_*.py"):
        assert len(path.read_text(encoding="utf-8").splitlines()) <= 60, path


@pytest.mark.parametrize("path", sources(*ROOMS), ids=lambda path: str(path.relative_to(ROOT)))
def test_nothing_is_evaluated_unpickled_or_given_to_a_shell(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            assert name not in ("eval", "exec", "os.system", "os.popen", "torch.load", "yaml.unsafe_load"), path
            assert not any(k.arg == "shell" and ast.unparse(k.value) != "False" for k in node.keywords), path
        if isinstance(node, ast.Import | ast.ImportFrom):
            imported = [alias.name for alias in node.names] + [getattr(node, "module", None) or ""]
            assert not {"pickle", "marshal", "shelve", "torchvision"} & set(imported), path


def test_collection_imports_neither_torch_nor_transformers() -> None:
    command = [sys.executable, "-X", "importtime", "-m", "pytest", "suites", "--collect-only", "-q", "-s"]
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST_")}  # xdist's
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout
    imported = {line.rsplit("|", 1)[-1].strip() for line in done.stderr.splitlines() if line.startswith("import time")}
    assert "proofmark.rules.config" in imported
    assert not {"torch", "transformers", "onnx", "onnxruntime", "sklearn", "numpy"} & imported


def test_paces_are_compared_by_unit_tests_alone() -> None:
    """`make test` looks there for files that name the mark, and collects no others once more."""
    marked = [path for path in (ROOT / "tests").rglob("*.py") if "mark.quiet" in path.read_text()]
    assert marked and all(path.is_relative_to(ROOT / "tests" / "unit") for path in marked)


def test_mutants_are_of_modules_and_met_by_tests_that_are_there() -> None:
    tests = {f"tests/unit/{name}" for names in TESTS.values() for name in names}
    assert [path for path in {*TESTS, *EQUIVALENT, *tests} if not (ROOT / path).is_file()] == []


def test_every_option_is_in_the_documentation(pytestconfig: pytest.Config) -> None:
    options = [name for option in pytestconfig._parser.getgroup("proofmark").options for name in option.names()]
    documented = (ROOT / "docs" / "options.md").read_text(encoding="utf-8")
    assert {"--vendor", "--policy", "--compare", "--sign", "--cloud-config", "--max-trials"} <= {*options}
    assert [option for option in options if f"`{option}" not in documented] == []


def test_links_between_documents_lead_somewhere() -> None:
    lost = []
    for page in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("vendors/**/*.md")]:
        for target, anchor in re.findall(r"\]\(([^)#:\s]*)#?([^):\s]*)\)", page.read_text(encoding="utf-8")):
            there = page.parent / target if target else page
            if not there.exists() or (anchor and anchor not in anchors(there)):
                lost.append(f"{page.relative_to(ROOT)} -> {target}#{anchor}")
    assert lost == []


def anchors(page: Path) -> set[str]:
    """Of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ +(.+?) *$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_the_reference_of_the_vendor_contract_is_up_to_date() -> None:
    printed = subprocess.run(
        [sys.executable, "-c", "from docs.generate import reference; print(reference(), end='')"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert printed == (ROOT / "docs" / "vendor-contract.md").read_text(encoding="utf-8"), "run `make docs`"


def test_all_that_the_vendor_contract_offers_is_in_its_reference() -> None:
    page = (ROOT / "docs" / "vendor-contract.md").read_text(encoding="utf-8")
    headings = re.findall(r"^## `(\w+)", page, re.MULTILINE)
    assert sorted(headings) == sorted([*proofmark.vendor.__all__, "HostSettings"])


RUNTIMES = {"openvino", "tensorrt"}
"""Of vendors' compilers, which come with the vendor's software."""

CALLED = {"pytest-xdist", "onnxscript"}
"""Declared for what is not imported by name: an option of pytest's, and torch's exporter."""


def test_what_is_imported_is_declared_and_what_is_declared_is_imported() -> None:
    declared = {name.lower() for name in re.findall(r"^[\w-]+", (ROOT / "requirements.txt").read_text(), re.MULTILINE)}
    known = packages_distributions()
    imported = set[str]()
    for path in [*sources(*ROOMS), ROOT / "conftest.py"]:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module] if isinstance(node, ast.ImportFrom) and node.module and not node.level else []
            imported |= {name.partition(".")[0] for name in names}
    foreign = imported - set(sys.stdlib_module_names) - set(ROOMS) - RUNTIMES
    packages = {name: {each.lower() for each in known.get(name, [name])} for name in foreign}
    brought = {"pydantic_core", "markupsafe", "allure-python-commons"}  # by what is declared
    assert {name for name, found in packages.items() if not found & (declared | brought)} == set()
    assert declared - set().union(*packages.values()) - CALLED == {"allure-pytest"}
