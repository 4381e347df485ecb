"""A process of this machine that leads to a host, or asks one."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from asyncio.subprocess import DEVNULL, SubprocessStreamProtocol
from collections.abc import Callable, Mapping, Sequence
from typing import Self


class _Streams(SubprocessStreamProtocol):
    """Its pipes, and whether it has exited."""

    def __init__(self, limit: int) -> None:
        super().__init__(limit=limit, loop=asyncio.get_running_loop())
        self.exited = asyncio.Event()

    def process_exited(self) -> None:
        super().process_exited()
        self.exited.set()


class LocalProcess:
    """One that leads a group, and whose end nobody can put off by holding its pipes.

    The `wait` of asyncio's own processes waits, before Python 3.13, until their pipes are closed as well. Whatever a
    process has started may hold these, and where one is full and nobody reads on, that it is closed is never found out.
    """

    def __init__(self, transport: asyncio.SubprocessTransport, streams: _Streams) -> None:
        """Take what `start` has started."""
        self._transport, self._streams = transport, streams
        self.pid = transport.get_pid()
        self.stdin, self.stdout, self.stderr = streams.stdin, streams.stdout, streams.stderr

    @classmethod
    async def start(
        cls,
        command: Sequence[str],
        *,
        stdin: int = DEVNULL,
        stdout: int = DEVNULL,
        stderr: int = DEVNULL,
        limit: int = 1 << 16,
        environment: Mapping[str, str] | None = None,
        before: Callable[[], None] | None = None,
    ) -> Self:
        """Begin.

        Args:
            command: the program and its arguments.
            stdin, stdout, stderr: `PIPE` for those to be used.
            limit: bytes of a line, of what it prints.
            environment: its variables, if not this process's.
            before: what the new process calls before all else.

        Raises:
            OSError: it can't be started.
        """
        transport, streams = await asyncio.get_running_loop().subprocess_exec(
            lambda: _Streams(limit),
            *command,
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            start_new_session=True,
            env=environment,
            preexec_fn=before,
        )
        return cls(transport, streams)

    @property
    def returncode(self) -> int | None:
        """Its exit code once it has ended, negative for a signal."""
        return self._transport.get_returncode()

    async def wait(self) -> None:
        """Wait for its end, whoever holds its pipes."""
        await self._streams.exited.wait()

    def signal(self, number: int) -> None:
        """Send a signal to it alone, if it hasn't ended."""
        with contextlib.suppress(ProcessLookupError):
            self._transport.send_signal(number)

    def kill(self) -> None:
        """Kill it and its group, if it hasn't ended."""
        if self.returncode is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)

    async def end(self) -> None:
        """Kill it and its group, if it hasn't ended, and close its pipes: what it has started may hold them."""
        self.kill()
        try:
            await self.wait()
        finally:
            if self.stdin and self.stdin.transport.get_write_buffer_size():
                self.stdin.transport.abort()  # closing waits for a reader, who may be another
            self._transport.close()
