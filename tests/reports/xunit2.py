"""The JUnit files of tests: held to the schema of those who read them."""

from __future__ import annotations

import functools
import xml.etree.ElementTree as ET
from pathlib import Path

import xmlschema


@functools.cache
def schema() -> xmlschema.XMLSchema:
    return xmlschema.XMLSchema(str(Path(__file__).with_name("xunit2.xsd")))


def suites(path: Path) -> dict[str, ET.Element]:
    """The test suites of a file by name; the file is valid and its counts are those of its tests."""
    schema().validate(str(path))
    found = {suite.attrib["name"]: suite for suite in ET.parse(path).getroot()}
    for suite in found.values():
        tests = suite.findall("testcase")
        assert int(suite.attrib["tests"]) == len(tests)
        for kind, count in (("error", "errors"), ("failure", "failures"), ("skipped", "skipped")):
            assert int(suite.attrib[count]) == len(suite.findall(f"testcase/{kind}"))
    return found


def properties(suite: ET.Element) -> dict[str, str]:
    """Of one run."""
    return {each.attrib["name"]: each.attrib["value"] for each in suite.findall("properties/property")}


def ended(suite: ET.Element, kind: str) -> list[tuple[str, str]]:
    """Name and message of each test that ended so."""
    return [
        (test.attrib["name"], each.attrib["message"])
        for test in suite.findall("testcase")
        for each in test.findall(kind)
    ]
