"""What the monitors of all nodes saw of one training, summed up."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from proofmark.monitoring.summary import Window, monitoring_of
from proofmark.record.events.log import Event
from proofmark.record.parts import Monitoring, Series
from proofmark.training.logs.ranks.rank_log import RankLog
from proofmark.training.outcome.event_types import MONITOR_FAILED, WATCHED

NODES = 16
"""Whose readings over time are in a record; the others' are in their monitors' logs alone."""


def monitoring(
    directory: Path, ranks: Sequence[RankLog], agents: Mapping[int, Sequence[Event]], skews: Sequence[float]
) -> Monitoring | None:
    """What all monitors of a run saw, each while its node's first rank trained; None if no node had one.

    Args:
        directory: the run's folder.
        ranks: the logs of all ranks.
        agents: each node's agent's events: what was wrong with a monitor, and how long its ranks trained at least.
        skews: seconds that each node's clock is ahead; empty for none. Series are laid over those of the first node.
    """
    firsts = {log.node: log for log in reversed(ranks)}
    items = next((log.trained() for log in ranks if log.rank == 0), 0)
    seen: dict[int, Monitoring | None] = {}
    for node, events in agents.items():
        failures = [event["reason"] for event in events if event["event"] == MONITOR_FAILED]
        window = _window(firsts[node], events) if node in firsts else None
        found = monitoring_of(directory / f"noderank{node}" / "monitor.jsonl", window, items, failures)
        ahead = skews[node] - skews[0] if node < len(skews) else 0.0
        seen[node] = found if found is None or len(agents) == 1 else _one_of_many(node, found, ahead)
    return _together(seen, items)


def _window(first: RankLog, agent: Sequence[Event]) -> Window | None:
    """First and last moment of training, as a node's first rank says; no shorter than its agent saw it last."""
    said, seen = first.window(), next((event for event in reversed(agent) if event["event"] == WATCHED), None)
    if said is None or seen is None:
        return said
    begin, end = said
    looked = float(seen["time"])  # right after the end
    return min(begin, looked - seen["least"]), max(end, looked - (seen["most"] - seen["least"]))


def _together(seen: Mapping[int, Monitoring | None], items: int) -> Monitoring | None:
    """Energy is the sum over nodes, and unknown where one node's is; the window is the first node's."""
    known = {node: each for node, each in seen.items() if each is not None}
    if not known or len(seen) == 1:
        return next(iter(known.values()), None)
    joules = [each.energy_joules if each else None for each in seen.values()]
    energy = None if None in joules else sum(filter(None, joules))
    shares = [each.throttled_share for each in known.values() if each.throttled_share is not None]
    methods = dict.fromkeys(each.energy_method for each in known.values() if each.energy_method)
    return Monitoring(
        samples=sum(each.samples for each in known.values()),
        window=next(iter(known.values())).window,
        series=tuple(series for each in known.values() for series in each.series),
        energy_joules=energy,
        energy_method=", ".join(methods) if energy is not None else None,
        energy_per_item=energy / items if energy is not None and items else None,
        throttled=tuple(sorted({why for each in known.values() for why in each.throttled})),
        throttled_share=max(shares) if shares else None,  # all wait for the slowest
        foreign_processes=tuple(sorted({pid for each in known.values() for pid in each.foreign_processes})),
        failures=tuple(_failures(seen)),
    )


def _one_of_many(node: int, seen: Monitoring, ahead: float) -> Monitoring:
    """A node's readings, with its number and by the first node's clock, as the events of training are.

    Of nodes beyond the first ones the series are left out: those of thousands of devices would make a record of 100 MB.
    """
    kept = [series for series in seen.series if node < NODES]
    return seen.model_copy(update={"series": tuple(_laid(series, node, ahead) for series in kept)})


def _laid(series: Series, node: int, ahead: float) -> Series:
    return series.model_copy(update={"node": node, "times": tuple(moment - ahead for moment in series.times)})


def _failures(seen: Mapping[int, Monitoring | None]) -> Iterator[str]:
    for node, each in seen.items():
        failures = ("it left no monitor's log",) if each is None else each.failures
        yield from (f"node {node}: {failure}" for failure in failures)
