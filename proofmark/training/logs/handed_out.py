"""What ranks took of their data, as their feeders counted it; and tokens, which ranks counted themselves in older
logs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from proofmark.record.events.log import Event
from proofmark.training.logs.rank_log import RankLog
from proofmark.training.node.feeders import EVENT
from proofmark.training.outcome.examined import HandedOut, Taken

AHEAD = 2
"""Steps whose samples lie ready: a rank may have taken them by the time that its agent hears of the beginning."""


def handed_out(
    ranks: Sequence[RankLog], agents: Iterable[Event], resumed: bool, global_batch: int | None = None
) -> HandedOut | None:
    """What all ranks took; None where one of them was not counted, or rank 0 did not come to its end.

    Args:
        ranks: their logs.
        agents: the events of all nodes' agents.
        resumed: whether the session had the run go on from a checkpoint: no rank says that by itself.
        global_batch: samples of a step; without it no rank's part of the plan is known.
    """
    fed = {event["rank"]: event for event in agents if event["event"] == EVENT}
    begin, end = (ranks[0].last.get(kind) if ranks else None for kind in ("train_begin", "train_end"))
    if begin is None or end is None or fed.keys() != {log.rank for log in ranks}:
        return None
    seen, tokens = ([event[key] for event in fed.values()] for key in ("by_the_end", "tokens"))
    items = ranks[0].last.get("dataset", {}).get("items")
    steps = end["step"] - (begin["steps"] if resumed else 0)
    return HandedOut(
        claimed=end["samples"] - (begin["samples"] if resumed else 0),
        samples=sum(event["samples"] for event in fed.values()),
        by_the_end=None if None in seen else sum(seen),
        tokens=None if None in tokens else sum(tokens),
        ranks=tuple(_taken(fed[log.rank], len(ranks), items, global_batch, steps) for log in ranks),
    )


def _taken(event: Event, world: int, items: int | None, size: int | None, steps: int) -> Taken:
    rank, began = event["rank"], event.get("began")
    return Taken(
        rank=rank,
        samples=event["samples"],
        by_the_end=event["by_the_end"],
        planned=_planned(rank, world, items, size, began, steps) if items and size and began else None,
        before=event.get("before"),
        ahead=AHEAD * len(range(rank, size, world)) if size else None,
        began=began,
    )


def _planned(rank: int, world: int, items: int, size: int, began: Sequence[int], steps: int) -> int:
    """A rank's samples of so many steps: the last one of an epoch is short."""
    epoch = -(-items // size)
    first = began[0] * epoch + began[1]
    short = (first + steps) // epoch - first // epoch
    whole, rest = len(range(rank, size, world)), len(range(rank, items - (epoch - 1) * size, world))
    return (steps - short) * whole + short * rest


def tokens_per_item(first: RankLog, ranks: Sequence[RankLog], found: HandedOut | None) -> float | None:
    """Tokens over samples, both of this process's time; None where nobody has counted any."""
    if found is not None:
        return found.tokens / found.samples if found.tokens is not None and found.samples else None
    counted = [log.last.get("train_end", {}).get("tokens") for log in ranks]
    known = [tokens for tokens in counted if tokens is not None]
    return sum(known) / first.trained() if first.trained() and len(known) == len(counted) else None
