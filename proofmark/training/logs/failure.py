"""Who brought a training down, from what its ranks, agents and launcher wrote."""

from __future__ import annotations

import re
from collections.abc import Sequence
from operator import itemgetter
from pathlib import Path
from signal import SIGABRT, SIGTERM

from proofmark.literal import some
from proofmark.record.events.log import Event, read_events
from proofmark.training.heartbeat import SETUP
from proofmark.training.logs.ranks.rank_log import RankLog
from proofmark.training.outcome.event_types import AGENT_EVENTS, OUTLIVED
from proofmark.training.outcome.record import Failure

AT_ONCE = 10.0
"""Seconds between two things of one rank, of which one is then the other's cause."""

TAIL = 4096
"""Bytes of a rank's log that a failure quotes."""

STACKS = 16384
"""Bytes of it where it hung: the stacks of all its threads, the one that hung last and its innermost frame first."""

LAST_EVENTS = 65536
"""Bytes of a rank's events in which its last ones are."""

QUOTED = 16
"""Ranks that a failure of many tells of one by one."""

UNTOLD = {
    True: "each waits for the others or for its device: which of them is at fault can't be told",
    False: "whether one of them waits for another can't be told",
}
"""What is said of several ranks that hung at the same place, by whether they wait there."""


def failure_of(directory: Path, ranks: Sequence[RankLog], agents: Sequence[Event], end: Event | None) -> Failure | None:
    """Who brought the run down: a rank that hung, that raised first, that died first; or whoever stopped it.

    When a rank dies the others fail after it: their exchange breaks, so they raise, or torchrun ends them by SIGTERM.
    So causes are sought from what can be nobody's consequence to what mostly is one: a lost host, a hang, or a
    directory or a log that is full (its agent has ended the ranks), a loss that is no number, a death by another
    signal, the earliest exception, a silent exit.
    """
    left = _Left(directory, ranks, agents, end or {})
    if end is not None and end["status"] == "succeeded":
        return left.early()
    causes = (left.lost, left.hung, left.ended, left.unsound, left.killed, left.raised, left.silent)
    return left.with_outlived(next(filter(None, (cause() for cause in causes)), None) or left.stopped())


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

    def host(self, rank: int) -> str:
        """What a sentence begins with that is of its whole host."""
        host = self._of(rank)
        return f"{host['name']}: " if host else ""

    def on(self, folder: str) -> str:
        """What a sentence ends with that is of the host with this folder."""
        host = next((host for node, host in self._hosts.items() if folder == f"noderank{node}"), None)
        return f" on {host['name']}" if host and len(self._hosts) > 1 else ""

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


