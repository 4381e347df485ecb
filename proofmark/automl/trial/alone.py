"""A trial on one device: its rank, which makes itself ready before that is free."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING

from proofmark.automl.trial.failing import heard
from proofmark.automl.trial.spec import LOG, LONGEST_LOG
from proofmark.process.environment import begun_with
from proofmark.process.lifetime import end_group
from proofmark.process.output.dictation import Dictation
from proofmark.process.warm.modules import start_module
from proofmark.training.spec import AGENT, EVENTS
from proofmark.vendor.environment import at_start, declared_of

if TYPE_CHECKING:
    from proofmark.automl.trial.handed_out import HandedOut
    from proofmark.automl.trial.spec import Begin, TrialSpec
    from proofmark.record.events.log import EventLog

OUTPUT = 1
"""What it prints goes where this process prints."""


class RankAlone:
    """The process of a trial's only rank, a child of this one."""

    def __init__(self, spec: TrialSpec, path: str, handed: HandedOut) -> None:
        """Start it.

        Args:
            spec: the trial's.
            path: of its file.
            handed: counts what it is handed.

        Raises:
            OSError: it can't be started.
        """
        self._events = Dictation(spec.folder / LOG, LONGEST_LOG)
        own = {AGENT: str(os.getpid()), EVENTS: str(self._events.descriptor), **handed.variable}
        declared = declared_of(spec.config["host"]) if spec.epochs else {}  # an evaluation alone runs no vendor's code
        environment = begun_with(at_start(declared), own)
        self._process = start_module("proofmark.automl.trial.rank", [path], [], OUTPUT, environment)

    def begin(self, begin: Begin) -> None:
        """Let it train."""
        if (stdin := self._process.stdin) is not None:
            with contextlib.suppress(OSError):  # it has ended: its log says why
                stdin.write(begin.line.encode() + b"\n")
                stdin.close()

    def wait(self, log: EventLog) -> bool:
        """Wait for its end; return whether it ended well. A rank that raised has said so in the log."""
        os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOWAIT)
        end_group(self._process)  # its loader's processes too
        code = self._process.wait()
        good = heard([self._events], log) and code == 0
        if code < 0:
            log.write("trial_failed", reason=f"it died of signal {-code}")
        return good
