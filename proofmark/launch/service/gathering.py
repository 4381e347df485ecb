"""What came home of a job that has ended, and who brought it down."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from proofmark.launch.service.contract import Task, View
from proofmark.launch.service.running import RunningJob
from proofmark.launch.service.ticket import Manifest
from proofmark.launch.service.transfer import Brought

ENDED_BY_OTHERS = (None, 0, 128 + 9, 128 + 15)
"""Exit codes of a task that need not be at fault: it ended well, or was killed as another one failed."""


@dataclass(frozen=True)
class Gathered:
    """What a job's nodes left, and the service's own names for them."""

    brought: Brought
    tasks: Sequence[Task]
    nodes: int
    independent: bool

    def facts(self) -> dict[str, Any]:
        """What each node of the run says of its host; when the first one's agent began and had ended, by its clock, as
        all end together; of independent servers that of each, by its own."""
        all_of_them = self.brought.manifests
        own = {node: manifest for node, manifest in all_of_them.items() if not self.independent or node == 0}
        found: dict[str, Any] = {"hosts": [self._host(node) for node in sorted(own)]}
        if own:
            found |= _times_of(own[min(own)])
        if self.independent:
            found["servers"] = [_times_of(all_of_them.get(node)) for node in range(self.nodes)]
        return found

    def _host(self, node: int) -> dict[str, Any]:
        host = self.brought.manifests[node].host
        return {**host, "node": node, "name": self.name(node), "skew": None, "round_trip": None}

    def name(self, node: int) -> str:
        """What the service calls a node."""
        return self.tasks[node].name if node < len(self.tasks) else f"node {node}"

    def lost(self, running: RunningJob, view: View) -> Iterator[tuple[int | None, str]]:
        """Nodes at fault whose own logs don't say so, and why; None for the whole job."""
        if view.restarts:
            what = f"{view.restarts} time{'s' if view.restarts > 1 else ''}"
            yield None, f"job {running.id} was recovered {what} while it ran: what was measured is not one training"
        if view.state == "succeeded":
            yield from ((node, f"{self.name(node)}: {why}") for node, why in self.brought.wrong.items())
            yield from self._failed_well()
            return
        if view.state == "stopped":  # what its nodes came to follows from that
            yield None, _ended_by_the_service(running, view)
            return
        if any(manifest.code for manifest in self.brought.manifests.values()):
            if self.independent:
                yield from self._failed_well()
            return  # its ranks' logs are here, and say why
        at_fault = [task for task in self.tasks if task.code not in ENDED_BY_OTHERS]
        for task in at_fault or [task for task in self.tasks if task.code]:
            said = task.message or running.last_lines(task)
            node = self.tasks.index(task)
            yield node, f"{task.name} ended with exit code {task.code}{f': {said}' if said else ''}"
        if not any(task.code for task in self.tasks):
            yield None, _ended_by_the_service(running, view)

    def _failed_well(self) -> Iterator[tuple[int | None, str]]:
        """Servers whose agent failed: the run's own logs are the first one's."""
        for node, manifest in self.brought.manifests.items():
            if manifest.code:
                yield node, f"{self.name(node)}: its agent ended with exit code {manifest.code}"


def _times_of(manifest: Manifest | None) -> dict[str, float]:
    return {"started": manifest.began, "ended": manifest.ended} if manifest else {}


def _ended_by_the_service(running: RunningJob, view: View) -> str:
    return f"the service ended job {running.id}: {view.phase}{f', {view.message}' if view.message else ''}"


def gather(running: RunningJob, view: View, prefix: str, nodes: int, leaves: Sequence[str]) -> Gathered:
    """All that there is of a job that has ended.

    Raises:
        ServiceError: its results can't be listed.
        OSError: they can't be written here.
    """
    brought = running.bring_home(view, prefix, nodes, leaves)
    return Gathered(brought, view.tasks, nodes, running.service.servers is not None)
