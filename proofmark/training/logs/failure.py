"""Who brought a training down, from what its ranks, agents and launcher wrote."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from signal import SIGABRT, SIGTERM

from proofmark.record.events.log import Event, read_events
from proofmark.training.logs.rank_log import RankLog
from proofmark.training.outcome.event_types import AGENT_EVENTS
from proofmark.training.outcome.record import Failure
from proofmark.training.ranks.heartbeat import SETUP

TAIL = 4096
"""Bytes of a rank's log that a failure quotes."""

STACKS = 16384
"""Bytes of it where it hung: the stacks of all its threads, the one that hung last and its innermost frame first."""

LAST_EVENTS = 65536
"""Bytes of a rank's events in which its last ones are."""

QUOTED = 16
"""Ranks that a failure of many tells of one by one."""


def failure_of(directory: Path, ranks: Sequence[RankLog], agents: Sequence[Event], end: Event | None) -> Failure | None:
    """Who brought the run down: a rank that hung, that raised first, that died first; or whoever stopped it.

    When a rank dies the others fail after it: their exchange breaks, so they raise, or torchrun ends them by SIGTERM.
    So causes are sought from what can be nobody's consequence to what mostly is one: a lost host, a hang, or a
    directory or a log that is full (its agent has ended the ranks), a loss that is no number, a death by another
    signal, the earliest exception, a silent exit.
    """
    if end is not None and end["status"] == "succeeded":
        return None
    if end is not None and end.get("lost"):
        return _lost(directory, end["lost"])
    names = _Names(directory, (end or {}).get("hosts", ()))
    hung = [event for event in agents if event["event"] == "hang"]
    if hung:
        return _hang(directory, hung, names)
    ended = [event for event in agents if event["event"] == "rank_ended"]
    if ended:
        who, why = ended[0]["rank"], ended[0]["reason"]
        return Failure(ranks=(who,), cause=f"{names(who)}: {why}", last_lines=_tail(directory, who))
    failures = [log.last["rank_failed"] for log in ranks if "rank_failed" in log.last]
    raised = sorted(failures, key=lambda event: event["time"] - names.skew(event["rank"]))
    died = [event for event in agents if event["event"] == "rank_died" and event["code"] != 1]
    killed = [event for event in died if event["rank"] not in {e["rank"] for e in raised}]
    if raised or any(event["code"] != -SIGTERM for event in killed):
        killed = [event for event in killed if event["code"] != -SIGTERM]  # torchrun ends the others by it
    if raised:  # whom a library's watchdog aborts has waited for who raised before
        first = raised[0]["time"] - names.skew(raised[0]["rank"])
        killed = [e for e in killed if e["code"] != -SIGABRT or e["died"] - names.skew(e["rank"]) <= first]
    unsound = sorted((log for log in ranks if "diverged" in log.last), key=lambda log: log.last["diverged"]["step"])
    if unsound:
        cause = f"{names(unsound[0].rank)}: the loss of step {unsound[0].last['diverged']['step']} is not finite"
        return Failure(ranks=(unsound[0].rank,), cause=cause, diverged=True)
    if killed:
        return _death(directory, min(killed, key=lambda event: int(event["died"])), names)
    if raised:
        who, why = raised[0]["rank"], raised[0]["reason"]
        return Failure(ranks=(who,), cause=f"{names(who)}: {why}", last_lines=_tail(directory, who))
    silent = [event["rank"] for event in agents if event["event"] == "rank_died" and event["code"] == 1]
    if silent:
        sentences = _tail(directory, silent[0]).splitlines()[-1:] or ["ended with exit code 1"]
        return Failure(ranks=(silent[0],), cause=f"{names(silent[0])}: {sentences[0]}")
    stopped = end is None or end["status"] == "stopped"
    reason = (end or {}).get("reason") or ("the run was stopped" if stopped else "torchrun failed")
    return Failure(ranks=(), cause=reason, last_lines=_last(directory / "noderank0" / "agent.log"))


