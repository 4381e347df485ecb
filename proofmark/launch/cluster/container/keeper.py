"""Removing a container whatever becomes of who started it, and of what runs in it."""

from __future__ import annotations

import asyncio
import contextlib
import os
from asyncio.subprocess import PIPE
from dataclasses import dataclass

from proofmark.launch.cluster.connection import HostError
from proofmark.launch.cluster.local_process import LocalProcess
from proofmark.launch.cluster.node import Node
from proofmark.launch.engine_container import REMOVED, removal
from proofmark.process.lifetime import MARK, WITHIN

WAIT = f'trap "" HUP INT TERM; read -r removed || {REMOVED}'
"""Removes it when its own standard input ends without a word: with this session, or with the connection to the node. An
honest program in a container ends then by itself; one that doesn't is not asked."""

ENDING = 15.0
"""Seconds that it may take to end, or to remove the container."""


@dataclass
class Keeper:
    """A process on a container's node, which this session holds by its standard input."""

    process: LocalProcess

    @classmethod
    async def start(cls, node: Node, engine: str, name: str) -> Keeper:
        """Begin before there is such a container.

        Raises:
            HostError: it can't be.
        """
        command = node.command(["/bin/sh", "-c", WAIT, "sh", *removal(engine, name)])
        environment = {key: value for key, value in os.environ.items() if key not in (MARK, WITHIN)}
        try:
            return cls(await LocalProcess.start(command, stdin=PIPE, environment=environment))
        except OSError as error:
            raise HostError(f"{command[0]}: {error.strerror}") from None

    async def end(self, removed: bool) -> None:
        """Have it end, if the container was `removed`; or remove that."""
        assert self.process.stdin is not None
        with contextlib.suppress(OSError):
            if removed:
                self.process.stdin.write(b"removed\n")
                await self.process.stdin.drain()
            self.process.stdin.close()
        try:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.process.wait(), ENDING)
        finally:
            await self.process.end()
