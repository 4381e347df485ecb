"""A failed training in a few lines: its cause, where in the code, and which file has the rest."""

from __future__ import annotations

import re
import traceback
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

from proofmark.errors import ProofmarkError, harmless, in_a_line
from proofmark.literal import short
from proofmark.training.outcome.record import Failure

STACK = re.compile(r"\(most recent call (last|first)\):$")
"""What Python's tracebacks begin with, and the stacks of a process that hangs, whose innermost frame is the first."""

FRAME = re.compile(r'^ *File "([^"]+)", line (\d+),? in (.+)$')

LIBRARY = re.compile(r"^<|/python3\.\d+/(?!site-packages/|dist-packages/)|/(site|dist)-packages/torch/")
"""Paths of Python and torch: who reads of a failure can mend what called them."""

FEEDING = "/proofmark/training/feeding/"
"""Files of the referee's in which a process that hangs waits for data, or for who takes it."""

TRACED = "traceback in "
"""What a cause that names its place says before the log."""

LAST = 3
"""Lines of a log without a stack that are told."""


def gist(failure: Failure, folder: Path, seen_from: Path) -> list[str]:
    """What a reader needs.

    Args:
        failure: of a run.
        folder: of the run's logs.
        seen_from: where the reader is: files below it are named from there.
    """
    logs = sorted(path for name in _logs_of(failure) for path in folder.glob(f"noderank*/{name}"))
    named = (f"its whole log: {short(path, seen_from)}" for path in logs[:LAST])
    where = () if TRACED in failure.cause else _where(failure.last_lines, seen_from)
    return [*failure.cause.splitlines(), *where, *named]


def raised(error: BaseException, log: str, seen_from: Path) -> str:
    """What a rank raised, in a line: a mistake that the user can mend in its own words; all else by its name, with the
    innermost place that is no library's, and the name of the log that has the rest."""
    message = in_a_line(error).removesuffix(": ")
    if isinstance(error, ProofmarkError):
        return message
    frames = traceback.extract_tb(error.__traceback__)[::-1]
    ours = (frame for frame in frames if not LIBRARY.search(frame.filename))
    place = next((f"{short(Path(each.filename), seen_from)}:{each.lineno}, " for each in ours), "")
    return harmless(f"{message} ({place}{TRACED}{log})")


def _logs_of(failure: Failure) -> list[str]:
    return [f"rank{rank}.log" for rank in failure.ranks[:LAST]] or ["agent.log"]


def _where(text: str, seen_from: Path) -> Iterator[str]:
    """The innermost frame of the last stack that is no library's, or the last words. Of several processes where they
    hang, one that but waits for data gives way to one that doesn't, whatever threads of libraries' alone it has."""
    lines = text.splitlines()
    stacks = [number for number, line in enumerate(lines) if STACK.search(line)]
    places = [_place(lines[begin:end]) for begin, end in pairwise([*stacks, len(lines)])]
    if not places or places[-1] is None:
        yield from (f"last words: {harmless(line)}" for line in lines[-LAST:])
        return
    busy = (place for place in places if place and FEEDING not in place[0] and not LIBRARY.search(place[0]))
    hung = [*busy] if "first" in lines[stacks[-1]] else []
    file, line, function = [places[-1], *hung][-1]
    yield harmless(f"at {short(Path(file), seen_from)}, line {line}, in {function}")


def _place(stack: Sequence[str]) -> tuple[str, str, str] | None:
    """File, line and function of the innermost frame of a stack that is no library's, or else of the innermost one."""
    frames = [found for line in stack if (found := FRAME.match(line))]
    inner_first = frames if "first" in stack[0] else frames[::-1]
    ours = (each for each in inner_first if not LIBRARY.search(each[1]))
    found = next(ours, next(iter(inner_first), None))
    return (found[1], found[2], found[3]) if found else None
