"""From what a run's ranks and agents wrote to its record. Reads logs of any length in constant memory."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from operator import itemgetter
from pathlib import Path
from signal import SIGTERM
from typing import Any

from harness.events import CORRUPT, Event, read_events
from harness.record import Host, Monitoring
from harness.training.beat import SETUP
from harness.training.node_monitor import FAILED
from harness.training.nodes import monitored
from harness.training.record import Communication, Epoch, Evaluation, Failure, NotedStep, Rank, Rates, SeedRun, Split
from harness.training.thinned import Thinned

TAIL = 4096
"""Bytes of a rank's log that a failure quotes."""

QUOTED = 16
"""Ranks that a failure of many tells of one by one."""


@dataclass
class RankLog:
    """What of one rank's events the record needs: the last of each kind, and rank 0's series, of bounded length."""

    rank: int
    node: int = 0
    last: dict[str, Event] = field(default_factory=dict)
    evaluations: Thinned[Event] = field(default_factory=Thinned)
    losses: Thinned[tuple[int, float | None]] = field(default_factory=Thinned)
    notes: Thinned[tuple[Any, ...]] = field(default_factory=Thinned)
    epochs: Thinned[Epoch] = field(default_factory=Thinned)
    checkpoints: Thinned[int] = field(default_factory=Thinned)
    corrupt: int = 0
    _epoch: Event | None = None

    def take(self, events: Iterable[Event]) -> RankLog:
        """Read all events."""
        for event in events:
            kind = event["event"]
            if kind == CORRUPT:
                self.corrupt += 1
                continue
            self.last[kind] = event
            if self.rank == 0:
                self._follow(kind, event)
        return self

    def _follow(self, kind: str, event: Event) -> None:
        if kind == "steps":
            self.losses.extend(list(enumerate(event["losses"], event["first"])))
            self.notes.extend([(*_noted(event), event["losses"][-1])])
        elif kind == "evaluation":
            self.evaluations.extend([event])
        elif kind in ("epoch_begin", "train_end"):
            self._turn_epoch(event)
        elif kind == "checkpoint":
            self.checkpoints.extend([event["step"]])

    def _turn_epoch(self, event: Event) -> None:
        """An epoch lasts until the next begins or training ends."""
        if self._epoch is not None:
            self.epochs.extend([Epoch(number=self._epoch["epoch"], began=self._epoch["time"], ended=event["time"])])
        self._epoch = event if event["event"] == "epoch_begin" else None

    def curve(self) -> tuple[Evaluation, ...]:
        """The evaluations, from the one before training on."""
        return tuple(_evaluation(event) for event in self.evaluations.kept())

    def totals(self) -> Event | None:
        """All parts of the clock as last written, None before training began."""
        written = [self.last[kind] for kind in ("steps", "evaluation", "train_end") if kind in self.last]
        return max(written, key=lambda event: event["clock"], default=None) if "train_begin" in self.last else None

    def window(self) -> tuple[float, float] | None:
        """First and last moment of training, seconds since the epoch; None if it did not come to its end."""
        begin, end = self.last.get("train_begin"), self.last.get("train_end")
        return (begin["time"], end["time"]) if begin and end else None

    def trained(self) -> int:
        """Samples that all ranks trained on in this process's time; 0 if training did not come to its end."""
        begin, end = self.last.get("train_begin"), self.last.get("train_end")
        return int(end["samples"] - begin["samples"]) if begin and end else 0

    def seconds(self, part: str) -> float | None:
        """A part of the clock, as last written."""
        totals = self.totals()
        return None if totals is None else float(totals[f"{part}_seconds"])


def collect_run(directory: Path, begin: Event, end: Event | None, nnodes: int) -> tuple[SeedRun, list[RankLog]]:
    """One run's figures and its ranks' logs.

    Args:
        directory: the run's folder.
        begin: the parent's `round_begin`.
        end: the parent's `round_end`, None if there is none.
        nnodes: how many nodes it ran on.
    """
    ranks = _read_ranks(directory)
    agents = {node: list(read_events(directory / f"noderank{node}" / "agent.jsonl")) for node in range(nnodes)}
    first = ranks[0] if ranks and ranks[0].rank == 0 else RankLog(0)
    newest = max((event["time"] for log in ranks for event in log.last.values()), default=begin["time"])
    last, finished = first.totals() or {}, first.last.get("train_end")
    failure, evaluations = _failure(directory, ranks, list(chain(*agents.values())), end), first.curve()
    times = _times(first, ranks, begin)
    run = SeedRun(
        seed=begin["seed"],
        started=begin["time"],
        converged=finished["converged"] if finished and failure is None else None,
        metric=evaluations[-1].metric if evaluations else None,
        steps=last.get("step", 0),
        samples=last.get("samples", 0),
        e2e_seconds=(end["time"] if end else newest) - begin["time"],
        **times,
        rates=_rates(first, times),
        parameters=first.last.get("model", {}).get("parameters"),
        train_began=first.last.get("train_begin", {}).get("time"),
        train_ended=finished["time"] if finished else None,
        epochs=first.epochs.kept(),
        evaluations=evaluations,
        losses=first.losses.kept(),
        notes=tuple(NotedStep(**dict(zip(NotedStep.model_fields, note, strict=True))) for note in first.notes.kept()),
        ranks=tuple(_figures(log) for log in ranks),
        nodes=tuple(_host(events) for events in agents.values()),
        checkpoints=first.checkpoints.kept(),
        resumed_from=first.last.get("resumed", {}).get("step"),
        failure=failure,
        monitoring=_monitoring(directory, ranks, agents),
    )
    return run, ranks


