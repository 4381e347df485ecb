"""From what a run's ranks and agents wrote to its record. Reads logs of any length in constant memory."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from proofmark.record.events.log import CORRUPT, Event, read_events
from proofmark.record.events.types import fields_of
from proofmark.rules.config import EffectiveConfig
from proofmark.training.logs.failure import failure_of
from proofmark.training.logs.hosts import contention_of, of_hosts
from proofmark.training.logs.outside import examination_of, least_seconds, outside_checks, standing, tells_closely
from proofmark.training.logs.pace import pace_of
from proofmark.training.logs.ranks.handed_out import Evaluations, handed_out, tokens_per_item
from proofmark.training.logs.ranks.rank_figures import figures_of
from proofmark.training.logs.ranks.rank_log import RankLog
from proofmark.training.logs.run_durations import SinceBegin, durations, rates_of
from proofmark.training.outcome.event_types import AGENT_EVENTS
from proofmark.training.outcome.examined import Examination, Standing
from proofmark.training.outcome.rank_event_types import RANK_EVENTS
from proofmark.training.outcome.record import Confirmation, Evaluation, NotedStep, SeedRun


def collect_run(
    directory: Path, begin: Event, end: Event | None, nnodes: int, config: EffectiveConfig | None = None
) -> tuple[SeedRun, list[RankLog]]:
    """One run's figures and its ranks' logs.

    Args:
        directory: the run's folder.
        begin: the parent's `round_begin`.
        end: the parent's `round_end`, None if there is none.
        nnodes: how many nodes it ran on.
        config: what was to be trained; without it what was seen outside the ranks isn't held against them.
    """
    ranks = _read_ranks(directory)
    agents = {node: _agent(directory / f"noderank{node}") for node in range(nnodes)}
    first = ranks[0] if ranks and ranks[0].rank == 0 else RankLog(0)
    last, finished = first.totals() or {}, first.last.get("train_end")
    converged = bool(finished and finished["converged"])
    failure = failure_of(directory, ranks, list(chain(*agents.values())), end)
    resumed = begin.get("resume_from") is not None  # whatever ranks say of it
    since = SinceBegin(begin, end)
    to_end, to_evaluation = least_seconds(first, agents.get(0, ()))
    times = durations(first, ranks, since, to_end)
    claimed = first.reached() or {"metric": None}
    examination = examination_of(agents.get(0, ()), claimed if converged else None)
    run = SeedRun(
        seed=begin["seed"],
        started=begin["time"],
        converged=converged if finished and failure is None else None,
        **_metrics(claimed, examination),
        steps=(finished or last).get("step", 0),
        samples=(finished or last).get("samples", 0),
        e2e_seconds=since.end(event for log in ranks for event in log.last.values()),
        **times,
        rates=None if failure else rates_of(first, times, resumed),
        pace=pace_of(first),
        **_of_first(first, to_end if converged else to_evaluation),
        ranks=tuple(figures_of(log) for log in ranks),
        **of_hosts(directory, ranks, agents, end or {}),
        resumed_from=first.began() if resumed else None,
        failure=failure,
        contention=contention_of(agents.values()),
        confirmation=_confirmation(first),
        **_verified(ranks, agents, end, examination, config, resumed),
    )
    return run, ranks


def _verified(
    ranks: Sequence[RankLog],
    agents: Mapping[int, Sequence[Event]],
    end: Event | None,
    examination: Examination | None,
    config: EffectiveConfig | None,
    resumed: bool,
) -> dict[str, Any]:
    """What was seen outside the ranks, and what of their words it bears out."""
    first = ranks[0] if ranks and ranks[0].rank == 0 else RankLog(0)
    said = first.last.get("dataset", {}).get("validation_items") or 0
    evaluations = Evaluations.of(config, (examination.of if examination else 0) or said)
    batch = config.global_batch_size if config else None
    taken = handed_out(ranks, chain(*agents.values()), resumed, batch, evaluations)
    tokens, walled = tokens_per_item(first, ranks, taken), all(log.walled for log in ranks)
    checks = (*first.checks.values(), *outside_checks(first, agents.get(0, ()), end, examination, config))
    held: tuple[Standing, ...] = ()
    if "train_end" in first.last:
        close, text = tells_closely(agents.get(0, ())), tokens is not None
        held = standing(checks, examination, taken, text=text, resumed=resumed, walled=walled, close=close)
    return {
        "tokens_per_item": tokens,
        "checks": checks,
        "standing": held,
        "examination": examination,
        "handed_out": taken,
    }


def _metrics(claimed: Event, examination: Examination | None) -> dict[str, Any]:
    """The metric that a run ends with: as the examination found it, where that was of all the data."""
    if examination and examination.whole:
        return {
            "metric": examination.metric,
            "metrics": {name: found.metric for name, found in examination.others.items()},
        }
    return {"metric": claimed["metric"], "metrics": claimed.get("others", {})}


def _confirmation(first: RankLog) -> Confirmation | None:
    event = first.last.get("confirmation")
    if event is None:
        return None
    known = {key: event[key] for key in ("samples", "metric", "others") if key in event}
    return Confirmation(**known, seconds=event["took_seconds"])


def _of_first(first: RankLog, least: float) -> dict[str, Any]:
    """What rank 0 alone tells: the model, when training began and ended, evaluations, losses, checkpoints.

    Its last evaluation came not before the `least` seconds that its agent saw: of one at the target, up to the end,
    with whose weights it was reached.
    """
    evaluations = [_evaluation(event) for event in first.evaluations.kept()]
    if evaluations and (evaluations[-1].seconds or 0.0) < least:
        evaluations[-1] = evaluations[-1].model_copy(update={"seconds": least})
    notes = (dict(zip(NotedStep.model_fields, note, strict=True)) for note in first.notes.kept())
    return {
        "parameters": first.last.get("model", {}).get("parameters"),
        "train_began": first.last.get("train_begin", {}).get("time"),
        "train_ended": first.ended(),
        "epochs": first.epochs.kept(),
        "evaluations": tuple(evaluations),
        "losses": first.losses.kept(),
        "notes": tuple(NotedStep(**note) for note in notes),
        "checkpoints": first.checkpoints.kept(),
    }


def _evaluation(event: Event) -> Evaluation:
    fields = fields_of(event, Evaluation)
    fields["seconds"] = event["train_seconds"]
    return Evaluation.model_validate({**fields, "began": event["time"] - event["took_seconds"], "ended": event["time"]})


def _agent(directory: Path) -> list[Event]:
    """What a node's agent wrote; damaged lines are counted elsewhere."""
    events = read_events(directory / "agent.jsonl", AGENT_EVENTS)
    return [event for event in events if event["event"] != CORRUPT]


def _read_ranks(directory: Path) -> list[RankLog]:
    return sorted((_read_rank(path) for path in directory.glob("noderank*/rank*.jsonl")), key=lambda log: log.rank)


def _read_rank(path: Path) -> RankLog:
    rank, node = (re.fullmatch(r"\D+(\d+)", name) for name in (path.stem, path.parent.name))
    return RankLog(int(rank[1]) if rank else -1, int(node[1]) if node else -1).take(read_events(path, RANK_EVENTS))
