"""The near end: one host's pipe, its orders and answers."""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
import time
from asyncio.subprocess import PIPE
from collections.abc import Sequence
from typing import Any

from proofmark.errors import ProofmarkError, harmless
from proofmark.launch.cluster.local_process import LocalProcess
from proofmark.launch.cluster.node_logs import NodeLogs, printable
from proofmark.launch.far_end.protocol import GREETING, PIECE

SILENCE = 300.0
"""Seconds without a heartbeat of a host after which it is lost."""

GRACE = 5.0
"""Seconds by which its far end gives up before: it has ended all that ran there when the host is called lost."""

QUIET = 8.0
"""Seconds without a heartbeat after which a user is told, and a host is at fault if something goes wrong elsewhere:
fewer than the others get to end then."""

LOOKS, EVERY = 80, 0.25
"""How often it is looked whether a process has ended whose output has, and seconds that a look takes. Looks are
counted, not seconds: while this machine stood still nobody could hear of its end."""

LAST_WORDS = 1.0
"""Seconds for the last of its errors to be read; another process may hold their pipe."""

MOST_CHATTER = 64 * 1024
"""Bytes that a login may print before the far end speaks, and that are kept of errors."""

LONGEST = 200
"""Characters that are told of a line of errors: fish repeats a whole command, of which the program is part."""

NO_FAR_END = "something other than Proofmark answered"

ABANDONED = "an order was given up"
"""Why a host is lost that is well: the answer that is still to come would be taken for another order's."""

_UNANSWERED = 1
"""Orders that may wait for their answer at once."""


class HostError(ProofmarkError):
    """A host that can't be reached, stopped answering, or refused an order. Its text does not name the host."""


