"""Asking a node what a container needs to know of it: short commands, before anything runs in one."""

from __future__ import annotations

import asyncio
import contextlib
from asyncio.subprocess import PIPE
from collections.abc import Awaitable, Callable, Sequence

from proofmark.launch.cluster.connection import NO_FAR_END, HostError
from proofmark.launch.cluster.local_process import LocalProcess
from proofmark.launch.cluster.node import Node, may_try_again

Ask = Callable[..., Awaitable[str]]
"""Runs a command on a node and returns its output: `run_on` with its first arguments given."""


async def without_disks(ask: Ask, devices: Sequence[str]) -> None:
    """A disk may have any name below /dev, and lie in a folder of which an engine gives all: only its host can tell."""
    if not devices:
        return
    found = await ask(["find", "-L", *devices, "-maxdepth", "3", "-type", "b"], "looking at the devices")
    if disks := found.split():
        raise HostError(f"{disks[0]} is a disk, not an accelerator: no container is given it (container.yaml, devices)")


async def all_there(ask: Ask, paths: Sequence[str]) -> None:
    """What is not there docker would make, as root and empty, where podman refuses."""
    look = 'for path; do [ -e "$path" ] || echo "$path"; done'
    lacking = await ask(["sh", "-c", look, "sh", *paths], "looking at what is mounted")
    if lacking:
        raise HostError(
            f"missing, or not visible to the user: {', '.join(lacking.splitlines())}; a container would be given it "
            "(data directory, --weights, `checkpoints`, `mounts`): create it, or name an existing one"
        )


MOST = 1 << 20
"""Bytes that a command may print: what runs may be an image's."""

BEGINS = b"proofmark-asks\n"
"""Printed before a command's own output: what comes earlier is a login's, which may print as it pleases."""

SSHS_OWN = 255
"""The exit code of an ssh that ran nothing."""


class Refused(HostError):
    """A command that ran and failed."""


async def run_on(
    node: Node,
    patience: float,
    command: list[str],
    what: str,
    given: bytes = b"",
    timeout: float | None = None,
    tried: int = 1,
) -> str:
    """The output of a command on a node, which is given what nodes are given for any answer, or a time of its own.

    Raises:
        HostError: it can't be run, fails, takes too long, or prints without end; or something else was run.
    """
    marked = node.command(["sh", "-c", f'echo {BEGINS.decode().strip()}; exec "$@"', "sh", *command])
    try:
        ran = await LocalProcess.start(marked, stdin=PIPE, stdout=PIPE, stderr=PIPE)
    except OSError as error:
        raise HostError(f"{what}: {marked[0]}: {error.strerror}") from None
    try:
        output, errors = await asyncio.wait_for(_said(ran, given), timeout or patience)
    except asyncio.LimitOverrunError:
        raise HostError(f"{what}: it printed more than {MOST} bytes") from None
    except TimeoutError:
        key = "" if timeout else ", `answer_timeout`"
        raise HostError(f"{what}: no answer within {timeout or patience:g} s{key}") from None
    finally:
        await ran.end()
    said = errors.decode("utf-8", "replace")
    if ran.returncode == SSHS_OWN and await may_try_again(said, tried):
        return await run_on(node, patience, command, what, given, timeout, tried + 1)
    if ran.returncode:
        last_line = said.strip().splitlines()[-1:] or [f"exit code {ran.returncode}"]
        line = "".join(letter if letter.isprintable() else "?" for letter in last_line[0])
        missing = ran.returncode in (126, 127, SSHS_OWN)  # the first two are the shell's
        raise (HostError if missing else Refused)(f"{what}: {line}")
    _, begins, own = output.partition(BEGINS)
    if not begins:
        raise HostError(f"{what}: {NO_FAR_END}")
    return own.decode("utf-8", "replace")


async def _said(ran: LocalProcess, given: bytes) -> tuple[bytes, bytes]:
    """What a command prints, to either stream, until it has ended.

    Raises:
        LimitOverrunError: that is too much.
    """
    assert ran.stdin and ran.stdout and ran.stderr

    async def fed(stream: asyncio.StreamWriter) -> None:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # it reads none of it
            stream.write(given)
            await stream.drain()
        stream.close()

    output, errors, _ = await asyncio.gather(_bounded(ran.stdout), _bounded(ran.stderr), fed(ran.stdin))
    await ran.wait()
    return output, errors


async def _bounded(stream: asyncio.StreamReader) -> bytes:
    content = b""
    while more := await stream.read(MOST):
        content += more
        if len(content) > MOST:
            raise asyncio.LimitOverrunError("too much", len(content))
    return content