class _Left:
    """The logs that a failed run has left; each of the causes is sought for by itself."""

    def __init__(self, directory: Path, ranks: Sequence[RankLog], agents: Sequence[Event], end: Event) -> None:
        self._directory, self._ranks, self._agents, self._end = directory, ranks, agents, end
        self._names = _Names(directory, end.get("hosts", ()))
        failures = [log.last["rank_failed"] for log in ranks if "rank_failed" in log.last]
        self._raised = sorted(failures, key=lambda event: event["time"] - self._names.skew(event["rank"]))

    def lost(self) -> Failure | None:
        """Hosts that did not live to see the end: whatever the others' ranks say follows from that."""
        lost = self._end.get("lost")
        if not lost:
            return None
        sentences = dict.fromkeys(each["reason"] for each in lost)
        nodes = {each["node"] for each in lost if each["node"] is not None}
        logs = [path for node in nodes for path in (self._directory / f"noderank{node}").glob("rank*.jsonl")]
        ranks = [int(name[1]) for path in logs if (name := re.fullmatch(r"rank(\d{1,9})", path.stem))]
        return Failure(ranks=tuple(sorted(ranks)), cause="\n".join(sentences))

    def hung(self) -> Failure | None:
        """Those that hung first, and who waited for them."""
        hung = self._told("hang")
        if not hung:
            return None
        last = min(event["position"] for event in hung)
        there = [event for event in hung if event["position"] == last]
        behind = [event for event in there if not self._broke_off(event)] or there
        sentences = [f"{self._names(e['rank'])} hung {_where(e)} for {e['seconds']:.0f} s" for e in behind[:QUOTED]]
        sentences += [f"{len(behind) - QUOTED} more ranks hung there"] if len(behind) > QUOTED else []
        sentences += [UNTOLD[bool(last[-1])]] if len(behind) > 1 else []
        waiting = sorted({event["rank"] for event in hung} - {event["rank"] for event in behind})
        if waiting:
            sentences.append(f"waiting for it: rank {some([*map(str, waiting)], QUOTED)}")
        sentences += dict.fromkeys(event["loaders"] for event in behind if "loaders" in event)
        ranks = tuple(event["rank"] for event in behind)
        lines = "\n".join(self._tail(rank, STACKS) for rank in ranks[:QUOTED])
        return Failure(ranks=ranks, cause="; ".join(sentences), last_lines=lines)

    def _broke_off(self, hang: Event) -> bool:
        """Whether a rank raised when its agent looked: another node's had ended by then whom it waited for."""
        raised = (event["time"] for event in self._raised if event["rank"] == hang["rank"])
        return any(abs(moment - hang["time"]) < AT_ONCE for moment in raised)

    def ended(self) -> Failure | None:
        """Whom its agent has ended."""
        return next((self._of(event["rank"], event["reason"]) for event in self._told("rank_ended")), None)

    def unsound(self) -> Failure | None:
        """Whose loss was no number first."""
        steps = [(log.last["diverged"]["step"], log.rank) for log in self._ranks if "diverged" in log.last]
        if not steps:
            return None
        step, rank = min(steps, key=itemgetter(0))
        cause = f"{self._names(rank)}: the loss of step {step} is not finite"
        return Failure(ranks=(rank,), cause=cause, diverged=True)

    def killed(self) -> Failure | None:
        """Who died first, and of no other's failure."""
        raised = {event["rank"] for event in self._raised}
        died = [e for e in self._told("rank_died") if e["code"] != 1 and e["rank"] not in raised]
        if raised or any(event["code"] != -SIGTERM for event in died):
            died = [event for event in died if event["code"] != -SIGTERM]  # torchrun ends the others by it
        if raised:  # whom a library's watchdog aborts has waited for who raised before
            skew = self._names.skew
            first = self._raised[0]["time"] - skew(self._raised[0]["rank"])
            died = [e for e in died if e["code"] != -SIGABRT or e["died"] - skew(e["rank"]) <= first]
        if not died:
            return None
        moments = [event["died"] - self._names.skew(event["rank"]) for event in died]  # of whole seconds
        event = next(event for event, at in zip(died, moments, strict=True) if at < min(moments) + 1)
        rank, code = event["rank"], event["code"]
        what = f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}"
        return Failure(ranks=(rank,), cause=f"{self._names(rank)} {what}", last_lines=self._tail(rank))

    def raised(self) -> Failure | None:
        """Who raised first."""
        return next((self._of(event["rank"], event["reason"]) for event in self._raised), None)

    def silent(self) -> Failure | None:
        """Who ended with an error's exit code, of which its log may say more."""
        rank = next((event["rank"] for event in self._told("rank_died") if event["code"] == 1), None)
        if rank is None:
            return None
        sentences = self._tail(rank).splitlines()[-1:] or ["ended with exit code 1"]
        return Failure(ranks=(rank,), cause=f"{self._names(rank)}: {sentences[0]}")

    def early(self) -> Failure | None:
        """Who ended as if all were well, as by `os._exit(0)`, before its training did."""
        rank = next((log.rank for log in self._ranks if "rank_begin" in log.last and "rank_end" not in log.last), None)
        if rank is None:
            return None
        what = "ended with exit code 0 before its training did"
        return Failure(ranks=(rank,), cause=f"{self._names(rank)} {what}", last_lines=self._tail(rank))

    def stopped(self) -> Failure:
        """Nobody of them: whoever stopped the run, or what started it on the first node where that has printed any."""
        logs = sorted(self._directory.glob("noderank*/agent.log"))
        folder, lines = next(((path.parent.name, text) for path in logs if (text := _last(path))), ("", ""))
        stopped = self._end.get("status", "stopped") == "stopped"
        why = "the run was stopped" if stopped else f"torchrun failed{self._names.on(folder)}"
        return Failure(ranks=(), cause=self._end.get("reason") or why, last_lines=lines)

    def with_outlived(self, failure: Failure) -> Failure:
        """Said too of what goes on though it was killed, by the agents, and by who started one here."""
        told = [f"; {self._names.host(event['rank'])}{event['reason']}" for event in self._told(OUTLIVED)[:QUOTED]]
        left = dict.fromkeys([*told, self._end.get("left", "")])
        return failure.model_copy(update={"cause": failure.cause + "".join(left)})

    def _told(self, kind: str) -> list[Event]:
        return [event for event in self._agents if event["event"] == kind]

    def _of(self, rank: int, why: str) -> Failure:
        return Failure(ranks=(rank,), cause=f"{self._names(rank)}: {why}", last_lines=self._tail(rank))

    def _tail(self, rank: int, size: int = TAIL) -> str:
        return "\n".join(_last(path, size) for path in sorted(self._directory.glob(f"noderank*/rank{rank}.log")))


def _where(hang: Event) -> str:
    return "while it set up," if hang["phase"] in SETUP else f"in step {hang['step']}, {hang['phase']},"


def _last(path: Path, size: int = TAIL) -> str:
    try:
        with path.open("rb") as stream:
            stream.seek(max(0, path.stat().st_size - size))
            return stream.read().decode("utf-8", "replace").strip()
    except OSError:
        return ""