class Connection:
    """A far end, and the process on this machine that leads to it. Used within one event loop."""

    def __init__(self, logs: NodeLogs | None = None, patience: float = 60.0, silence: float = SILENCE) -> None:
        """Prepare; `logs` take what the far end sends of a job, `patience` is in seconds, of one order, and `silence`
        in seconds, of a link that nothing comes through."""
        self._patience, self._silence = patience, silence
        self.logs = logs or NodeLogs(None)
        """Of the job that it is used for now."""
        self._process: LocalProcess | None = None
        self._answers: asyncio.Queue[dict[str, Any]] = asyncio.Queue(_UNANSWERED)
        self._asking = asyncio.Lock()
        self._tasks: list[asyncio.Task[None]] = []
        self._errors = b""
        self._silent = 0.0
        self.lost: str | None = None
        """Why there is no far end any more."""

    @property
    def is_open(self) -> bool:
        """Whether there is a far end, which answers."""
        return self._process is not None and self.lost is None and self.quiet is None

    @property
    def quiet(self) -> str | None:
        """For how long a host has been silent that is not lost, if that is out of the ordinary."""
        return f"stopped answering {self._silent:.0f} s ago" if self._silent >= QUIET and not self.lost else None

    async def open(self, command: Sequence[str], timeout: float) -> None:
        """Start a far end.

        Args:
            command: what does, such as `ssh ... python3 -c SOURCE`.
            timeout: seconds that it may take.

        Raises:
            HostError: it could not be started.
        """
        try:
            self._process = await LocalProcess.start(command, stdin=PIPE, stdout=PIPE, stderr=PIPE, limit=2**20)
        except OSError as error:
            self.lost = f"{command[0]}: {error.strerror}"
            raise HostError(self.lost) from None
        self._tasks.append(asyncio.create_task(self._listen_to_errors()))
        try:
            await asyncio.wait_for(self._greeting(), timeout)
        except TimeoutError:
            self.lost = f"no answer within {timeout:g} s, `answer_timeout`"
        except EOFError:
            self.lost = await self._why_ended()
        except HostError as error:
            self.lost = str(error)
        except ValueError:  # a line without an end
            self.lost = NO_FAR_END
        if self.lost:
            await self.close()
            raise HostError(self.lost)
        self._errors = b""  # what a login prints is no reason for what happens hours later
        self._tasks += [asyncio.create_task(self._listen()), asyncio.create_task(self._heartbeat())]

    async def ask(
        self, order: str, body: bytes | None = None, timeout: float | None = None, **fields: Any
    ) -> dict[str, Any]:
        """Give an order and wait for its answer, for `timeout` seconds where it has a time of its own.

        Raises:
            HostError: it refused, or was lost meanwhile.
        """
        seconds, key = (timeout, "") if timeout else (self._patience, ", `answer_timeout`")
        late = f"no answer to '{order}' within {seconds:g} s{key}"
        try:
            async with asyncio.timeout(seconds):
                await self._asking.acquire()
        except TimeoutError:
            raise HostError(late) from None
        try:
            return await self._ask(order, body, fields, seconds, late)
        except asyncio.CancelledError:
            self.give_up(ABANDONED)
            raise
        finally:
            self._asking.release()

    async def _ask(
        self, order: str, body: bytes | None, fields: dict[str, Any], seconds: float, late: str
    ) -> dict[str, Any]:
        if self.lost:
            raise HostError(self.lost)
        size = {} if body is None else {"size": len(body)}
        await self._write(json.dumps({"order": order, **fields, **size}).encode() + b"\n" + (body or b""))
        deadline = time.monotonic() + seconds
        answer = asyncio.ensure_future(self._answers.get())
        try:
            while not answer.done():
                if time.monotonic() > deadline:
                    self.give_up(late)  # one that came later would be taken for another order's
                if self.lost:
                    raise HostError(self.lost)
                await asyncio.wait([answer], timeout=0.5)
            return _checked(answer.result())
        finally:
            answer.cancel()

    def kill(self) -> None:
        """End the process that leads to the far end, which ends without it."""
        if self._process is not None:
            self._process.kill()

    async def close(self, patience: float = 12.0) -> None:
        """End the far end, which ends what it started, and the process that led to it.

        Args:
            patience: seconds that it may take; one that was lost, or is silent, gets none.
        """
        if self._process is None:
            return
        patience = patience if self.lost in (None, ABANDONED) and self._silent < QUIET else 0.1
        for task in self._tasks[1:]:
            task.cancel()
        if self._process.stdin:
            self._process.stdin.close()
        try:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._drain(self._process), patience)
        finally:
            await self._process.end()
        for task in self._tasks[:1]:
            task.cancel()
        self.lost = self.lost or "closed"

    async def _drain(self, process: LocalProcess) -> None:
        """Read until the process has ended, so that a full pipe doesn't hold it up."""
        with contextlib.suppress(RuntimeError):  # a cancelled reader's wait
            while process.stdout and await process.stdout.read(2**16):
                pass
        await process.wait()

    async def _greeting(self) -> None:
        assert self._process and self._process.stdout
        read = 0
        while line := await self._process.stdout.readline():
            if line.endswith(GREETING):
                return
            read += len(line)
            if read > MOST_CHATTER:
                raise HostError(NO_FAR_END)
        raise EOFError

    async def _listen(self) -> None:
        """Take frames until there are none."""
        assert self._process and self._process.stdout
        stream = self._process.stdout
        try:
            while line := await stream.readline():
                self._silent = 0.0
                frame = json.loads(line)
                size = frame.get("size")
                if size is not None and not (type(size) is int and 0 <= size <= PIECE):
                    raise ValueError(size)
                self._take(frame, b"" if size is None else (await stream.readexactly(size + 1))[:-1])
            self.give_up(await self._why_ended(answered=True))
        except (asyncio.IncompleteReadError, ConnectionError):
            self.give_up("the connection was cut")
        except OSError as error:
            self.give_up(f"its logs cannot be written here: {error}")
        except Exception:  # noqa: BLE001 (whatever a host may think of)
            self.give_up("it sent an invalid frame")

    def _take(self, frame: dict[str, Any], body: bytes) -> None:
        if frame["frame"] == "answer":
            self._answers.put_nowait(printable(frame))
        elif frame["frame"] == "ended":
            self.logs.end(frame)
        elif frame["frame"] == "file":
            self.logs.add(frame["name"], frame["offset"], body)

    async def _heartbeat(self) -> None:
        """Tell the far end that this end lives, and for how long it may believe so; notice when the far end doesn't,
        or reads nothing of what it is sent.

        The seconds of looks are counted, not those that pass: while this machine stood still nobody listened.
        """
        assert self._process and self._process.stdin
        beat = json.dumps({"order": "heartbeat", "patience": self._silence}).encode() + b"\n"
        left = stuck = 0
        while not self.lost:
            before, left = left, self._process.stdin.transport.get_write_buffer_size()
            stuck = stuck + 1 if left >= before > 0 else 0
            if not left:  # else the link takes nothing at the moment
                with contextlib.suppress(HostError):
                    await self._write(beat)
            if max(self._silent, stuck) >= self._silence + GRACE:
                is_silent = self._silent >= stuck
                why = f"stopped answering {self._silent:.0f} s ago" if is_silent else f"has read nothing for {stuck} s"
                self.give_up(f"{why}, `silence_timeout`")
                self.kill()  # whoever waits to write into a full pipe is told by its end
            await asyncio.sleep(1)
            self._silent += 1

    async def _write(self, frame: bytes) -> None:
        assert self._process and self._process.stdin
        try:
            self._process.stdin.write(frame)
            await self._process.stdin.drain()
        except (ConnectionError, RuntimeError):
            # the listener knows better why
            await asyncio.wait(self._tasks[1:2], timeout=LOOKS * EVERY + 2 * LAST_WORDS)
            raise HostError(self.lost or "the connection was cut") from None

    async def _listen_to_errors(self) -> None:
        assert self._process and self._process.stderr
        while chunk := await self._process.stderr.read(4096):
            self._errors = (self._errors + chunk)[-MOST_CHATTER:]

    async def _why_ended(self, answered: bool = False) -> str:
        """What the process that led to the far end complained of, else how it ended; both of one that had `answered`:
        the complaint may be of something else."""
        assert self._process
        for _ in range(LOOKS):
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._process.wait(), EVERY)
                break
        await asyncio.wait(self._tasks[:1], timeout=LAST_WORDS)
        complaint, end = self._stderr_line(), _end(self._process.returncode)
        return f"{end}: {complaint}" if complaint and answered else complaint or end

    def give_up(self, why: str) -> None:
        """Stop relying on this host. The first reason counts."""
        self.lost = self.lost or why

    def _stderr_line(self) -> str:
        """What the process that led to the far end complained of, in one line."""
        lines = [line.strip() for line in self._errors.decode("utf-8", "replace").splitlines()]
        kept = [line for line in lines if line.strip("@ ") and not line.startswith("debug")]
        return harmless("; ".join(dict.fromkeys(line[:LONGEST] for line in kept))[-600:])


def _end(code: int | None) -> str:
    """How the process that led to a far end ended, which passes that one's exit code on where it can."""
    if not code:
        return "the connection was closed"
    killed = 128 < code <= 128 + signal.SIGRTMAX
    return f"was killed by signal {code - 128}" if killed else f"ended with exit code {code}"


def _checked(answer: dict[str, Any]) -> dict[str, Any]:
    if "error" in answer:
        raise HostError(answer["error"])
    return answer
