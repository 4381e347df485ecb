"""What each rank of a node has come to, from its own log."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from pydantic import ValidationError

from proofmark.launch.rank_result import RankResult
from proofmark.record.events.log import read_events
from proofmark.training.logs.ranks.rank_log import RankLog
from proofmark.training.outcome.rank_event_types import RANK_EVENTS


def leave_results(directory: Path, node: int, ranks: Iterable[int], world: int) -> None:
    """A file for each rank whose training came to its end.

    Raises:
        OSError: no space, no permission.
    """
    for rank in ranks:
        log = RankLog(rank, node).take(read_events(directory / f"rank{rank}.jsonl", RANK_EVENTS))
        if (result := _result(log, world)) is not None:
            result.save(directory)


def _result(log: RankLog, world: int) -> RankResult | None:
    end, window, seconds, compute = (
        log.last.get("train_end"),
        log.window(),
        log.seconds("train"),
        log.seconds("compute"),
    )
    if not end or not window or not seconds or not end["samples"]:
        return None
    share = end["samples"] / world
    fields = {
        "rank": log.rank,
        "node": log.node,
        "world": world,
        "steps": end["step"],
        "samples": share,
        "began": window[0],
        "ended": window[1],
        "seconds": seconds,
        "core": share / compute if compute else None,
        "metric": reached["metric"] if (reached := log.reached()) else None,
    }
    try:
        return RankResult.model_validate(fields)
    except ValidationError:  # times that are none, by the rank's own word: its log says which
        return None
