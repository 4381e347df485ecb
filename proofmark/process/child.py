"""A child process, whatever it is for: a case's own, its monitor, a vendor's introduction, an agent on this machine."""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import sys
import tempfile
import time
import weakref
from collections.abc import Mapping, Sequence
from pathlib import Path

from proofmark.process.environment import begun_with
from proofmark.process.identity import ProcessIdentity
from proofmark.process.lifetime import DYING, SWEEP, end_family, end_marked, marked, outlived, wait_without_reaping
from proofmark.process.output.capped_log import CappedLog
from proofmark.process.scratch.own_directory import remove
from proofmark.process.scratch.temporary import temporary_name
from proofmark.process.signalled import ask_for_stacks
from proofmark.process.warm.modules import start_module

STACKS = 10.0
"""Seconds that a child gets to write where it is: it does so at once, but may be given no processor for a while."""

WRITTEN = 0.3
"""Seconds after which what it wrote is all, where no more came."""


class Child:
    """`python -m MODULE`, leader of a process group, with a pipe as its standard input by which it knows that its
    parent lives. All that it starts is known by a mark in its environment, in whatever group or session it is.

    Attributes:
        mark: that one.
        log: of what it prints.
        printed: what it printed, once it was ended, where its log has no name.
        outlived: processes of it and of what it started that go on though they were killed; nobody waits for them.
    """

    printed = b""
    outlived: Sequence[int] = ()

    def __init__(
        self,
        module: str,
        arguments: Sequence[str] = (),
        *,
        log: Path | None = None,
        passed: Sequence[int] = (),
        environment: Mapping[str, str] | None = None,
        sys_path: Sequence[str] | None = None,
        imports: Sequence[str] = (),
        temporary: bool = True,
        everything: bool = False,
    ) -> None:
        """Start it.

        Args:
            module: what runs.
            arguments: what it is told.
            log: the file to which what it prints is added; None for one without a name.
            passed: descriptors that it gets; their numbers there follow its arguments.
            environment: beside what passes of this process's, as by `proofmark.process.environment`.
            sys_path: where its Python finds modules; None: where this one does.
            imports: large modules that it will need, and the next ones too.
            temporary: whether it has a directory of its own for temporary files, which goes with it. A child that dies
                with its parent without another word has nobody to remove that.
            everything: whether it has all of this process's environment; else that directory is its home.

        Raises:
            OSError: it can't be started, or its log can't be written.
        """
        self.mark = secrets.token_hex(16)
        self._temporary = temporary_name() if temporary else None
        self._cleared = weakref.finalize(self, remove, self._temporary) if self._temporary else None  # at exit too
        self._unnamed = tempfile.TemporaryFile() if log is None else None  # noqa: SIM115 (closed with the child)
        self.log = CappedLog(log or Path(f"/dev/fd/{self._unnamed.fileno()}" if self._unnamed else os.devnull))
        own = {**marked(self.mark), "PYTHONPATH": os.pathsep.join(sys.path if sys_path is None else sys_path)}
        own |= {"TMPDIR": str(self._temporary)} if self._temporary else {}
        whole = begun_with(environment or {}, own, everything, str(self._temporary) if self._temporary else None)
        try:
            self._process = start_module(
                module, arguments, passed, self.log.descriptor, whole, imports, self._temporary
            )
        except BaseException:
            self._remove_temporary()
            raise
        finally:
            os.close(self.log.descriptor)

    @property
    def pid(self) -> int:
        """The id of its process, and of its group."""
        return self._process.pid

    @property
    def identity(self) -> ProcessIdentity:
        """Its process, identified by more than a number."""
        return ProcessIdentity.of(self.pid)

    @property
    def returncode(self) -> int | None:
        """Its exit code, negative for a signal; None until `end` or `kill`, and of one that outlived them."""
        return self._process.returncode

    def say(self, line: str) -> None:
        """Write a line to its standard input; nothing to do where it reads no more."""
        with contextlib.suppress(OSError, ValueError):
            if self._process.stdin:
                self._process.stdin.write(line.encode() + b"\n")
                self._process.stdin.flush()

    def has_ended(self, within: float = 0.0) -> bool:
        """Whether it has, or was given up, waiting for it so many seconds; its id stays taken."""
        return self._is_over or wait_without_reaping(self.pid, within)

    def end(self, patience: float) -> bool:
        """Ask it to end by closing its standard input, then `kill`; whether it ended by itself."""
        self._hang_up()
        ended = self.has_ended(patience)
        self.kill()
        return ended

    def kill(self) -> None:
        """End its group now, and all that left that, and leave nothing behind. A second time does nothing."""
        if self._is_over:
            return
        end_family(self._process)
        self._hang_up()
        own = [self.pid] if self._process.returncode is None else []  # it had its time
        self.outlived = sorted({*own, *end_marked(self.mark, SWEEP if own else DYING)})
        self.log.finish()
        if self._unnamed:
            self.printed = self._written(0)
            self._unnamed.close()
        self._remove_temporary()

    def stacks(self) -> bytes:
        """Have it write where all its threads are, if it can; what it wrote."""
        before = self.log.received
        ask_for_stacks([self.pid], STACKS)
        stacks, deadline = b"", time.monotonic() + STACKS
        while (stacks or not self.has_ended()) and time.monotonic() < deadline:
            time.sleep(WRITTEN)
            earlier, stacks = stacks, self._written(before)
            if stacks and stacks == earlier:
                break
        return stacks

    def cause_of_death(self) -> str:
        """How one that was ended, or ended itself, came to it; part of a sentence."""
        return cause_of_death(self.returncode)

    @property
    def left(self) -> str:
        """What is added to the reason for which it was ended, where some of it goes on; else nothing."""
        return f"; {outlived(self.outlived)}" if self.outlived else ""

    @property
    def _is_over(self) -> bool:
        return self._process.returncode is not None or bool(self.outlived)

    def _written(self, position: int) -> bytes:
        with contextlib.suppress(OSError):
            return self.log.since(position)
        return b""

    def _hang_up(self) -> None:
        with contextlib.suppress(OSError):
            if self._process.stdin:
                self._process.stdin.close()

    def _remove_temporary(self) -> None:
        if self._cleared:
            self._cleared()


def cause_of_death(code: int | None) -> str:
    """How a process that has this exit code, negative for a signal, came to its end; part of a sentence. None is that
    of one that was given up."""
    if code is None:
        return "was killed, and goes on: SIGKILL does not end what waits in a driver, or for a disk"
    if code >= 0:
        return f"ended with exit code {code}"
    name = signal.Signals(-code).name if -code in set(signal.Signals) else str(-code)
    return f"died of signal {-code} ({name})"