_noted = itemgetter("step", "epoch", "samples", "time", "learning_rate")
"""What is noted of a step, but for its loss, in the order of a NotedStep."""


def _evaluation(event: Event) -> Evaluation:
    fields = {"samples": event["samples"], "seconds": event["train_seconds"], "metric": event["metric"]}
    return Evaluation.model_validate({**fields, "began": event["time"] - event["took_seconds"], "ended": event["time"]})


def _read_ranks(directory: Path) -> list[RankLog]:
    return sorted((_read_rank(path) for path in directory.glob("noderank*/rank*.jsonl")), key=lambda log: log.rank)


def _read_rank(path: Path) -> RankLog:
    rank, node = (re.fullmatch(r"\D+(\d+)", name) for name in (path.stem, path.parent.name))
    return RankLog(int(rank[1]) if rank else -1, int(node[1]) if node else -1).take(read_events(path))


def _times(first: RankLog, ranks: Sequence[RankLog], begin: Event) -> dict[str, Any]:
    """Initialisation, training, training without evaluations, compute: each the slowest rank's; and rank 0's split."""
    started, own = first.last.get("init_end"), first.totals()
    init = started["time"] - begin["time"] if started else None
    nothing = dict.fromkeys(("train_seconds", "no_eval_seconds", "pure_compute_seconds", "split"))
    if own is None or init is None:
        return nothing | {"init_seconds": init}
    parts = {part: own[f"{part}_seconds"] for part in ("data", "compute", "evaluation", "checkpoint")}
    totals = [total for log in ranks if (total := log.totals())]
    return {
        "init_seconds": init,
        "train_seconds": max(total["train_seconds"] for total in totals),
        "no_eval_seconds": max(total["train_seconds"] - total["evaluation_seconds"] for total in totals),
        "pure_compute_seconds": max(total["compute_seconds"] for total in totals),
        "split": Split(
            init=init,
            other=max(0.0, own["train_seconds"] - sum(parts.values())),
            communication=_figures(first).communication_seconds,
            **parts,
        ),
    }


def _rates(first: RankLog, times: dict[str, Any]) -> Rates | None:
    """Samples over each of the times; None before training came to its end."""
    end = first.last.get("train_end")
    seconds = [times[f"{name}_seconds"] for name in ("train", "no_eval", "pure_compute")]
    if end is None or end["samples"] <= 0 or not all(seconds):
        return None
    raw, no_eval, pure = (end["samples"] / each for each in seconds)
    return Rates(raw=raw, no_eval=no_eval, pure_compute=pure)


def _figures(log: RankLog) -> Rank:
    memory = {key: log.last.get("memory", {}).get(key) for key in Rank.model_fields if key.endswith("_bytes")}
    compute, data = log.seconds("compute"), log.seconds("data")
    return Rank(
        rank=log.rank,
        node=log.node,
        compute_seconds=compute,
        data_seconds=data,
        communication=_communication(log),
        **memory,
    )


def _host(events: Sequence[Event]) -> Host | None:
    """A node as its agent described it."""
    begin = next((event for event in events if event["event"] == "agent_begin"), None)
    return Host.model_validate({key: begin[key] for key in Host.model_fields}) if begin else None


def _communication(log: RankLog) -> Communication | None:
    found = (log.totals() or {}).get("communication")
    if found is None:
        return None
    steps, reason = found["steps"], found["reason"]
    if not steps or not found["of"]:
        return Communication(share=None, steps=0, reason=reason or "the training had no step that it is measured on")
    return Communication(share=min(1.0, found["seconds"] / found["of"]), steps=steps)


