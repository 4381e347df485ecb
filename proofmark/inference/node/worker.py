"""Each case run has a process of its own: a crash, a leak or a stuck device stays inside it.

The parent sends the name of a step as a line and reads JSON lines: progress, then the step's outcome.
The child leads a process group, which ends with the parent, however that ends: the child sees its
command pipe close and kills the group. What it started in sessions of their own is known by a mark
in its environment, and ends then too.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import selectors
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NoReturn

from proofmark.process.answers import LONGEST, read_answer
from proofmark.process.capped_log import CappedLog
from proofmark.process.lifetime import end_group, end_marked, marked, temporary_directory, wait_without_reaping
from proofmark.process.silence import Listener, Patience
from proofmark.process.warm import start_module

LOOK_EVERY = 1.0
"""Seconds between two looks at whether a silent child lives."""

STACKS = 2.0
"""Seconds that a child gets to write where it is."""

DETAIL = 20_000
"""Bytes of its stacks that are kept."""

Progress = Callable[[dict[str, Any]], None]

SILENCE = 5.0
"""Seconds after which a child that says nothing is told to be still at its step."""


@dataclass(frozen=True)
class WorkerSpec:
    """What a child needs to rebuild the case. All plain values."""

    case_module: str
    case_class: str
    vendor: str
    vendors_dir: str
    compiler: str | None
    config: dict[str, Any]
    run_dir: str
    sys_path: tuple[str, ...] = field(default_factory=lambda: tuple(sys.path))


class WorkerLost(Exception):
    """The child died, or took too long and was killed; the text says which, in a full sentence.

    `detail` are Python's stacks in a child that did not answer any more.
    """

    def __init__(self, reason: str, detail: str | None = None) -> None:
        self.detail = detail
        super().__init__(reason)


class CaseWorker:
    """The parent's end of a case's process."""

    def __init__(
        self,
        spec: WorkerSpec,
        environment: Mapping[str, str] | None = None,
        patience: Patience | None = None,
        imports: Sequence[str] = (),
    ) -> None:
        self._listener = Listener(patience or Patience())
        self._temporary = temporary_directory()
        answer_read, answer_write = os.pipe()
        self._log = CappedLog(Path(spec.run_dir) / "worker.log")
        self._mark = secrets.token_hex(16)
        own = {**marked(self._mark), "PYTHONPATH": os.pathsep.join(spec.sys_path)}
        try:
            self._process = start_module(
                "proofmark.inference.node.worker_main",
                (),
                [answer_write],
                self._log.descriptor,
                {**os.environ, **(environment or {}), **own, "TMPDIR": self._temporary.name},
                imports,
            )
        finally:
            os.close(answer_write)
            os.close(self._log.descriptor)
        self._answers = os.fdopen(answer_read, "rb", buffering=0)
        self._buffer = b""
        self._send(asdict(spec))

    @property
    def mark(self) -> str:
        """By which all that it starts is known."""
        return self._mark

    @property
    def group(self) -> int:
        """The child's process group."""
        return self._process.pid

    def run(self, step: str, timeout: float | None, on_progress: Progress) -> dict[str, Any]:
        """Run one step and return its outcome: status, reason, kind, detail.

        `on_progress` gets what the child reports and, where that is nothing for a while, `{"silent": step, "seconds":
        since the step began}`.

        Raises:
            WorkerLost: the child died, or was killed, since it outlasted `timeout` seconds, was silent for too long or
                answered rubbish.
        """
        begun = time.monotonic()
        deadline = float("inf") if timeout is None else begun + timeout
        self._send({"step": step})
        self._listener.begin()
        while True:
            left = self._listener.limit - self._listener.silence
            try:
                answer = self._receive(min(deadline, time.monotonic() + min(SILENCE, max(0.0, left))))
            except TimeoutError:
                if time.monotonic() >= deadline:
                    self._end_hung(f"took longer than the {timeout:g} s of --step-timeout and was ended")
                if left <= 0:
                    self._end_hung(self._listener.verdict())
                on_progress({"silent": step, "seconds": time.monotonic() - begun})
                continue
            except ValueError as error:
                self.kill()
                raise WorkerLost(f"the case's process answered what is no answer, and was ended: {error}") from None
            if answer is None:
                raise WorkerLost(self._cause_of_death())
            if "outcome" in answer:
                return dict(answer["outcome"])
            self._listener.hear(answer)
            if time.monotonic() >= deadline:
                self._end_hung(f"took longer than the {timeout:g} s of --step-timeout and was ended")
            on_progress(answer)

    def close(self) -> None:
        """Let the child leave by itself, then end whatever it has left behind."""
        with contextlib.suppress(OSError):
            self._send({"step": None})
        wait_without_reaping(self._process.pid, 10)
        self.kill()

    def kill(self) -> None:
        """End the group now, and all that left it."""
        end_group(self._process)
        end_marked(self._mark)
        self._log.finish()
        for stream in (self._process.stdin, self._answers):
            with contextlib.suppress(OSError):
                if stream:
                    stream.close()
        self._temporary.cleanup()

    def _end_hung(self, reason: str) -> NoReturn:
        """Let the child write its stacks into its log, then end it."""
        before = self._log.received
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._process.pid, signal.SIGUSR1)
        stacks, deadline = b"", time.monotonic() + STACKS
        while (not stacks or stacks != self._written_since(before)) and time.monotonic() < deadline:
            stacks = self._written_since(before)
            time.sleep(0.1)
        self.kill()
        raise WorkerLost(
            f"{reason}; where it was is in worker.log", stacks[-DETAIL:].decode("utf-8", "replace") or None
        )

    def _written_since(self, position: int) -> bytes:
        with contextlib.suppress(OSError):
            return self._log.since(position)
        return b""

    def _send(self, message: Mapping[str, Any]) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError, ValueError):
            self._process.stdin.write((json.dumps(message) + "\n").encode())
            self._process.stdin.flush()

    def _receive(self, deadline: float) -> dict[str, Any] | None:
        """The next line, None at the end of the child: its process's end, since what it forked may hold the pipe.

        Raises:
            TimeoutError: none came before `deadline` on the monotonic clock.
            ValueError: what came is no answer.
        """
        if self._answers.closed:
            return None
        with selectors.DefaultSelector() as selector:
            selector.register(self._answers, selectors.EVENT_READ)
            while b"\n" not in self._buffer:
                left = deadline - time.monotonic()
                ended = wait_without_reaping(self._process.pid, 0)
                if not selector.select(0 if ended else max(0.0, min(left, LOOK_EVERY))):
                    if ended:
                        return None
                    if left <= 0:  # and nothing came while this process could not look
                        raise TimeoutError
                    continue
                chunk = os.read(self._answers.fileno(), 65536)
                if not chunk:
                    return None
                self._buffer += chunk
                if len(self._buffer) > LONGEST and b"\n" not in self._buffer:
                    raise ValueError(f"more than {LONGEST >> 20} MiB without an end of line")
        line, self._buffer = self._buffer.split(b"\n", 1)
        return read_answer(line)

    def _cause_of_death(self) -> str:
        wait_without_reaping(self._process.pid, 10)
        self.kill()
        code = self._process.returncode
        if code is not None and code < 0:
            name = signal.Signals(-code).name if -code in set(signal.Signals) else str(-code)
            return f"the case's process died of signal {-code} ({name}); its output is in worker.log"
        return f"the case's process ended with exit code {code}; its output is in worker.log"
