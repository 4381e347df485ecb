"""Regular expressions of a vendor's files, held to those whose search ends soon, whatever is searched in.

One that may repeat what repeats, or takes one of many ways at many places, can be tried for years before it fails: in
the session's own process, by whoever wrote it.
"""

from __future__ import annotations

import re

LONGEST = 200
"""Characters of a pattern, and of the text that is searched."""

MOST_WAYS = 1 << 20
"""Ways to be tried at one place: all patterns of a file together, so that they take seconds at most."""

_ONE = re.compile(r"\\[^0-9A-Za-z]|\\[bBdDsSwW]|\[\^?(?:\\.|[^\]\\])*\]", re.DOTALL)
"""What stands for one character, or for a place between two: it is looked into no further."""

_GROUP = re.compile(r"\((?:\?[:=!])?")
_FLAGS, _TIMES = re.compile(r"^\(\?[aims]+\)"), re.compile(r"[^()|*+?{}]\{[0-9]{1,2}\}")
"""What stands before a pattern, and one character so many times: neither leaves a choice."""

_REPEATED, _CHOICE = re.compile(r"[*+]"), re.compile(r"[?|]")


def ways(pattern: str) -> int:
    """How many a search may have to try at one place of a text of LONGEST characters, at most.

    Raises:
        ValueError: it is no regular expression, or one for which nobody can tell; one line, for a person.
    """
    if len(pattern) > LONGEST:
        raise ValueError(f"expected a regular expression of at most {LONGEST} characters, found {len(pattern)}")
    try:
        re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(f"not a regular expression: {error}") from None
    bare = _TIMES.sub("x", _GROUP.sub("(", _FLAGS.sub("", _ONE.sub("x", pattern))))
    if re.search(r"\)[*+{]|[{\\]|\(\?", bare):
        raise ValueError(
            "could be searched for without end: expected text, classes, groups that are not repeated, x{2} of one "
            "character, and * + ? | (no {2,}, no references)"
        )
    return int(LONGEST ** len(_REPEATED.findall(bare)) * 2 ** len(_CHOICE.findall(bare)))
