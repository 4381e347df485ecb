"""The feeders of a node's ranks: started before a rank is, counted by the agent, ended after the last one."""

from __future__ import annotations

import contextlib
import json
import re
import signal
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Mapping
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple

import psutil

from proofmark.process.child import cause_of_death
from proofmark.process.environment import begun_with
from proofmark.process.lifetime import end_group, wait_without_reaping
from proofmark.process.signalled import ask_for_stacks
from proofmark.process.warm.modules import start_module
from proofmark.process.warm.process import Forked
from proofmark.record.events.log import EventLog
from proofmark.training.feeding.counts import Counts
from proofmark.training.feeding.words import LONGEST
from proofmark.training.node.agent_forks import Ends
from proofmark.training.outcome.event_types import FED

MODULE = "proofmark.training.feeding.once"

ENDING = 15.0
"""Seconds that they get to hear what their ranks have said last; one that is killed makes an honest training fail."""

OWN = {"OMP_NUM_THREADS": "1"}
"""A feeder loads in one thread, or in workers: the cores are its rank's."""

SHOWING = 10.0
"""Seconds that they get to print where they are, where they have not at once."""

Process = subprocess.Popen[bytes] | Forked


class Seen(NamedTuple):
    """What a feeder had counted at a look: samples laid, and samples laid to be evaluated on."""

    laid: int
    evaluated: int


class Feeders:
    """One for each of a node's ranks, all of one group.

    Args:
        outputs: by rank, the descriptor that what it prints goes to.
        log: the agent's.
    """

    def __init__(self, outputs: Mapping[int, int], log: EventLog) -> None:
        self._outputs, self._log = outputs, log
        self._process: Process | None = None
        self._told: socket.socket | None = None
        self._counts: dict[int, Counts] = {}
        self._seen: dict[int, Seen] = {}
        self._before: dict[int, Seen] = {}
        self._ending = threading.Lock()

    def start(self, spec: Path, ends: Ends) -> bool:
        """Start them; whether all could be. Of one that could not, why is written down.

        Args:
            spec: path of the training's.
            ends: gets, by rank, the descriptors by which it speaks with its own: of what it trains on, and for what it
                is evaluated on.
        """
        try:
            self._start(spec, ends)
        except OSError as error:
            reason = f"the process that loads its data can't be started: {error.strerror or error}"
            self._log.write("rank_ended", rank=next(iter(self._outputs)), reason=reason)
            return False
        return True

    def _start(self, spec: Path, ends: Ends) -> None:
        """One process makes the data of all of them, and forks them."""
        first, *_ = self._outputs
        environment = begun_with({}, OWN, home=tempfile.gettempdir())  # the agent's own
        passed, pages = list[int](), dict[int, int]()
        with contextlib.ExitStack() as its:
            self._told, told = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            its.enter_context(told)
            for rank, output in self._outputs.items():
                pairs = [socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET) for _ in range(2)]
                (spoken, requests), pages[rank] = (its.enter_context(one) for one, _ in pairs), Counts.make()
                ends[rank] = tuple(other.detach() for _, other in pairs)
                passed += [spoken.fileno(), pages[rank], requests.fileno(), output]
            passed.insert(0, told.fileno())
            self._process = start_module(MODULE, [str(spec), str(first)], passed, self._outputs[first], environment)
        self._counts = {rank: Counts(page) for rank, page in pages.items()}

    def data(self) -> dict[str, Any]:
        """Which data the process that has made it says that it is; empty where it said nothing. To be called once."""
        try:
            return dict(json.loads(self._told.recv(LONGEST, socket.MSG_DONTWAIT) or b"{}")) if self._told else {}
        except (OSError, ValueError):  # nothing came, or more than can be read
            return {}

    def begun(self, before: dict[int, Seen] | None) -> None:
        """Training has begun: what lay ready for ranks `before`, taken or not, is held against them."""
        self._before = before or {}

    def ended(self, by_then: dict[int, Seen]) -> None:
        """Training has ended, as far as ranks say: they could have trained on what had been laid `by_then`."""
        self._seen = by_then

    def now(self) -> dict[int, Seen]:
        """What has been counted by now, of each rank."""
        return {rank: Seen(each.laid, each.evaluated) for rank, each in self._counts.items()}

    def stacks(self, ranks: Mapping[int, str]) -> None:
        """Have those that load what some ranks wait for, by the phases that these are in, print where they are, into
        the ranks' logs, and wait until they have: one by one of each rank, since what two print at once is mixed."""
        awaited = [self._awaited(rank, phase) for rank, phase in ranks.items() if rank in self._counts]
        shown = [[pid for each in pids for pid in (each, *_forked_by(each))] for pids in awaited]
        deadline = time.monotonic() + SHOWING
        for pids in zip_longest(*shown):
            there = filter(None, dict.fromkeys(pids))
            ask_for_stacks(filter(_shows_stacks, there), max(0.0, deadline - time.monotonic()))

    def _awaited(self, rank: int, phase: str) -> list[int]:
        processes = self._counts[rank].processes
        if not processes:
            return [self._process.pid] if self._process else []
        feeder, server = processes
        return {"data": [feeder], "evaluation": [server]}.get(phase, processes)

    def end(self, patience: float = ENDING) -> None:
        """End them, now that no rank runs. A second time does nothing."""
        with self._ending:
            if self._process is None:
                return
            with contextlib.suppress(OSError):
                if self._process.stdin:
                    self._process.stdin.close()  # each of them has the other end
            wait_without_reaping(self._process.pid, patience)
            end_group(self._process)  # with them, and the workers that load for them

    def tell(self) -> None:
        """Write down what they counted, now that they have ended; of one that could not count to its end, why."""
        for rank, counts in self._counts.items():
            if counts.whole:
                taken = {"samples": counts.samples, "tokens": counts.tokens, "began": counts.began}
                before, end = self._before.get(rank, Seen(0, 0)), self._seen.get(rank)
                seen = {"shown_before": before.laid, "by_the_end": end and end.laid}
                evaluated = {"evaluated": end and end.evaluated, "evaluated_before": before.evaluated}
                self._log.write(FED, rank=rank, **taken, **seen, **evaluated)
            else:
                cause = cause_of_death(counts.code or (self._process.returncode if self._process else None))
                self._log.write("rank_ended", rank=rank, reason=f"the process that loads its data {cause}")


def _forked_by(pid: int) -> list[int]:
    """Processes that one has forked, and those that these have."""
    try:
        return [each.pid for each in psutil.Process(pid).children(recursive=True)]
    except psutil.Error:
        return []


def _shows_stacks(pid: int) -> bool:
    """Whether it catches the signal by now: of one that has only begun it would be the end."""
    try:
        caught = re.search(r"^SigCgt:\s*([0-9a-f]+)$", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
    except OSError:
        return False
    return caught is not None and bool(int(caught[1], 16) >> (signal.SIGUSR1 - 1) & 1)
