"""Where a job's nodes are, and how a command is started on each."""

from __future__ import annotations

import asyncio
import random
import re
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

Tell = Callable[[str], None]
"""Takes what a user waits for, in one line."""

CONNECT_TIMEOUT = 10
"""Seconds until a host that does not answer cannot be reached."""

TRIES = 5
"""How often ssh is begun for a host that turns it away."""

LAST_WORDS = 2.0
"""Seconds in which a node that was lost, or whoever gave the nodes, says why all has ended."""

_TURNED_AWAY = re.compile(r"(?:kex|ssh)_exchange_identification: .*(?:closed by remote host|reset by peer)")


@dataclass(frozen=True)
class Node:
    """One node: its name for people, its address for the others, and the command that runs a program on it."""

    name: str
    address: str
    lead: tuple[str, ...] = ()
    through_shell: bool = False

    def command(self, program: Sequence[str]) -> list[str]:
        """What to start here so that `program` runs there. ssh hands one text to the far shell, so that is quoted."""
        return [*self.lead, shlex.join(program)] if self.through_shell else [*self.lead, *program]


async def may_try_again(said: str, tried: int) -> bool:
    """Whether ssh was turned away before it could say who it is, and so ran nothing; if so, after a pause of its own.

    An sshd does that at random where too many logins are under way (`MaxStartups`), as at a jump host.

    Args:
        said: its complaint.
        tried: how often it has been begun.
    """
    if tried >= TRIES or not _TURNED_AWAY.search(said):
        return False
    await asyncio.sleep(random.uniform(0, 2.0**tried))  # noqa: S311 (no secret)
    return True


class Nodes(Protocol):
    """Gives a job its nodes, and takes them back."""

    stay: bool
    """Whether the next job gets the same ones, and they can be kept in touch with until then."""

    async def take(self, count: int, tell: Tell) -> list[Node]:
        """Wait for `count` nodes.

        Raises:
            HostError: they are not to be had.
        """

    async def give_back(self) -> None:
        """Let go of the nodes; nothing to do if none were taken."""

    async def gone(self) -> str | None:
        """Why the nodes were taken away, or None."""


class Here:
    """This machine, as one node."""

    stay = True

    async def take(self, count: int, tell: Tell) -> list[Node]:
        """This machine, the only node."""
        return [Node("this machine", "127.0.0.1")]

    async def give_back(self) -> None:
        """Do nothing: this machine stays."""

    async def gone(self) -> str | None:
        """None: this machine stays."""
        return None
