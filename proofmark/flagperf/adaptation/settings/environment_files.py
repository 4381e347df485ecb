"""FlagPerf's environment_variables.sh and requirements.txt: lines that say what they mean, never run."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from packaging.requirements import InvalidRequirement, Requirement

_VALUE = r"""'(?P<single>[^']*)'|"(?P<double>[^"$`\\]*)"|(?P<bare>[A-Za-z0-9_./:,=+@%-]*)"""
_EXPORT = re.compile(rf"(?P<name>[A-Za-z_][A-Za-z0-9_]*)=(?:{_VALUE})(?=\s|$)\s*")

_BLOCKS = {"if": "fi", "case": "esac", "{": "}", "(": ")"} | dict.fromkeys(("for", "while", "until", "select"), "done")
"""What begins a part of a script that not every run comes by, or that is a shell of its own, and what ends it."""

_BEGIN = frozenset({"then", "do", "else", "elif", "!", "{", "(", ")"})
"""After what a command begins, beside the ends of others."""

_QUOTED = re.compile(r"""'[^']*'|"(?:\\.|[^"\\])*"|\\.""")
_TOKEN = re.compile(r"[;&|]+|[()]|[^\s;&|()]+")
_FUNCTION = re.compile(r"^(function\s+[\w-]+\s*(\(\s*\))?|[\w-]+\s*\(\s*\))")

_LOWER = re.compile(
    r"(?:(?<![a-z0-9])((u?int|fp|float|bfloat|bf)(4|8|16)|tf32|half|amp)|(?<![^\s,;:=])-lamp)(?![a-z0-9])",
    re.IGNORECASE,
)
_ON = re.compile(r"true|on|yes|y|t|enabled?|0*[1-9][0-9]*", re.IGNORECASE)
_NOT = re.compile(r"(?<![a-z0-9])(disabled?|no|not|without)_", re.IGNORECASE)
_FILE = re.compile(r"(\.{0,2}|~)/|.*\.(?!half$|amp$|[a-z]*(4|8|16|32)$)[a-z]{1,5}[0-9]?$", re.IGNORECASE)
"""A path, or a file's name: not torch.half, nor torch.int8."""


class Line(NamedTuple):
    """A line's content: a name and its value, or why it was not read, in which case `value` is None.

    `under` is what begins the part of a script that the line stands in, empty where every run comes by it.
    """

    number: int
    name: str
    value: str | None
    why: str = ""
    under: str = ""


def lowers_precision(value: str, name: str = "") -> str | None:
    """Why a variable is not taken over, where it names a lower precision; None where it names none.

    It may do so in its value, but for names of files, or in its own name where its value is on.
    """
    words = [word for word in re.split(r"[\s,;:=]+", value) if not _FILE.match(word)]
    named = _LOWER.search(" ".join(words))
    if named is None and _ON.fullmatch(value.strip()):
        named = _LOWER.search(name)
        named = None if named and _NOT.search(name[: named.start()]) else named
    if named is None:
        return None
    return f"names the precision {named[0]}, which nothing would tell: declare it in training_precisions, and --set it"


def exports(text: str) -> Iterator[Line]:
    """Each variable that a script exports; of any other line, that it is not read."""
    blocks: list[tuple[str, str]] = []
    for number, line in enumerate(text.splitlines(), 1):
        words = line.strip()
        if not words or words.startswith("#"):
            continue
        under = blocks[-1][1] if blocks else ""
        yield from (line._replace(under=under) for line in _exported(number, words))
        _follow(blocks, number, words)


def _follow(blocks: list[tuple[str, str]], number: int, words: str) -> None:
    """What a line begins and ends of the parts that not every run comes by, innermost last.

    Args:
        blocks: the word that ends each, and how it begins.
        number: the line's.
        words: the line.
    """
    begins = True
    for word in _TOKEN.findall(_FUNCTION.sub("", re.sub(r"(^|\s)#.*", "", _QUOTED.sub("_", words)))):
        ends = [end for end, _ in blocks]
        if begins and word in _BLOCKS:
            blocks.append((_BLOCKS[word], f"{words[:60]} (line {number})"))
        elif word in ends and (begins or word == ")"):
            del blocks[len(ends) - 1 - ends[::-1].index(word) :]  # with what was not ended within it
        begins = word in _BEGIN or not word.strip(";&|")


def _exported(number: int, words: str) -> Iterator[Line]:
    """Of a line's commands, as long as they export; of what follows them, that it is not read."""
    bare = re.sub(r"(^|\s)#.*", "", _QUOTED.sub(lambda quoted: "_" * len(quoted[0]), words))
    begin = 0
    for command in bare.split(";"):
        end = begin + len(command)
        text = words[begin:end].strip()
        exported = re.sub(r"^export\s+", "", text)
        if text and exported == text:
            name = words[begin:].strip().partition("=")[0][:80]
            yield Line(number, name, None, "is not a line of the form export NAME=value, and is not run")
            return
        yield from _variables(number, exported)
        begin = end + 1


def _variables(number: int, rest: str) -> Iterator[Line]:
    """Those of a command, up to a value that can't be read; the others have names."""
    while match := _EXPORT.match(rest):
        value = next(part for part in (match["single"], match["double"], match["bare"]) if part is not None)
        yield Line(number, match["name"], value)
        rest = rest[match.end() :]
    names = re.findall(r"(?:^|\s)([A-Za-z_][A-Za-z0-9_]*)=", rest)
    for name in names or [rest.partition("=")[0]] * bool(rest):
        why = "has a value that only a shell could compute, or comes after one; write the value"
        yield Line(number, name[:80], None, why)


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
            why = "is a pip option: give it to pip yourself" if option else "is not a package with versions"
            yield Line(number, words[:80], None, why)
            continue
        if requirement.url:
            yield Line(number, requirement.name, None, "is an address: install it yourself, and give its version")
        else:
            yield Line(number, requirement.name, str(requirement))
