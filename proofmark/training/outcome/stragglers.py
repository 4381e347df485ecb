"""The slowest rank and the slowest host of a training, by their own work: waiting for others is none."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from proofmark.literal import MISSING, number, percent
from proofmark.training.outcome.record import Rank, SeedRun

MARGIN = 0.1
"""Who takes longer than the median of the others by more than this share is a straggler."""

SECONDS, STEPS = 10.0, 50
"""How long all runs together must have trained, at least, before their ranks or their scales are compared."""


def too_short(runs: Sequence[SeedRun]) -> str | None:
    """Why too little was trained to compare anything by it: a pause of a second is a tenth of ten; None if enough."""
    seconds, steps = sum(run.train_seconds or 0.0 for run in runs), sum(run.steps or 0 for run in runs)
    if seconds >= SECONDS and steps >= STEPS:
        return None
    return f"{number(seconds, 2)} s and {steps} steps are too little: at least {SECONDS:g} s and {STEPS} steps"


class _Times(NamedTuple):
    """Seconds that somebody took himself, seconds in all that they are a share of, and samples that he took."""

    own: float
    whole: float
    samples: float

    @property
    def each(self) -> _Times:
        """The same for each of the samples."""
        return _Times(self.own / self.samples, self.whole / self.samples, 1.0)


@dataclass(frozen=True)
class Slowest:
    """Who takes longest, and by what share longer than the median of the others.

    `by_data` says that only loading was compared: how much of the compute was waiting is not known.
    """

    name: str
    excess: float
    by_data: bool

    @property
    def is_straggler(self) -> bool:
        """Whether it keeps the others waiting for more than noise would."""
        return self.excess > MARGIN

    def __str__(self) -> str:
        compared = "in its data" if self.by_data else "in its own work and data"
        end = "; how much of its compute is waiting is not known" if self.by_data else ""
        what = "a straggler" if self.is_straggler else "no straggler"
        return f"{self.name}: {what}, {percent(self.excess)} above the median of the others {compared}{end}"


def slowest_rank(run: SeedRun) -> Slowest | None:
    """The slowest rank. None where there is but one, or a figure is missing."""
    by_data, samples = _by_data(run), _samples(run)
    times = {_rank_name(run, rank): _times(rank, by_data, samples.get(rank.rank, 1)) for rank in run.ranks}
    return _slowest(times, by_data)


def slowest_host(run: SeedRun) -> Slowest | None:
    """The slowest host, by the median of its ranks. None where there is but one node, or a figure is missing."""
    by_data, samples, by_node = _by_data(run), _samples(run), dict[int, list[_Times | None]]()
    for rank in run.ranks:
        by_node.setdefault(rank.node or 0, []).append(_times(rank, by_data, samples.get(rank.rank, 1)))
    hosts: dict[str, _Times | None] = {}
    for node, ranks in by_node.items():
        known = [times for times in ranks if times is not None]
        middle = _Times(*(statistics.median(each) for each in zip(*known, strict=True))) if known else None
        hosts[f"node {node}, {host_name(run, node)}"] = middle if len(known) == len(ranks) else None
    return _slowest(hosts, by_data)


def host_name(run: SeedRun, node: int | None) -> str:
    """What a node calls itself."""
    hosts = run.nodes
    host = hosts[node] if node is not None and node < len(hosts) else None
    return host.name if host else f"{MISSING} (its agent left no name)"


def _rank_name(run: SeedRun, rank: Rank) -> str:
    return f"rank {rank.rank} on {host_name(run, rank.node)}" if len(run.nodes) > 1 else f"rank {rank.rank}"


def _by_data(run: SeedRun) -> bool:
    """Where one rank's waiting isn't known, no rank's compute is its own: each waits for the slowest in it."""
    return any(rank.communication_seconds is None for rank in run.ranks)


def _samples(run: SeedRun) -> Mapping[int, int]:
    """By rank, what its feeder counted that it took: where a global batch can't be divided some have more than others.
    Nothing where that is not known of all, or one has none at all."""
    counted = {each.rank: each.samples for each in run.handed_out.ranks} if run.handed_out else {}
    return counted if counted.keys() == {rank.rank for rank in run.ranks} and all(counted.values()) else {}


def _times(rank: Rank, by_data: bool, samples: int) -> _Times | None:
    data, compute = rank.data_seconds, rank.compute_seconds
    if data is None or compute is None:
        return None
    if by_data:
        return _Times(data, data + compute, samples)
    work = data + compute - (rank.communication_seconds or 0.0)
    return _Times(work, work, samples)


def _slowest(times: Mapping[str, _Times | None], by_data: bool) -> Slowest | None:
    known = {name: each for name, each in times.items() if each is not None}
    if len(known) < 2 or len(known) < len(times):
        return None
    longest = dict[float, str]()  # of those that took so many samples
    for name, each in known.items():
        if each.own > known[longest.setdefault(each.samples, name)].own:
            longest[each.samples] = name
    excess = {name: _excess(name, known) for name in longest.values()}
    name = max(excess, key=excess.__getitem__)
    return Slowest(name, excess[name], by_data) if math.isfinite(excess[name]) else None


def _excess(name: str, known: Mapping[str, _Times]) -> float:
    """By what share one takes longer than the median of the others: in all or for each sample, whichever is less. Of
    more samples a step is longer, and of fewer ones what is the same in every step is more for each."""
    others = [each for other, each in known.items() if other != name]
    return max(0.0, min(_above(known[name], others), _above(known[name].each, [other.each for other in others])))


def _above(one: _Times, others: Sequence[_Times]) -> float:
    own, whole, _ = (statistics.median(values) for values in zip(*others, strict=True))
    return (one.own - own) / whole if whole > 0 else math.inf
