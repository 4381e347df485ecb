"""FlagPerf's logs as a training record.

A log is what a rank printed: `[PerfLog]` lines among anything else, or of a language model its tokens per second. What
it does not say is null. Nobody here measured what it says, so that its verdict is INSUFFICIENT at best.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from proofmark.errors import UsageError
from proofmark.flagperf.log_file import open_log
from proofmark.flagperf.perflog_run import RankLines, figure, metric_of, seed_run, token_rate
from proofmark.flagperf.run_folder import RunFolder, one_per_round
from proofmark.flagperf.token_lines import TokenLines, impossible, token_figures
from proofmark.plain_json import plain_text
from proofmark.record.parts import Utilisation
from proofmark.record.provenance import Chip
from proofmark.rules.aims import Better, shown_only
from proofmark.training.outcome.figures import figures
from proofmark.training.outcome.over_runs import olympic_mean, rates_over
from proofmark.training.outcome.record import SeedRun, TrainingRecord
from proofmark.training.outcome.verdict import judge

MARK = b"[PerfLog]"
LONGEST_LINE = 1 << 24
"""Bytes. What is longer is cut, so that rubbish of any length is read in constant memory."""

END_OF_TIME = 253_402_300_800_000
"""Milliseconds: the year 10000."""

UNKNOWN = "unknown"
_DECODER = json.JSONDecoder(parse_constant=lambda name: None)


@dataclass
class PerfLog:
    """One log's lines, by the rank that they name. Local ranks and -1 are taken as they come.

    `written` is when its file was, seconds since the epoch: the only time of a log without lines of a rank.
    """

    ranks: dict[int, RankLines] = field(default_factory=dict)
    tokens: TokenLines = field(default_factory=TokenLines)
    written: float = 0.0
    submitted: dict[str, Any] = field(default_factory=dict)
    damaged: int = 0

    def main(self) -> RankLines:
        """The lines of rank 0, or of those that call themselves -1, or of the lowest there is."""
        order = sorted(self.ranks, key=lambda rank: (rank != 0, rank))
        return self.ranks[order[0]]


def read_perflog(paths: Sequence[Path]) -> TrainingRecord:
    """The judged record of one or more runs of a training, a log for each; of a round's logs, rank 0's is enough.

    Raises:
        UsageError: a log cannot be read, or has no `[PerfLog]` line at all; or they are of several cases or scales.
    """
    chosen = one_per_round(paths)
    logs = [_read(path) for path in chosen]
    folder = _one_case(chosen)
    if not all(log.ranks for log in logs) or _only_tokens(logs):
        return _of_tokens(logs, chosen, folder)
    runs = [seed_run(log.main(), log.submitted) for log in logs]
    lines = [log.main() for log in logs]
    values = _described(logs[0], runs[0], folder) | token_figures(
        [log.tokens for log in logs], folder.scale, [token_rate(each) for each in lines]
    )
    started = min(each.began for each in lines)
    values |= {"started": started, "seconds": max(each.ended for each in lines) - started, "runs": runs}
    values |= {"repeats": len(runs), "read_from": tuple(plain_text(str(path)) for path in chosen), **_figures(runs)}
    return _judged(_built(values, logs[0].submitted, sum(log.damaged for log in logs)))


def _one_case(logs: Sequence[Path]) -> RunFolder:
    folders = {log: RunFolder.of(log) for log in logs}
    first, *others = folders
    for log in others:
        if (folders[log].case, folders[log].scale) != (folders[first].case, folders[first].scale):
            raise UsageError(f"{log}: is of another case or scale than {first}; read one case at a time")
    return folders[first]


def _judged(record: TrainingRecord) -> TrainingRecord:
    return record.model_copy(update={"verdict": judge(record)}).with_figures(figures(record))


def _only_tokens(logs: Sequence[PerfLog]) -> bool:
    """Whether the logs are of a language model, which never has a FINISHED, nor an evaluation."""
    return all(log.tokens.said and log.main().finished is None for log in logs)


def _of_tokens(logs: Sequence[PerfLog], chosen: Sequence[Path], folder: RunFolder) -> TrainingRecord:
    """Rates alone: no run of it is known to have come to an end, or to have learned anything."""
    without = [str(path) for path, log in zip(chosen, logs, strict=True) if not log.tokens.said]
    if without:
        raise UsageError(f"{without[0]}: has no tokens per second, as other logs have; read one case at a time")
    wrong = impossible([log.tokens for log in logs])
    values = _described(logs[0], None, folder) | token_figures([log.tokens for log in logs], folder.scale)
    began = [log.main().began for log in logs if log.ranks]
    values |= {"started": min(began or [folder.began or logs[0].written]), "seconds": None, "repeats": 0}
    values |= {"item": "token", "read_from": tuple(plain_text(str(path)) for path in chosen)}
    values |= {"damaged": tuple(f"{name}: {said} is not a rate" for name, said in wrong.items())}
    return _judged(_built(values, {}, sum(log.damaged for log in logs) + len(wrong)))


def _read(path: Path) -> PerfLog:
    log = PerfLog()
    try:
        with open_log(path) as stream:
            log.written = os.fstat(stream.fileno()).st_mtime
            for line in iter(partial(stream.readline, LONGEST_LINE), b""):
                log.tokens.take(line)
                for piece in line.split(MARK)[1:]:
                    _take(log, piece.strip())
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror or error}") from None
    if not log.ranks and not log.tokens.said:
        raise UsageError(
            f"{path}: has no whole {MARK.decode()} line; expected what a rank of a FlagPerf training printed"
        )
    return log


def _take(log: PerfLog, piece: bytes) -> None:
    """What follows a mark: a line, or text that happens to quote the mark."""
    if not piece.startswith(b"{"):
        return
    event = _event(piece)
    if event is None:
        log.damaged += 1
        return
    if event["event"] == "SUBMIT_INFO" and isinstance(event.get("value"), dict):
        log.submitted = event["value"]
    rank = event["metadata"]["rank"]
    lines = log.ranks.get(rank)
    if lines is None or (lines.under_way and event["event"] == "INIT_START"):
        if event["metadata"]["time_ms"] is None:
            log.damaged += 1  # when it began is known of every run
            return
        lines = log.ranks[rank] = RankLines()
    lines.take(event)


def _event(piece: bytes) -> dict[str, Any] | None:
    """A line's JSON if it has a name and a time, which is null where it is withheld; other text may follow it."""
    try:
        event, _ = _DECODER.raw_decode(piece.decode("utf-8", "replace"))
        event = plain_text(event)
    except (ValueError, RecursionError):
        return None
    metadata = event.get("metadata")
    if not isinstance(event.get("event"), str) or not isinstance(metadata, dict):
        return None
    time_ms, rank = figure(metadata.get("time_ms")), metadata.get("rank", -1)
    timed = time_ms is not None and 0 <= time_ms < END_OF_TIME
    withheld = metadata.get("time_ms", "") is None
    if not (timed or withheld) or type(rank) is not int or not -1 <= rank < 1 << 20:
        return None
    return {**event, "metadata": {**metadata, "time_ms": time_ms, "rank": rank}}


