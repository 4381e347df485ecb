"""What one rank's log says of it: its times, its memory, its share of communication."""

from __future__ import annotations

from proofmark.training.logs.ranks.rank_log import RankLog
from proofmark.training.outcome.record import Communication, Rank


def figures_of(log: RankLog) -> Rank:
    """One rank as its run's record has it."""
    memory = {key: log.last.get("memory", {}).get(key) for key in Rank.model_fields if key.endswith("_bytes")}
    return Rank(
        rank=log.rank,
        node=log.node,
        isolation=log.isolation.kind if log.isolation else None,
        steps=log.last["train_end"]["step"] if {"train_end", "rank_end"} <= log.last.keys() else None,
        compute_seconds=_own_seconds(log, "compute"),
        data_seconds=_own_seconds(log, "data"),
        communication=_communication(log),
        **memory,
    )


def _own_seconds(log: RankLog, part: str) -> float | None:
    """The rank's own of a part: the clock of one that was resumed went on from rank 0's, and it says by how much its
    own was longer then. One that was resumed from an older checkpoint does not know."""
    seconds, apart = log.seconds(part), log.last.get("resumed", {}).get("apart")
    return seconds if seconds is None or apart is None or log.rank == 0 else max(0.0, seconds + apart[part])


def _communication(log: RankLog) -> Communication | None:
    found = (log.totals() or {}).get("communication")
    if found is None:
        return None
    steps, reason = found["steps"], found["reason"]
    if not steps or not found["of"]:
        return Communication(share=None, steps=0, reason=reason or "the training had no step that it is measured on")
    return Communication(share=min(1.0, found["seconds"] / found["of"]), steps=steps)
