"""Why a process of a trial ended before its time, written down for the driver, which goes on without it."""

from __future__ import annotations

import contextlib
import traceback
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from proofmark.errors import ProofmarkError, first_line, in_a_line
from proofmark.process.output.dictation import Dictation
from proofmark.record.events.log import EventLog

NO_MEMORY = ("out of memory", "allocate memory")
"""What the errors of devices say, and those of the processor."""


@dataclass
class Outcome:
    """The exit code that a process ends with."""

    code: int = 0


@contextlib.contextmanager
def failures_logged(log: EventLog, rank: int | None = None) -> Iterator[Outcome]:
    """Write down whatever goes wrong within; of a trial of several processes, in which rank."""
    outcome = Outcome()
    try:
        yield outcome
    except BaseException as error:  # noqa: BLE001 (that is what it is for)
        outcome.code = 1
        if not isinstance(error, ProofmarkError):
            traceback.print_exc()
        with contextlib.suppress(OSError):  # a full disk may be what failed
            whose = {} if rank is None else {"rank": rank}
            log.write("trial_failed", reason=why(error), **whose)


def heard(dictations: Iterable[Dictation], log: EventLog) -> bool:
    """Whether all that ranks told is in their logs, now that they have ended; why not, if not."""
    lost = [events for events in dictations if events.finish()]
    for events in lost:
        log.write("trial_failed", reason=f"OSError: {events.failure}")
    return not lost


def why(error: BaseException) -> str:
    """The reason, in one line."""
    said = first_line(error)
    by_name = isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError"
    if by_name or any(words in said for words in NO_MEMORY):
        return f"it ran out of memory: {said or 'the host has no more'}"
    return in_a_line(error)
