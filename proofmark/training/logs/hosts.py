"""Where a run ran, by what its agents and its launcher said, and what else went on there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from proofmark.record.events.log import Event
from proofmark.record.events.types import fields_of
from proofmark.record.parts import Contention
from proofmark.record.policy import default_policy
from proofmark.record.provenance import Host, Launched
from proofmark.training.logs.monitors import monitoring
from proofmark.training.logs.ranks.rank_log import RankLog
from proofmark.training.outcome.event_types import CONTENTION


def of_hosts(
    directory: Path, ranks: Sequence[RankLog], agents: Mapping[int, Sequence[Event]], end: Event
) -> dict[str, Any]:
    """Where it ran, by what its agents and its launcher said, and what monitors saw there."""
    hosts = end.get("hosts", [])
    return {
        "nodes": tuple(_host(events) for events in agents.values()),
        "launched": tuple(Launched(**fields_of(host, Launched)) for host in hosts),
        "caches_cleared": end.get("caches_cleared"),
        "instances": end.get("instances"),
        "monitoring": monitoring(directory, ranks, agents, [host["skew"] or 0.0 for host in hosts]),
    }


def contention_of(agents: Iterable[Sequence[Event]]) -> Contention | None:
    """All ranks wait for the slowest: of the nodes without cores to spare the one counts where others took most; and
    whichever left its cores. None where not all nodes' agents saw what happened."""
    last = [{event["event"]: event for event in events}.get(CONTENTION) for events in agents]
    found = [Contention(**fields_of(event, Contention)) for event in last if event is not None]
    if not found or len(found) < len(last):
        return None
    spare, beyond = default_policy().noise.idle, sorted({core for seen in found for core in seen.beyond})
    most = max(found, key=lambda seen: (seen.idle <= spare, seen.others))
    return most.model_copy(update={"beyond": tuple(beyond)})


def _host(events: Sequence[Event]) -> Host | None:
    """A node as its agent described it."""
    begin = next((event for event in events if event["event"] == "agent_begin"), None)
    return Host.model_validate(fields_of(begin, Host)) if begin else None
