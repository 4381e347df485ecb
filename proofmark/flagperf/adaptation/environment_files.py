"""FlagPerf's environment_variables.sh and requirements.txt: lines that say what they mean, never run."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from packaging.requirements import InvalidRequirement, Requirement

_VALUE = r"""'(?P<single>[^']*)'|"(?P<double>[^"$`\\]*)"|(?P<bare>[A-Za-z0-9_./:,=+@%-]*)"""
_EXPORT = re.compile(rf"(?P<name>[A-Za-z_][A-Za-z0-9_]*)=(?:{_VALUE})(?=\s|$)\s*")


_LOWER = re.compile(r"(?<![a-z0-9])((u?int|fp|float|bfloat|bf)(4|8|16)|tf32|half)(?![a-z0-9])", re.IGNORECASE)


class Line(NamedTuple):
    """A line's content: a name and its value, or why it was not read, in which case `value` is None."""

    number: int
    name: str
    value: str | None
    why: str = ""


def lowers_precision(value: str) -> str | None:
    """Why a variable of that value is not taken over, where it names a lower precision; None where it names none."""
    named = _LOWER.search(value)
    if named is None:
        return None
    return f"names the precision {named[0]}, which nothing would tell: declare it in training_precisions, and --set it"


def exports(text: str) -> Iterator[Line]:
    """Each variable that a script exports; of any other line, that it is not read."""
    for number, line in enumerate(text.splitlines(), 1):
        words = line.strip()
        if not words or words.startswith("#"):
            continue
        yield from _exported(number, words)


def _exported(number: int, words: str) -> Iterator[Line]:
    rest = re.sub(r"^export\s+", "", words)
    if rest == words:
        yield Line(
            number, words.partition("=")[0][:80], None, "is no line of the form export NAME=value, and is not run"
        )
        return
    found = []
    while rest and not rest.startswith("#"):
        match = _EXPORT.match(rest)
        if match is None:
            name = rest.partition("=")[0][:80]
            yield Line(number, name, None, "has a value that only a shell could tell, and is not run; write the value")
            return
        value = next(part for part in (match["single"], match["double"], match["bare"]) if part is not None)
        found.append(Line(number, match["name"], value))
        rest = rest[match.end() :]
    yield from found


def requirements(text: str) -> Iterator[Line]:
    """Each package that a list asks for; of any other line, why it is none."""
    for number, line in enumerate(text.splitlines(), 1):
        words = re.sub(r"(^|\s)#.*", "", line).strip()
        if not words:
            continue
        try:
            requirement = Requirement(words)
        except InvalidRequirement:
            option = words.startswith("-")
            why = "is an option of pip's: give it to pip yourself" if option else "is no package with its versions"
            yield Line(number, words[:80], None, why)
            continue
        if requirement.url:
            yield Line(
                number, requirement.name, None, "comes from an address: install it yourself, and name its version"
            )
        else:
            yield Line(number, requirement.name, str(requirement))
