"""From what a run's ranks and agents wrote to its record. Reads logs of any length in constant memory."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from proofmark.record.events.log import CORRUPT, Event, read_events, seconds_between
from proofmark.record.events.types import fields_of
from proofmark.record.parts import Contention, Monitoring
from proofmark.record.policy import default_policy
from proofmark.record.provenance import Host, Launched
from proofmark.rules.config import EffectiveConfig
from proofmark.training.logs.failure import failure_of
from proofmark.training.logs.handed_out import Evaluations, handed_out, tokens_per_item
from proofmark.training.logs.monitors import monitored
from proofmark.training.logs.outside import examination_of, least_seconds, outside_checks, standing, tells_closely
from proofmark.training.logs.rank_log import RankLog
from proofmark.training.node.node_monitor import FAILED
from proofmark.training.node.stopwatch import CONTENTION
from proofmark.training.node.stopwatch import EVENT as WATCHED
from proofmark.training.outcome.event_types import AGENT_EVENTS
from proofmark.training.outcome.examined import Examination
from proofmark.training.outcome.rank_event_types import RANK_EVENTS
from proofmark.training.outcome.record import (
    Communication,
    Confirmation,
    Evaluation,
    NotedStep,
    Rank,
    Rates,
    SeedRun,
    Split,
)

SHORTEST = 1e-9
"""Seconds: what took less was not measured."""


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
    failure = failure_of(directory, ranks, list(chain(*agents.values())), end)
    since = _Since(begin, end)
    to_end, to_evaluation = least_seconds(first, agents.get(0, ()))
    times = _times(first, ranks, since, to_end)
    at_target = to_end if finished and finished["converged"] else to_evaluation
    claimed = first.reached() or {"metric": None}
    examination = examination_of(agents.get(0, ()), claimed) if finished and finished["converged"] else None
    checks = (*first.checks.values(), *outside_checks(first, agents.get(0, ()), end, examination, config))
    resumed = begin.get("resume_from") is not None  # whatever ranks say of it
    said = first.last.get("dataset", {}).get("validation_items") or 0
    evaluations = Evaluations.of(config, (examination.of if examination else 0) or said)
    batch = config.global_batch_size if config else None
    taken = handed_out(ranks, chain(*agents.values()), resumed, batch, evaluations)
    close = tells_closely(agents.get(0, ()))
    tokens, walled = tokens_per_item(first, ranks, taken), all(log.walled for log in ranks)
    run = SeedRun(
        seed=begin["seed"],
        started=begin["time"],
        converged=finished["converged"] if finished and failure is None else None,
        **_metrics(claimed, examination),
        steps=(finished or last).get("step", 0),
        samples=(finished or last).get("samples", 0),
        e2e_seconds=since.end(event for log in ranks for event in log.last.values()),
        **times,
        rates=_rates(first, times, resumed),
        tokens_per_item=tokens,
        **_of_first(first, at_target),
        ranks=tuple(_figures(log) for log in ranks),
        **_of_hosts(directory, ranks, agents, end or {}),
        resumed_from=first.began() if resumed else None,
        failure=failure,
        contention=_contention(agents.values()),
        checks=checks,
        standing=standing(
            checks, examination, taken, text=tokens is not None, resumed=resumed, walled=walled, close=close
        )
        if finished
        else (),
        confirmation=_confirmation(first),
        examination=examination,
        handed_out=taken,
    )
    return run, ranks


def _of_hosts(
    directory: Path, ranks: Sequence[RankLog], agents: Mapping[int, Sequence[Event]], end: Event
) -> dict[str, Any]:
    """Where it ran, by what its agents and its launcher said, and what monitors saw there."""
    hosts = end.get("hosts", [])
    return {
        "nodes": tuple(_host(events) for events in agents.values()),
        "launched": tuple(Launched(**fields_of(host, Launched)) for host in hosts),
        "caches_cleared": end.get("caches_cleared"),
        "instances": end.get("instances"),
        "monitoring": _monitoring(directory, ranks, agents, [host["skew"] or 0.0 for host in hosts]),
    }


def _contention(agents: Iterable[Sequence[Event]]) -> Contention | None:
    """All ranks wait for the slowest: of the nodes without cores to spare the one counts where others took most; and
    whichever left its cores. None where not all nodes' agents saw what happened."""
    last = [{event["event"]: event for event in events}.get(CONTENTION) for events in agents]
    found = [Contention(**fields_of(event, Contention)) for event in last if event is not None]
    if not found or len(found) < len(last):
        return None
    spare, beyond = default_policy().noise.idle, sorted({core for seen in found for core in seen.beyond})
    most = max(found, key=lambda seen: (seen.idle <= spare, seen.others))
    return most.model_copy(update={"beyond": tuple(beyond)})


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


class _Since:
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


def _times(first: RankLog, ranks: Sequence[RankLog], since: _Since, least: float) -> dict[str, Any]:
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
            communication=_figures(first).communication_seconds,
            confirmation=own.get("confirmation_seconds") or None,
            **parts,
        ),
    }


def _rates(first: RankLog, times: dict[str, Any], resumed: bool) -> Rates | None:
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


def _figures(log: RankLog) -> Rank:
    memory = {key: log.last.get("memory", {}).get(key) for key in Rank.model_fields if key.endswith("_bytes")}
    compute, data = log.seconds("compute"), log.seconds("data")
    return Rank(
        rank=log.rank,
        node=log.node,
        isolation=log.isolation.kind if log.isolation else None,
        steps=log.last["train_end"]["step"] if {"train_end", "rank_end"} <= log.last.keys() else None,
        compute_seconds=compute,
        data_seconds=data,
        communication=_communication(log),
        **memory,
    )


def _host(events: Sequence[Event]) -> Host | None:
    """A node as its agent described it."""
    begin = next((event for event in events if event["event"] == "agent_begin"), None)
    return Host.model_validate(fields_of(begin, Host)) if begin else None


def _communication(log: RankLog) -> Communication | None:
    found = (log.totals() or {}).get("communication")
    if found is None:
        return None
    steps, reason = found["steps"], found["reason"]
    if not steps or not found["of"]:
        return Communication(share=None, steps=0, reason=reason or "the training had no step that it is measured on")
    return Communication(share=min(1.0, found["seconds"] / found["of"]), steps=steps)


def _window(first: RankLog, agent: Sequence[Event]) -> tuple[float, float] | None:
    """First and last moment of training, as a node's first rank says; no shorter than its agent saw it last."""
    said, seen = first.window(), next((event for event in reversed(agent) if event["event"] == WATCHED), None)
    if said is None or seen is None:
        return said
    begin, end = said
    looked = float(seen["time"])  # right after the end
    return min(begin, looked - seen["least"]), max(end, looked - (seen["most"] - seen["least"]))


def _monitoring(
    directory: Path, ranks: Sequence[RankLog], agents: Mapping[int, Sequence[Event]], skews: Sequence[float]
) -> Monitoring | None:
    """What the nodes' monitors saw, each in its window from the beginning of its first rank's training to its end."""
    firsts = {log.node: log for log in reversed(ranks)}
    windows = {node: _window(firsts[node], events) if node in firsts else None for node, events in agents.items()}
    trained = next((log.trained() for log in ranks if log.rank == 0), 0)
    failures = {node: [e["reason"] for e in events if e["event"] == FAILED] for node, events in agents.items()}
    return monitored(directory, windows, trained, failures, skews)
