"""Hosts of a job that are silent: each is waited for, and a user is told."""

from __future__ import annotations

from collections.abc import Iterable

from proofmark.launch.cluster.link import HostLink
from proofmark.launch.cluster.node import Tell


class Silences:
    """Those at the moment, by their node numbers; `patience` is in seconds."""

    def __init__(self, patience: float, tell: Tell) -> None:
        self._patience, self._tell = patience, tell
        self._silent = set[int]()

    def __bool__(self) -> bool:
        """Whether any host is silent."""
        return bool(self._silent)

    def look(self, links: Iterable[HostLink]) -> None:
        """Say of each host that falls silent how long it is waited for, and when it is back."""
        for link in links:
            quiet, told = link.connection.quiet, link.report.node in self._silent
            if quiet and not told:
                self._silent.add(link.report.node)
                self._tell(f"{link.name} {quiet}: it is waited for, {self._patience:g} s, `silence_timeout`")
            elif told and not quiet:
                self._silent.discard(link.report.node)
                if not link.connection.lost:
                    self._tell(f"{link.name} answers again")
