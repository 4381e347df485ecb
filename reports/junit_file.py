"""A session's JUnit XML: a test suite per run with its properties, and an error for what was asked for and did not run.

pytest writes one test suite; this takes its file apart. The result is valid by the xunit2 schema (Jenkins' xUnit),
which allows properties in test suites only.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from reports.content.text import printable

RUN = "proofmark_run"
"""The property of a test by which it is known whose run it is of; not in the file in the end."""

OTHERS = "pytest"
"""The suite of tests of no case."""


@dataclass(frozen=True)
class Asked:
    """A test that was asked for: pytest's id for it, and the run that it is of, empty for a test of no case."""

    nodeid: str
    run: str = ""

    @property
    def address(self) -> tuple[str, str]:
        """Class and name, as pytest writes them in a file."""
        path, *names = self.nodeid.partition("[")[0].split("::")
        parameters = self.nodeid[len(self.nodeid.partition("[")[0]) :]
        dotted = path.removesuffix(".py").replace("/", ".")
        *classes, name = names or [""]
        return ".".join([dotted, *classes]), name + parameters


@dataclass(frozen=True)
class Session:
    """What a session has to say beside pytest's file.

    Attributes:
        asked: the tests that were selected.
        properties: names and values of each run that left a record.
        cause: why tests did not run, or the session did not begin; None where it came to its end.
        failures: what failed that is no test: run, name, text.
        timeless: runs whose tests do not tell how long they took, since it tells a speed that is withheld.
        left_out: runs that were not asked for since no change affects them, each with the reason.
        prefix: before the name of every class in pytest's file (--junit-prefix).
    """

    asked: Sequence[Asked] = ()
    properties: Mapping[str, Sequence[tuple[str, str]]] = field(default_factory=dict)
    cause: str | None = None
    failures: Sequence[tuple[str, str, str]] = ()
    timeless: Collection[str] = ()
    left_out: Mapping[str, str] = field(default_factory=dict)
    prefix: str = ""

    def address(self, asked: Asked) -> tuple[str, str]:
        """Class and name of a test, as pytest writes them in this session's file."""
        classname, name = asked.address
        return f"{self.prefix}.{classname}" if self.prefix else classname, name


def complete(path: Path, session: Session) -> None:
    """Take pytest's file apart by runs, and add what it lacks. Without a file, or with a damaged one, make one.

    Raises:
        OSError: it cannot be read or written.
    """
    tests, attributes = _tests_of(path)
    there = {(test.get("classname", ""), test.get("name", "")) for test in tests}
    suites: dict[str, list[ET.Element]] = {}
    for test in tests:
        suites.setdefault(_taken_run(test), []).append(test)
    lacking = [asked for asked in session.asked if session.address(asked) not in there]
    for run in dict.fromkeys(asked.run for asked in lacking):
        missing = [session.address(asked) for asked in lacking if asked.run == run]
        suites.setdefault(run, []).extend(_not_run(missing, session.cause or "the session ended before it"))
    if session.cause is not None and not session.asked:
        suites.setdefault("", []).append(_case("proofmark", "session", "error", session.cause))
    for run, name, text in session.failures:
        suites.setdefault(run, []).append(_case("proofmark", name, "failure", text))
    for run, reason in session.left_out.items():
        suites.setdefault(run, []).append(_case("proofmark", "affected", "skipped", f"left out: {reason}"))
    root = ET.Element("testsuites", name="pytest tests")
    for run in list(suites) or [""]:
        suite = _suite(run or OTHERS, suites.get(run, []), session.properties.get(run, ()), attributes)
        for each in suite.iter() if run in session.timeless else ():
            each.attrib.pop("time", None)
        root.append(suite)
    path.parent.mkdir(parents=True, exist_ok=True)
    ET.ElementTree(root).write(path, encoding="utf-8", xml_declaration=True)


def _tests_of(path: Path) -> tuple[list[ET.Element], dict[str, str]]:
    """The tests, of one that was run again the last time, and what is known of when and where they ran.

    A test that failed, and in its teardown again, stands in the file twice: it keeps both.
    """
    try:
        root = ET.parse(path).getroot()  # noqa: S314 (pytest wrote it a moment ago)
    except (FileNotFoundError, ET.ParseError):
        return [], {}
    last: dict[tuple[str | None, str | None], ET.Element] = {}
    for test in root.iter("testcase"):
        address = test.get("classname"), test.get("name")
        error = test.find("error")
        if address in last and error is not None and error.get("message", "").startswith("failed on teardown"):
            test.extend(last[address].findall("failure"))
        last[address] = test
    suite = next(root.iter("testsuite"), None)
    known = suite.attrib if suite is not None else {}
    return list(last.values()), {key: known[key] for key in ("timestamp", "hostname") if key in known}


def _taken_run(test: ET.Element) -> str:
    properties = test.find("properties")
    mine = next((each for each in properties if each.get("name") == RUN), None) if properties is not None else None
    if properties is None or mine is None:
        return ""
    properties.remove(mine)
    if not len(properties):
        test.remove(properties)
    return mine.get("value", "")


def _not_run(lacking: Sequence[tuple[str, str]], cause: str) -> Iterable[ET.Element]:
    """One cause is one error; the other tests of the run are skipped with its name."""
    first, *others = lacking
    yield _case(*first, "error", f"not run: {cause}")
    for other in others:
        yield _case(*other, "skipped", f"not run: {first[1]} says why")


def _case(classname: str, name: str, kind: str, text: str) -> ET.Element:
    test = ET.Element("testcase", classname=printable(classname), name=printable(name), time="0.000")
    lines = [printable(line) for line in text.splitlines()] or [""]
    ET.SubElement(test, kind, message=lines[0]).text = "\n".join(lines)
    return test


def _suite(
    name: str, tests: Sequence[ET.Element], properties: Sequence[tuple[str, str]], attributes: dict[str, str]
) -> ET.Element:
    count = {kind: sum(test.find(kind) is not None for test in tests) for kind in ("error", "failure", "skipped")}
    counted = {"errors": count["error"], "failures": count["failure"], "skipped": count["skipped"], "tests": len(tests)}
    suite = ET.Element("testsuite", {"name": name, **{key: str(value) for key, value in counted.items()}, **attributes})
    suite.set("time", f"{sum(float(test.get('time', 0)) for test in tests):.3f}")
    if properties:
        listed = ET.SubElement(suite, "properties")
        for key, value in properties:
            ET.SubElement(listed, "property", name=key, value=printable(value))
    suite.extend(tests)
    return suite
