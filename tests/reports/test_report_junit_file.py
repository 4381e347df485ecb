"""What a gate finds that reads the JUnit file and nothing else."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from reports.junit_file import RUN, Asked, Session, complete
from tests.reports.xunit2 import ended, properties, suites

TINY, BIG = "inference/tiny", "training/big/1x2"


def written(path: Path) -> Path:
    """A file as pytest writes it, of two tests of one run and one of no case."""
    root = ET.Element("testsuites", name="pytest tests")
    suite = ET.SubElement(
        root, "testsuite", name="pytest", errors="0", failures="0", skipped="1", tests="3", time="3.5",
        timestamp="2026-01-01T00:00:00", hostname="h",
    )  # fmt: skip
    for name, run in (("test_a", TINY), ("test_b", TINY), ("test_own", None)):
        test = ET.SubElement(suite, "testcase", classname="s.t.T", name=name, time="1.250")
        if run:
            listed = ET.SubElement(test, "properties")
            ET.SubElement(listed, "property", name=RUN, value=run)
        if name == "test_b":
            ET.SubElement(test, "skipped", type="pytest.skip", message="so").text = "there: so"
    ET.ElementTree(root).write(path)
    return path


def asked(run: str, *names: str) -> list[Asked]:
    return [Asked(f"s/t.py::T::{name}", run) for name in names]


def test_each_run_is_a_suite_with_its_properties_once(tmp_path: Path) -> None:
    path = written(tmp_path / "junit.xml")
    complete(path, Session(asked(TINY, "test_a", "test_b"), {TINY: [("verdict", "PASS"), ("chip", "a\x1b[31mb")]}))
    found = suites(path)
    assert list(found) == [TINY, "pytest"]
    assert properties(found[TINY]) == {"verdict": "PASS", "chip": "a\\x1b[31mb"}
    assert found[TINY].attrib["time"] == "2.500" and found[TINY].attrib["hostname"] == "h"
    assert RUN not in path.read_text()


def test_of_a_run_whose_speed_is_withheld_no_test_tells_its_time(tmp_path: Path) -> None:
    """A fixture that measures is in the time of the first test that needs it."""
    path = written(tmp_path / "junit.xml")
    complete(path, Session(asked(TINY, "test_a", "test_b"), timeless={TINY}))
    found = suites(path)
    assert not [each for each in found[TINY].iter() if "time" in each.attrib]
    assert found["pytest"].attrib["time"] == "1.250"


def test_what_was_asked_for_and_did_not_run_is_an_error_with_its_cause(tmp_path: Path) -> None:
    path = written(tmp_path / "junit.xml")
    selected = [*asked(TINY, "test_a", "test_b", "test_c", "test_d"), *asked(BIG, "test_a[1x2]", "test_b[1x2]")]
    complete(path, Session(selected, cause="the session was interrupted"))
    found = suites(path)
    why = "not run: the session was interrupted"
    assert ended(found[TINY], "error") == [("test_c", why)] and ended(found[BIG], "error") == [("test_a[1x2]", why)]
    assert ended(found[BIG], "skipped") == [("test_b[1x2]", "not run: test_a[1x2] says why")]
    assert {test.attrib["classname"] for test in found[BIG]} == {"s.t.T"}


@pytest.mark.parametrize("content", [None, "", "<testsuites>"])
def test_a_session_that_did_not_begin_is_an_error_too(tmp_path: Path, content: str | None) -> None:
    path = tmp_path / "deep" / "junit.xml"
    if content is not None:
        path.parent.mkdir()
        path.write_text(content)
    complete(path, Session(cause="unknown vendor 'x'\nand more"))
    (suite,) = suites(path).values()
    assert ended(suite, "error") == [("session", "unknown vendor 'x'")] and "and more" in path.read_text()


def test_nothing_asked_for_is_no_error(tmp_path: Path) -> None:
    path = tmp_path / "junit.xml"
    complete(path, Session())
    (suite,) = suites(path).values()
    assert (suite.attrib["tests"], suite.attrib["errors"]) == ("0", "0")


def test_what_is_slower_than_a_baseline_is_a_failure_of_its_run(tmp_path: Path) -> None:
    path = written(tmp_path / "junit.xml")
    complete(path, Session(asked(TINY, "test_a", "test_b"), failures=[(TINY, "benchmark", "slower")]))
    assert ended(suites(path)[TINY], "failure") == [("benchmark", "slower")]


@pytest.mark.parametrize(
    "nodeid, address",
    [
        ("suites/inference/test_t.py::TestT::test_a", ("suites.inference.test_t.TestT", "test_a")),
        ("suites/test_t.py::TestT::test_a[x::y/z.py]", ("suites.test_t.TestT", "test_a[x::y/z.py]")),
        ("test_t.py::test_a", ("test_t", "test_a")),
    ],
)
def test_addresses_are_pytests(nodeid: str, address: tuple[str, str]) -> None:
    from _pytest.junitxml import mangle_test_address

    assert Asked(nodeid).address == address
    *classes, name = mangle_test_address(nodeid)
    assert (".".join(classes), name) == address


def test_of_a_test_that_was_run_again_the_last_time_counts(tmp_path: Path) -> None:
    path = tmp_path / "junit.xml"
    path.write_text(
        '<testsuites><testsuite name="pytest"><testcase classname="a" name="t" time="1"/>'
        '<testcase classname="a" name="t" time="2"><failure message="again"/></testcase></testsuite></testsuites>'
    )
    complete(path, Session())
    (suite,) = suites(path).values()
    assert ended(suite, "failure") == [("t", "again")] and suite.get("tests") == "1"


def test_a_test_that_failed_and_in_its_teardown_again_keeps_both(tmp_path: Path) -> None:
    path = tmp_path / "junit.xml"
    path.write_text(
        '<testsuites><testsuite name="pytest"><testcase classname="a" name="t"><failure message="verdict"/></testcase>'
        '<testcase classname="a" name="t"><error message="failed on teardown with &quot;x&quot;"/></testcase>'
        "</testsuite></testsuites>"
    )
    complete(path, Session())
    (suite,) = suites(path).values()
    assert ended(suite, "failure") == [("t", "verdict")] and suite.get("tests") == "1"
    assert ended(suite, "error") == [("t", 'failed on teardown with "x"')]


def test_a_prefix_makes_no_other_test(tmp_path: Path) -> None:
    path = written(tmp_path / "junit.xml")
    path.write_text(path.read_text().replace('classname="', 'classname="lab.'))
    complete(path, Session(asked(TINY, "test_a", "test_b", "test_c"), prefix="lab"))
    found = suites(path)[TINY]
    assert [(test.get("classname"), test.get("name")) for test in found.findall("testcase")] == [
        ("lab.s.t.T", f"test_{letter}") for letter in "abc"
    ]
    assert [name for name, _ in ended(found, "error")] == ["test_c"]


def test_a_run_that_was_left_out_is_skipped_with_the_reason(tmp_path: Path) -> None:
    path = tmp_path / "junit.xml"
    complete(path, Session(left_out={"inference/a": "nothing of it has changed"}))
    assert ended(suites(path)["inference/a"], "skipped") == [("affected", "left out: nothing of it has changed")]
