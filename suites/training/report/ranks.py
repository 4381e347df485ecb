"""The ranks of a training, as a table that people can read whatever their number."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from proofmark.training.outcome.record import Rank, SeedRun
from proofmark.training.outcome.stragglers import host_name
from reports.content import text

MOST = 64
"""Ranks that are all shown, in their order."""

SLOWEST = 16
"""Of more, how many are shown, after the least, the median and the most of each figure."""

FIGURES = ("compute_seconds", "communication_seconds", "data_seconds", "host_peak_bytes", "device_peak_bytes")


def rank_rows(run: SeedRun) -> Iterator[Mapping[str, Any]]:
    """Rows with a `name`, a `host` and all FIGURES. Of many ranks the slowest are those with most work of their own."""
    if len(run.ranks) <= MOST:
        yield from (_row(run, rank) for rank in run.ranks)
        return
    spread: dict[str, Callable[[Sequence[float]], float]] = {"least": min, "median": statistics.median, "most": max}
    for name, middle in spread.items():
        known = {figure: [v for r in run.ranks if (v := getattr(r, figure)) is not None] for figure in FIGURES}
        figures = {figure: middle(values) if values else None for figure, values in known.items()}
        yield {"name": f"{name} of {len(run.ranks)} ranks", "host": text.MISSING, **figures}
    yield from (_row(run, rank) for rank in sorted(run.ranks, key=_own_work, reverse=True)[:SLOWEST])


def _row(run: SeedRun, rank: Rank) -> dict[str, Any]:
    return {"name": rank.rank, "host": host_name(run, rank.node)} | {key: getattr(rank, key) for key in FIGURES}


def _own_work(rank: Rank) -> float:
    return (rank.compute_seconds or 0.0) - (rank.communication_seconds or 0.0) + (rank.data_seconds or 0.0)
