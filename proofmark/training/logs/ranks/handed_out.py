"""What ranks took of their data, as their feeders counted it; and tokens, which ranks counted themselves in older
logs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from proofmark.record.events.log import Event
from proofmark.rules.config import EffectiveConfig
from proofmark.training.logs.ranks.rank_log import RankLog
from proofmark.training.outcome.event_types import FED
from proofmark.training.outcome.examined import HandedOut, Taken

AHEAD = 2
"""Steps whose samples a rank may have taken by the time that its agent heard of the beginning, when ranks didn't wait
for each other there: of older logs."""


@dataclass(frozen=True)
class Evaluations:
    """When the plan has a training evaluated, and on how much.

    Attributes:
        interval: samples between two of them; 0 is each epoch's end.
        epochs: that a training has at most.
        items: samples of each.
    """

    interval: int
    epochs: int
    items: int

    @classmethod
    def of(cls, config: EffectiveConfig | None, items: int) -> Evaluations | None:
        """Those of a configuration, of so many samples each; None where it is not known, or says nothing of them."""
        interval, epochs = (config.get(key) if config else None for key in ("eval_interval_samples", "max_epoch"))
        return cls(interval, epochs, items) if isinstance(interval, int) and isinstance(epochs, int) else None

    def due(self, first: int, last: int, items: int, size: int) -> int:
        """How many there are at least after step `first`, up to the `last`, of `items` in global batches of `size`."""
        epoch = -(-items // size)
        last = min(last, self.epochs * epoch)  # a rank may say any number
        ends = last // epoch - first // epoch
        if not self.interval:
            return ends
        if size > self.interval:  # each whole step has one, and an epoch's last, which is short, may
            if not (short := items % size):
                return last - first
            at_ends = (number * items for number in range(first // epoch + 1, last // epoch + 1))
            return last - first - ends + sum((at - short) // self.interval < at // self.interval for at in at_ends)
        before, after = (step // epoch * items + step % epoch * size for step in (first, last))
        return after // self.interval - before // self.interval


def handed_out(
    ranks: Sequence[RankLog],
    agents: Iterable[Event],
    resumed: bool,
    global_batch: int | None = None,
    evaluations: Evaluations | None = None,
) -> HandedOut | None:
    """What all ranks took; None where one of them was not counted, or rank 0 did not come to its end.

    Args:
        ranks: their logs.
        agents: the events of all nodes' agents.
        resumed: whether the session had the run go on from a checkpoint: no rank says that by itself.
        global_batch: samples of a step; without it no rank's part of the plan is known.
        evaluations: that the plan has.
    """
    fed = {event["rank"]: event for event in agents if event["event"] == FED}
    begin, end = (ranks[0].last.get(kind) if ranks else None for kind in ("train_begin", "train_end"))
    if begin is None or end is None or fed.keys() != {log.rank for log in ranks}:
        return None
    seen, tokens = ([event[key] for event in fed.values()] for key in ("by_the_end", "tokens"))
    items = ranks[0].last.get("dataset", {}).get("items")
    first, world = (begin["steps"] if resumed else 0), len(ranks)
    steps, due = end["step"] - first, None
    if evaluations and items and global_batch:
        due = evaluations.due(first, end["step"], items, global_batch)
    of_all = evaluations.items if evaluations else None
    return HandedOut(
        claimed=end["samples"] - (begin["samples"] if resumed else 0),
        samples=sum(event["samples"] for event in fed.values()),
        by_the_end=None if None in seen else sum(seen),
        tokens=None if None in tokens else sum(tokens),
        ranks=tuple(_taken(fed[log.rank], world, items, global_batch, steps, due, of_all) for log in ranks),
        after=first,
    )


def _taken(
    event: Event, world: int, items: int | None, size: int | None, steps: int, due: int | None, of_all: int | None
) -> Taken:
    rank, began, before = event["rank"], event.get("began"), event.get("before")
    return Taken(
        rank=rank,
        samples=event["samples"],
        by_the_end=event["by_the_end"],
        planned=_planned(rank, world, items, size, began, steps) if items and size and began else None,
        after=began[0] * -(-items // size) + began[1] if items and size and began else None,
        shown_before=event.get("shown_before"),
        before=before,
        ahead=AHEAD * len(range(rank, size, world)) if size and before is not None else None,
        began=began,
        evaluated=event.get("evaluated"),
        evaluated_before=event.get("evaluated_before"),
        evaluations=due,
        each=None if of_all is None else len(range(rank, of_all, world)),
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
