"""A suite is a folder: one that nobody knows of is found, run, judged and told of, with no other file edited for it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import NamedTuple

import pytest

from proofmark.suite import find_suites
from tests.e2e.conftest import House, Ran, one_line_answer

SUITE = Path(__file__).with_name("made_up_suite")
NAME = "made_up"


class Session(NamedTuple):
    """One that has ended, and the files that it was asked for."""

    house: House
    ran: Ran

    @property
    def record(self) -> dict[str, object]:
        """The case's, as plain values."""
        record = json.loads((self.ran.run_dir / NAME / "hundred/record.json").read_text())
        assert isinstance(record, dict)
        return record

    def text(self, name: str) -> str:
        """All files of a name or a folder's."""
        path = self.house.root / name
        files = sorted(path.rglob("*.*")) if path.is_dir() else [path]
        return "\n".join(file.read_text(errors="replace") for file in files if file.is_file())


def furnish(house: House) -> House:
    """A house with the suite."""
    shutil.copytree(SUITE, house.root / "suites" / NAME, ignore=shutil.ignore_patterns("__pycache__"))
    return house


def session(house: House, *options: str) -> Session:
    """All of the suite's cases, told in every way."""
    reports = ("--junitxml", "junit.xml", "--alluredir", "allure", "--benchmark-json", "benchmark.json")
    return Session(house, furnish(house).run(*reports, *options, vendor="cpu", suite=NAME))


def test_it_passes_and_shows_up_everywhere(house: House) -> None:
    done = session(house)
    output = done.ran.output
    assert done.ran.code == 0, output
    assert "suites: inference, made_up, training" in output and "PyYAML" in output
    assert any("PASS" in line and "hundred" in line for line in output.splitlines()), output
    record = done.record
    assert [share["process"] for share in record["shares"]] == [0, 1]  # type: ignore[attr-defined]
    assert record["verdict"] == {"kind": "PASS", "reasons": [], "expected": False}
    saved = json.loads((house.root / "benchmark.json").read_text())["benchmarks"]
    (extra,) = [each["extra_info"] for each in saved]
    assert (extra["run"], extra["verdict"], extra["unit"]) == ("made_up/hundred", "PASS", "number/s")
    assert 'value="PASS"' in done.text("junit.xml")
    page = (done.ran.run_dir / "report.html").read_text()
    for text in (page, done.text("allure"), output):
        assert "hundred" in text and "PASS" in text and "numbers/s" in text
    assert "Primes of each process" in page and "process 1: 24 primes" in page and "<h4>Sieves</h4>" in page
    assert "Primes of each process" in done.text("allure")
    assert "sieved" in done.text("junit.xml") and "primes found" in page


def test_a_mistake_in_its_figures_is_an_error_though_no_record_says_so(house: House) -> None:
    path = furnish(house).root / "suites" / NAME / "__init__.py"
    path.write_text(path.read_text() + "\n\nMadeUpSuite.figures = lambda suite, record: [record.no_such]\n")
    ran = house.run(vendor="cpu", suite=NAME)
    assert ran.code == 17 and "no run left a record: the failed tests say why" in ran.output, ran.output


def test_its_option_and_its_stage_of_the_verdict_decide(house: House) -> None:
    done = session(house, "--overlook", "3")
    assert done.ran.code == 14, done.ran.output
    assert "options: --vendor cpu --overlook 3" in done.ran.output.replace(f"--cache-dir {house.cache} ", "")
    assert "3 primes were overlooked" in done.ran.output
    assert "3 primes were overlooked" in (done.ran.run_dir / "report.html").read_text()
    assert 'value="FAIL_ACCURACY"' in done.text("junit.xml")
    assert not (house.root / "benchmark.json").exists(), "no speed is handed over"
    for text in (done.ran.output, done.text("junit.xml"), (done.ran.run_dir / "report.html").read_text()):
        assert f"{done.record['shares'][0]['seconds']:.4g}" not in text  # type: ignore[index]


def test_its_configuration_is_held_to_the_rules(house: House) -> None:
    done = session(house, "--set", "bound=10")
    assert done.ran.code == 16, done.ran.output
    assert "bound" in done.ran.output


def test_its_option_is_in_the_help(house: House) -> None:
    ran = furnish(house).run("--help", suite=NAME)
    assert ran.code == 0 and "--overlook=N" in ran.output and "primes that are overlooked" in ran.output, ran.output
    assert "--scale" in ran.output and "--scenario" in ran.output


