"""How long a run's parts took, and at what rates: by the clocks of its parent, its hosts and its ranks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from proofmark.record.events.log import Event, seconds_between
from proofmark.training.logs.ranks.rank_figures import figures_of
from proofmark.training.logs.ranks.rank_log import RankLog
from proofmark.training.outcome.record import Rates, Split

SHORTEST = 1e-9
"""Seconds: what took less was not measured."""


class SinceBegin:
    """Seconds since a run began: by the monotonic clock where all of it was on this machine.

    No queue and no sending of code is the training's: where a launcher has noted when its agents started, that is the
    beginning, and a host's clock is read as what it shows, less how far it is ahead. So is the end, if one noted it:
    a service may tell of it late.
    """

    def __init__(self, begin: Event, end: Event | None) -> None:
        self._begin, self._end = begin, end
        self._started: float | None = (end or {}).get("started")
        self._skew = next((host["skew"] or 0.0 for host in (end or {}).get("hosts", ())), 0.0)

    def rank(self, event: Event) -> float:
        """Seconds up to an event of the first node."""
        if self._end is not None and self._started is None:
            return seconds_between(self._begin, event)
        return float(max(0.0, event["time"] - self._skew - (self._started or self._begin["time"])))

    def end(self, events: Iterable[Event]) -> float:
        """Seconds up to the run's end, or else to the last event of its ranks."""
        if self._end is None:
            return max(map(self.rank, events), default=0.0)
        if self._started is None:
            return seconds_between(self._begin, self._end)
        return float(max(0.0, (self._end.get("ended") or self._end["time"]) - self._started))


def durations(first: RankLog, ranks: Sequence[RankLog], since: SinceBegin, least: float) -> dict[str, Any]:
    """Initialisation, training, training without evaluations, compute: each the slowest rank's; and rank 0's split.

    Training took no less than the `least` that its agent saw: what the ranks tell nothing of was no evaluation.
    """
    started, own = first.last.get("init_end"), first.totals()
    init = since.rank(started) if started else None
    nothing = dict.fromkeys(("train_seconds", "no_eval_seconds", "pure_compute_seconds", "split"))
    if own is None or init is None:
        return nothing | {"init_seconds": init}
    parts = {part: own[f"{part}_seconds"] for part in ("data", "compute", "evaluation", "checkpoint")}
    totals = [total for log in ranks if (total := log.totals())]
    longest = max(total["train_seconds"] for total in totals)
    trained = max(longest, least)
    no_eval = max(total["train_seconds"] - total["evaluation_seconds"] for total in totals)
    return {
        "init_seconds": init,
        "train_seconds": trained,
        "no_eval_seconds": no_eval + trained - longest,
        "pure_compute_seconds": max(total["compute_seconds"] for total in totals),
        "split": Split(
            init=init,
            other=max(0.0, max(own["train_seconds"], least) - sum(parts.values())),
            communication=figures_of(first).communication_seconds,
            confirmation=own.get("confirmation_seconds") or None,
            **parts,
        ),
    }


def rates_of(first: RankLog, times: Mapping[str, Any], resumed: bool) -> Rates | None:
    """Samples over each of the times; None before training came to its end.

    Of a run that was resumed they are of its own process alone, in which others counted samples and time: those before
    are a checkpoint's word.
    """
    end, begin = first.last.get("train_end"), first.last.get("train_begin", {})
    totals = [times[f"{name}_seconds"] for name in ("train", "no_eval", "pure_compute")]
    before = _before(begin) if resumed else (0, 0.0, 0.0, 0.0)
    if end is None or before is None or None in totals:
        return None
    samples, *seconds = (all_of_it - was for all_of_it, was in zip((end["samples"], *totals), before, strict=True))
    if samples <= 0 or not all(each > SHORTEST for each in seconds):
        return None
    raw, no_eval, pure = (samples / each for each in seconds)
    return Rates(raw=raw, no_eval=no_eval, pure_compute=pure)


def _before(begin: Event) -> tuple[int, float, float, float] | None:
    """Samples, and the seconds by which rates are, that a rank says it has from its checkpoint; None where it doesn't
    say them all."""
    parts = tuple(f"{part}_seconds" for part in ("train", "evaluation", "compute"))
    if not begin.keys() >= {*parts}:
        return None
    train, evaluation, compute = (begin[part] for part in parts)
    return begin["samples"], train, train - evaluation, compute
