"""Finding suites: by folder, by entry point, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from proofmark.errors import UsageError
from proofmark.suite import find_suites

SUITE = """
from proofmark.case import Case
from proofmark.record.envelope import CaseRecord
from proofmark.suite import Suite

class Own(Suite):
    name, case_type, record_type, record_fixture = "{name}", Case, CaseRecord, "own_record"
    def stages(self, record): return ()
    def figures(self, record): return ()

suite = Own()
"""


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where packages are installed."""
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def install(site: Path, package: str, name: str, text: str) -> None:
    (site / f"{package}.py").write_text(text)
    metadata = site / f"{package}-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(f"[proofmark.suites]\n{name} = {package}\n")


def test_an_installed_one_is_found(site: Path) -> None:
    install(site, "found_suite", "found", SUITE.format(name="found"))
    assert find_suites(site / "suites")["found"].name == "found"


@pytest.mark.parametrize(
    "text, expected",
    [
        (SUITE.format(name="other"), "its name is 'other'; expected 'broken'"),
        ("", "expected an attribute 'suite'"),
        ("1 / 0", "ZeroDivisionError"),
        ("raise SystemExit(0)", "SystemExit"),
        ("suite = (", "SyntaxError"),
        (SUITE.format(name="broken").replace("CaseRecord, ", "dict, "), "'record_type' must be a subclass of"),
        (SUITE.format(name="broken").replace('"own_record"', "None"), "'record_fixture' must be the name of a fixture"),
        (SUITE.format(name="broken").replace("    def figures", "    def numbers"), "abstract method"),
        (SUITE.format(name="broken").replace("suite = Own()", "suite = Own"), "'suite' is a class"),
        (SUITE.format(name="broken").replace("suite = Own()", "Own.options = {'x': {}}\nsuite = Own()"), "option 'x'"),
    ],
)
def test_a_broken_one_is_refused_in_one_line(
    site: Path, request: pytest.FixtureRequest, text: str, expected: str
) -> None:
    package = f"broken_{request.node.callspec.indices['text']}"
    install(site, package, "broken", text)
    with pytest.raises(UsageError) as caught:
        find_suites(site / "suites")
    assert expected in str(caught.value) and "suite 'broken'" in str(caught.value) and "\n" not in str(caught.value)


def test_two_of_one_name_are_refused(site: Path) -> None:
    install(site, "first_suite", "twice", SUITE.format(name="twice"))
    install(site, "second_suite", "twice", SUITE.format(name="twice"))
    with pytest.raises(UsageError, match="suite 'twice' is defined more than once: .*; remove all but one"):
        find_suites(site / "suites")