def _failure(directory: Path, ranks: Sequence[RankLog], agents: Sequence[Event], end: Event | None) -> Failure | None:
    """Who brought the run down: a rank that hung, that raised first, that died first; or whoever stopped it."""
    if end is not None and end["status"] == "succeeded":
        return None
    if end is not None and end.get("lost"):
        return _lost(directory, end["lost"])
    hung = [event for event in agents if event["event"] == "hang"]
    if hung:
        return _hang(directory, hung)
    raised = sorted((log.last["rank_failed"] for log in ranks if "rank_failed" in log.last), key=lambda e: e["time"])
    died = [event for event in agents if event["event"] == "rank_died" and event["code"] != 1]
    killed = [event for event in died if event["rank"] not in {e["rank"] for e in raised}]
    if raised or any(event["code"] != -SIGTERM for event in killed):
        killed = [event for event in killed if event["code"] != -SIGTERM]  # torchrun ends the others by it
    diverged = sorted((log for log in ranks if "diverged" in log.last), key=lambda log: log.last["diverged"]["step"])
    if diverged:
        cause = f"rank {diverged[0].rank}: the loss of step {diverged[0].last['diverged']['step']} is not finite"
        return Failure(ranks=(diverged[0].rank,), cause=cause, diverged=True)
    if killed:
        return _death(directory, min(killed, key=lambda event: int(event["died"])))
    if raised:
        who, why = raised[0]["rank"], raised[0]["reason"]
        return Failure(ranks=(who,), cause=f"rank {who}: {why}", last_lines=_tail(directory, who))
    silent = [event["rank"] for event in agents if event["event"] == "rank_died" and event["code"] == 1]
    if silent:
        told = _tail(directory, silent[0]).splitlines()[-1:] or ["ended with exit code 1"]
        return Failure(ranks=(silent[0],), cause=f"rank {silent[0]}: {told[0]}")
    stopped = end is None or end["status"] == "stopped"
    reason = (end or {}).get("reason") or ("the run was stopped" if stopped else "torchrun failed")
    return Failure(ranks=(), cause=reason, last_lines=_last(directory / "noderank0" / "agent.log"))


def _lost(directory: Path, lost: Sequence[Event]) -> Failure:
    """Hosts that did not live to see the end: whatever the others' ranks say follows from that."""
    told = dict.fromkeys(each["reason"] for each in lost)
    nodes = {each["node"] for each in lost if each["node"] is not None}
    logs = [path for node in nodes for path in (directory / f"noderank{node}").glob("rank*.jsonl")]
    ranks = sorted(int(path.stem.removeprefix("rank")) for path in logs)
    return Failure(ranks=tuple(ranks), cause="\n".join(told))


def _hang(directory: Path, hung: Sequence[Event]) -> Failure:
    last = min(event["position"] for event in hung)
    behind = [event for event in hung if event["position"] == last]
    told = [f"rank {e['rank']} hung {_where(e)} for {e['seconds']:.0f} s" for e in behind[:QUOTED]]
    told += [f"{len(behind) - QUOTED} more ranks hung there"] if len(behind) > QUOTED else []
    waiting = sorted(event["rank"] for event in hung if event["position"] != last)
    if waiting:
        more = f" and {len(waiting) - QUOTED} more" if len(waiting) > QUOTED else ""
        told.append(f"waiting for it: rank {', '.join(map(str, waiting[:QUOTED]))}{more}")
    ranks = tuple(event["rank"] for event in behind)
    return Failure(
        ranks=ranks, cause="; ".join(told), last_lines="\n".join(_tail(directory, rank) for rank in ranks[:QUOTED])
    )


def _where(hang: Event) -> str:
    return "while it set up," if hang["phase"] in SETUP else f"in step {hang['step']}, {hang['phase']},"


def _death(directory: Path, event: Event) -> Failure:
    rank, code = event["rank"], event["code"]
    what = f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}"
    return Failure(ranks=(rank,), cause=f"rank {rank} {what}", last_lines=_tail(directory, rank))


def _tail(directory: Path, rank: int) -> str:
    return "\n".join(_last(path) for path in sorted(directory.glob(f"noderank*/rank{rank}.log")))


def _last(path: Path) -> str:
    try:
        with path.open("rb") as stream:
            stream.seek(max(0, path.stat().st_size - TAIL))
            return stream.read().decode("utf-8", "replace").strip()
    except OSError:
        return ""


def _monitoring(directory: Path, ranks: Sequence[RankLog], agents: Mapping[int, Sequence[Event]]) -> Monitoring | None:
    """What the nodes' monitors saw, each in its window from the beginning of its first rank's training to its end."""
    firsts = {log.node: log for log in reversed(ranks)}
    windows = {node: firsts[node].window() if node in firsts else None for node in agents}
    trained = next((log.trained() for log in ranks if log.rank == 0), 0)
    failures = {node: [e["reason"] for e in events if e["event"] == FAILED] for node, events in agents.items()}
    return monitored(directory, windows, trained, failures)


def olympic_mean(values: Sequence[float]) -> float:
    """The mean without the largest and the smallest from five values on; otherwise the plain mean.

    A run that missed its target took infinitely long.
    """
    kept = sorted(values)[1:-1] if len(values) >= 5 else values
    return sum(kept) / len(kept)