def _described(log: PerfLog, run: SeedRun | None, folder: RunFolder) -> dict[str, Any]:
    """What can be known of the task without SUBMIT_INFO, in which FlagPerf has nothing."""
    metric = metric_of(log.main().finished or {}, log.submitted) if run else None
    named = log.main().case if log.ranks else ""
    scale = folder.scale
    names = dict.fromkeys(("profile", "vendor", "precision", "scale", "config_hash"), UNKNOWN)
    nothing = ("host", "flops", "nnodes", "nproc", "target", "global_batch_size", "train_batch_size")
    return {
        **dict.fromkeys(nothing),
        **names,
        "suite": "training",
        "case": folder.case if folder.case and (scale or not named) else named or UNKNOWN,
        **({"scale": str(scale), "nnodes": scale.nnodes, "nproc": scale.nproc} if scale else {}),
        "item": "sample",
        "config": {},
        "versions": {},
        "chip": Chip(name=UNKNOWN, peak_missing="not in the log"),
        "utilisation": Utilisation(reason="not in the log"),
        "seed": run.seed if run else None,
        "metric": metric or UNKNOWN,
        "better": _better(metric or ""),
        "others": shown_only({name: _better(name) for name in (run.metrics if run else {})}),
    }


def _better(metric: str) -> Better:
    """Which way a metric is better, judged by its name: nothing else in a log says so."""
    return "lower" if re.search(r"(loss|ppl|perplexity)$", metric, re.IGNORECASE) else "higher"


def _figures(runs: Sequence[SeedRun]) -> dict[str, Any]:
    """Rates and time over the runs, of what is known of all of them."""
    rates = rates_over(runs) if all(run.rates for run in runs) else {}
    times = [math.inf if run.converged is False else run.seconds_to_target for run in runs]
    known = [seconds for seconds in times if seconds is not None]
    mean = olympic_mean(known) if known and len(known) == len(times) else math.inf
    return {"rates": rates, "seconds_to_target": mean if math.isfinite(mean) else None}


def _built(values: dict[str, Any], submitted: dict[str, Any], damaged: int) -> TrainingRecord:
    """The record, with what SUBMIT_INFO says of the task, if that is what a record can hold."""
    known = {key: value for key, value in submitted.items() if key in TrainingRecord.model_fields and key not in _OURS}
    try:
        record = TrainingRecord.model_validate({**values, **known, "corrupt_lines": damaged})
        record.model_dump_json()
    except (ValueError, RecursionError):
        return TrainingRecord.model_validate({**values, "corrupt_lines": damaged + 1})
    return record


_OURS = frozenset({"schema_version", "started", "seconds", "seed", "metric", "rates", "seconds_to_target", "runs"}) | {
    *("repeats", "read_from", "corrupt_lines", "partial", "stopped", "interrupted", "verdict", "utilisation"),
    "problems",
    *("items_per_second_per_device", "tokens_per_second", "tokens_per_second_per_device"),
}
"""What no log says of itself."""