@pytest.mark.parametrize(
    "old, new, expected",
    [
        ("suite = MadeUpSuite()", "raise RuntimeError('no sieve')", "RuntimeError: no sieve"),
        ("suite = MadeUpSuite()", "", "expected an attribute 'suite'"),
        ("suite = MadeUpSuite()", "suite = MadeUpSuite", "'suite' is a class"),
        ("    record_type = PrimesRecord\n", "", "'record_type' must be a subclass of"),
        ("def stages", "def steps", "abstract method"),
        ('name = "made_up"', 'name = "inference"', "its name is 'inference'; expected 'made_up'"),
        ('"--overlook"', '"--scale"', "option --scale is already defined by suite"),
        ('"--overlook"', '"--maxfail"', "option --maxfail is already defined by pytest"),
        ("suites.made_up.counting", "suites.made_up.sieving", "its plugin suites.made_up.sieving cannot be imported"),
    ],
)
def test_a_broken_one_is_refused_in_one_line(house: House, old: str, new: str, expected: str) -> None:
    module = furnish(house).root / "suites" / NAME / "__init__.py"
    text = module.read_text()
    assert old in text
    module.write_text(text.replace(old, new))
    one_line_answer(house.run(suite="inference"), "suite 'made_up'", expected)


def test_an_installed_one_of_the_same_name_is_refused(house: House) -> None:
    site = furnish(house).root / "made_up-1.0.dist-info"
    site.mkdir()
    (site / "METADATA").write_text("Metadata-Version: 2.1\nName: made_up\nVersion: 1.0\n")
    (site / "entry_points.txt").write_text("[proofmark.suites]\nmade_up = suites.made_up\n")
    one_line_answer(house.run(suite="inference"), "suite 'made_up' is defined more than once", "suites.made_up")


def test_an_installed_one_runs_beside_a_vendors_files_for_the_houses(house: House) -> None:
    """Its package may have another name than it, and lie anywhere: a vendor's files for its cases count, and for the
    house's, which were not asked for; one for no case is still seen."""
    package, site = house.root / "acme_primes", house.root / "acme_primes-1.0.dist-info"
    shutil.copytree(SUITE, package, ignore=shutil.ignore_patterns("__pycache__"))
    for path in package.glob("*.py"):
        path.write_text(path.read_text().replace("suites.made_up", "acme_primes"))
    site.mkdir()
    (site / "METADATA").write_text("Metadata-Version: 2.1\nName: acme_primes\nVersion: 1.0\n")
    (site / "entry_points.txt").write_text(f"[proofmark.suites]\n{NAME} = acme_primes\n")
    house.vendor_yaml().write_text("batch_size: 10\n")
    own = house.root / "vendors/fake/configs" / NAME
    own.mkdir()
    (own / "hundred.yaml").write_text("")
    ran = house.run("--pyargs", "acme_primes", "-k", "hundred")
    assert ran.code == 0 and "PASS  made_up/hundred" in ran.output, ran.output
    (own / "hundreds.yaml").write_text("")
    ran = house.run("--pyargs", "acme_primes", "-k", "hundred")
    one_line_answer(ran, "made_up/hundreds.yaml", "did you mean 'made_up/hundred.yaml'?")


def test_a_case_of_another_suite_is_refused(house: House) -> None:
    contract = furnish(house).root / "suites" / NAME / "contract.py"
    contract.write_text(contract.read_text().replace('= "made_up"', '= "made_down"'))
    one_line_answer(house.run(vendor="cpu", suite=NAME), "there is no suite 'made_down'", "made_up")


def test_a_fixture_that_is_not_there_is_refused(house: House) -> None:
    suite = furnish(house).root / "suites" / NAME / "__init__.py"
    suite.write_text(suite.read_text().replace('"primes_record"', '"prime_record"'))
    expected = "suite made_up: record_fixture: there is no fixture 'prime_record'"
    one_line_answer(house.run(vendor="cpu", suite=NAME), expected)


def test_folders_without_cases_are_no_suites() -> None:
    found = find_suites(Path(__file__).parents[2] / "suites")
    assert "data" not in found and {"inference", "training"} <= set(found)
    assert all(found[name].name == name for name in found)
