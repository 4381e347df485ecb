"""Which node of a job this is, from what the service's platform has put into the environment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Place:
    """One node among a job's: its number, how many there are, the first one's address, and devices of each.

    `devices` is 0 where the platform says nothing of them.
    """

    node: int
    nodes: int
    master: str
    devices: int


@dataclass(frozen=True)
class NodeVariables:
    """The names of a platform's variables; None for what it has none of. One line for each platform.

    Attributes:
        hosts: a list of all nodes' names with commas between, of which the first is the master; or else `master`.
    """

    node: str
    nodes: str
    devices: str
    hosts: str | None = None
    master: str | None = None

    def place(self, environment: Mapping[str, str]) -> Place:
        """Where this is.

        Raises:
            ValueError: a variable is missing, or they contradict each other; the text names it.
        """
        node, nodes = _number(environment, self.node), _number(environment, self.nodes)
        if not node < nodes:
            raise ValueError(f"{self.node}={node}: expected a number below {self.nodes}={nodes}")
        devices = _number(environment, self.devices) if environment.get(self.devices) else 0
        return Place(node, nodes, self._master(environment, nodes), devices)

    def _master(self, environment: Mapping[str, str], nodes: int) -> str:
        if self.hosts is None:
            address = environment.get(self.master or "", "")
        else:
            names = [name.strip() for name in environment.get(self.hosts, "").split(",") if name.strip()]
            if nodes > 1 and len(names) != nodes:
                raise ValueError(f"{self.hosts} names {len(names)} nodes where {self.nodes} says {nodes}")
            address = names[0] if names else ""
        if nodes > 1 and not address:
            raise ValueError(f"{self.hosts or self.master} is missing: it says where the first node is")
        return address


def _number(environment: Mapping[str, str], name: str) -> int:
    text = environment.get(name, "")
    if not (text.isascii() and text.isdigit() and len(text) < 8):
        raise ValueError(f"{name}={text!r:.40}: expected a number from the platform")
    return int(text)
