"""What is wrong with a file, said on its line: GitHub's workflow commands, GitLab's code quality report."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass

from reports.content.text import printable


@dataclass(frozen=True)
class Annotation:
    """A problem at a line, counted from 1, of a file, relative to the project's top folder."""

    path: str
    line: int
    title: str
    message: str


def github(annotations: Iterable[Annotation]) -> str:
    """Workflow commands, a line each: no text of others can begin another one."""
    return "".join(
        f"::error file={_property(each.path)},line={each.line},title={_property(each.title)}::{_data(each.message)}\n"
        for each in annotations
    )


def gitlab(annotations: Iterable[Annotation]) -> str:
    """A code quality report, JSON."""
    return json.dumps(
        [
            {
                "description": f"{printable(each.title)}: {printable(each.message)}",
                "check_name": "proofmark",
                "fingerprint": hashlib.sha256(repr(each).encode("utf-8", "backslashreplace")).hexdigest(),
                "severity": "blocker",
                "location": {"path": printable(each.path), "lines": {"begin": each.line}},
            }
            for each in annotations
        ],
        indent=1,
    )


def _data(text: str) -> str:
    return printable(text).replace("%", "%25")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
