"""What a child answers on, line by line: neither its silence, its end nor a line without end holds up who reads."""

from __future__ import annotations

import contextlib
import os
import selectors
import time
from collections.abc import Iterator

from proofmark.process.child import Child

LOOK_EVERY = 1.0
"""Seconds between two looks at whether a silent child lives."""


class AnswerPipe:
    """A pipe from a child."""

    def __init__(self, longest: int) -> None:
        """Make it; a line has `longest` bytes at most."""
        self._longest, self._buffer = longest, b""
        read, self._write = os.pipe()
        self._stream = os.fdopen(read, "rb", buffering=0)

    @contextlib.contextmanager
    def given_away(self) -> Iterator[int]:
        """The descriptor that the child gets, who alone has it afterwards."""
        try:
            yield self._write
        finally:
            os.close(self._write)

    def receive(self, child: Child, deadline: float) -> bytes | None:
        """The next line, None at the end of the child: its process's end, since what it forked may hold the pipe.

        Raises:
            TimeoutError: none came before `deadline` on the monotonic clock.
            ValueError: the line is too long.
        """
        if self._stream.closed:
            return None
        with selectors.DefaultSelector() as selector:
            selector.register(self._stream, selectors.EVENT_READ)
            while b"\n" not in self._buffer:
                left = deadline - time.monotonic()
                ended = child.has_ended()
                if not selector.select(0 if ended else max(0.0, min(left, LOOK_EVERY))):
                    if ended:
                        return None
                    if left <= 0:  # and nothing came while this process could not look
                        raise TimeoutError
                    continue
                chunk = os.read(self._stream.fileno(), 65536)
                if not chunk:
                    return None
                self._buffer += chunk
                if len(self._buffer) > self._longest and b"\n" not in self._buffer[: self._longest + 1]:
                    raise ValueError(f"more than {self._longest >> 20} MiB without an end of line")
        line, self._buffer = self._buffer.split(b"\n", 1)
        return line

    def close(self) -> None:
        """Read no more."""
        self._stream.close()
