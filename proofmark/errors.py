"""Errors written for the person who has to act on them."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

LONGEST = 2000
"""Characters of a problem that are shown: what was found may be of any length."""


class ProofmarkError(Exception):
    """A mistake that the user can mend. Its text is complete: no traceback is needed."""


class UsageError(ProofmarkError):
    """The command line, a host file or a vendor package is wrong; nothing has run (exit 4)."""


class StepError(ProofmarkError):
    """A step of a case cannot be done with the data, weights or files it was given.

    A vendor's code raises it with a text that says what is wrong and what to do: it is shown as it is. Anything else
    that is raised is shown with its name, and its traceback is in the run's logs.
    """


@dataclass(frozen=True)
class Problem:
    """One thing wrong with a configuration.

    `where` names the file or the option, `key` the entry (empty for the whole file), `what`
    says what is wrong, what was expected and what to do.
    """

    __pydantic_config__ = {"extra": "forbid"}  # of a record too

    where: str
    key: str
    what: str

    def __str__(self) -> str:
        line = f"{self.where}: {self.key}: {self.what}" if self.key else f"{self.where}: {self.what}"
        return harmless(line)


MOST = 40
"""Problems of a file that are told."""


def shortened(problems: Sequence[Problem], where: str) -> list[Problem]:
    """The first of the problems of a file, and how many more there are: nobody reads ten thousand."""
    return [*problems[:MOST], *more_problems(where, len(problems) - MOST)]


def more_problems(where: str, count: int) -> list[Problem]:
    """That there are so many more; none where there are not."""
    return [Problem(where, "", f"and {count} more problems")] if count > 0 else []


CAUSE = "Last error:"
"""The line after which torch names the cause."""


def harmless(text: str) -> str:
    """`text` on one line of bounded length, with what would move a terminal's cursor as escapes."""
    shown = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text[: LONGEST + 1])
    return shown if len(shown) <= LONGEST else f"{shown[:LONGEST]} ..."


def first_line(error: BaseException) -> str:
    """What an exception of anybody's code says first; empty where it says nothing, or fails to. Of a library by which
    ranks speak the cause follows, which torch puts last."""
    try:
        lines = str(error).strip().splitlines()
    except (Exception, SystemExit):  # noqa: BLE001 (its `__str__` may raise anything)
        return ""
    causes = [line for before, line in itertools.pairwise(lines) if before.strip() == CAUSE]
    return harmless("; ".join([*lines[:1], *causes[-1:]]))


def reason(error: BaseException) -> str:
    """That, or the exception's name where it says nothing."""
    return first_line(error) or type(error).__name__


def named(error: BaseException) -> str:
    """The first line, after the exception's name."""
    return f"{type(error).__name__}: {first_line(error)}"


def in_a_line(error: BaseException) -> str:
    """A mistake that the user can mend in its own words, all else by its name."""
    return first_line(error) if isinstance(error, ProofmarkError) else named(error)


class ConfigurationError(ProofmarkError):
    """All problems of one configuration at once."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(str(problem) for problem in self.problems))


class MissingProfile(ConfigurationError):
    """A case that is fine, apart from not having the profile that is asked for."""