def diverged(directory: Path, end: Event) -> bool:
    """Whether a run that ended like this failed in its numbers and not in its processes, by the ends of its logs."""
    agents = (event for path in directory.glob("noderank*/agent.jsonl") for event in read_events(path, AGENT_EVENTS))
    if end.get("lost") or any(event["event"] == "hang" for event in agents):
        return False
    return any('"diverged"' in _last(path, LAST_EVENTS) for path in directory.glob("noderank*/rank*.jsonl"))


class _Names:
    """What a rank is called: with its host, where a launcher found several."""

    def __init__(self, directory: Path, hosts: Sequence[Event]) -> None:
        self._directory = directory
        self._hosts = {host["node"]: host for host in hosts}

    def __call__(self, rank: int) -> str:
        host = self._of(rank)
        return f"rank {rank} on {host['name']}" if host else f"rank {rank}"

    def skew(self, rank: int) -> float:
        """Seconds by which the clock of its host is ahead."""
        return float((self._of(rank) or {}).get("skew") or 0.0)

    def _of(self, rank: int) -> Event | None:
        """Its host, where there are several."""
        if len(self._hosts) > 1:
            for node, host in self._hosts.items():
                if any((self._directory / f"noderank{node}").glob(f"rank{rank}.*")):
                    return host
        return None


def _lost(directory: Path, lost: Sequence[Event]) -> Failure:
    """Hosts that did not live to see the end: whatever the others' ranks say follows from that."""
    sentences = dict.fromkeys(each["reason"] for each in lost)
    nodes = {each["node"] for each in lost if each["node"] is not None}
    logs = [path for node in nodes for path in (directory / f"noderank{node}").glob("rank*.jsonl")]
    ranks = [int(name[1]) for path in logs if (name := re.fullmatch(r"rank(\d{1,9})", path.stem))]
    return Failure(ranks=tuple(sorted(ranks)), cause="\n".join(sentences))


def _hang(directory: Path, hung: Sequence[Event], names: _Names) -> Failure:
    last = min(event["position"] for event in hung)
    behind = [event for event in hung if event["position"] == last]
    sentences = [f"{names(e['rank'])} hung {_where(e)} for {e['seconds']:.0f} s" for e in behind[:QUOTED]]
    sentences += [f"{len(behind) - QUOTED} more ranks hung there"] if len(behind) > QUOTED else []
    waiting = sorted(event["rank"] for event in hung if event["position"] != last)
    if waiting:
        more = f" and {len(waiting) - QUOTED} more" if len(waiting) > QUOTED else ""
        sentences.append(f"waiting for it: rank {', '.join(map(str, waiting[:QUOTED]))}{more}")
    sentences += dict.fromkeys(event["loaders"] for event in behind if "loaders" in event)
    ranks = tuple(event["rank"] for event in behind)
    lines = "\n".join(_tail(directory, rank, STACKS) for rank in ranks[:QUOTED])
    return Failure(ranks=ranks, cause="; ".join(sentences), last_lines=lines)


def _where(hang: Event) -> str:
    return "while it set up," if hang["phase"] in SETUP else f"in step {hang['step']}, {hang['phase']},"


def _death(directory: Path, event: Event, names: _Names) -> Failure:
    rank, code = event["rank"], event["code"]
    what = f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}"
    return Failure(ranks=(rank,), cause=f"{names(rank)} {what}", last_lines=_tail(directory, rank))


def _tail(directory: Path, rank: int, size: int = TAIL) -> str:
    return "\n".join(_last(path, size) for path in sorted(directory.glob(f"noderank*/rank{rank}.log")))


def _last(path: Path, size: int = TAIL) -> str:
    try:
        with path.open("rb") as stream:
            stream.seek(max(0, path.stat().st_size - size))
            return stream.read().decode("utf-8", "replace").strip()
    except OSError:
        return ""
