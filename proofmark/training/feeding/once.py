"""The data of a node's ranks: `python -m proofmark.training.feeding.once SPEC FIRST_RANK TOLD_FD DESCRIPTORS...`.

It makes what the case trains on, once: to look through the files of a data set of standard size takes minutes, and each
rank's feeder would do it again. Then it forks a feeder for each rank, which has the data as it is. What ranks are
evaluated on, a process of its own makes that forks who serves it: a data set may draw from its process's only source of
chance.

It imports no vendor's code, and nobody speaks to it: it tells its agent which data that is, over a socket that nobody
else can open, waits for its feeders, and ends with its agent.
"""

from __future__ import annotations

import contextlib
import faulthandler
import gc
import importlib
import json
import os
import signal
import socket
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from proofmark.process.lifetime import end_with
from proofmark.process.log_level import log_from
from proofmark.process.memory import keep_freed
from proofmark.rules.config import EffectiveConfig
from proofmark.training.feeding.counts import Counts
from proofmark.training.feeding.feeder import feed
from proofmark.training.feeding.on_request import serve
from proofmark.training.spec import AGENT, TrainingSpec
from proofmark.vendor import torch_extensions

if TYPE_CHECKING:
    from proofmark.training.case import TrainingCase, TrainingData

EACH = 4
"""Descriptors of a rank: to speak with it, its counts, its requests, and the end of what it prints."""

Loaded = Callable[[], "tuple[TrainingCase, TrainingData]"]
"""Gives what was made, or raises what was raised instead."""


class Ends:
    """This side of what a rank's feeder has, until it is the feeder's alone."""

    def __init__(self, rank: int, spoken: int, counts: int, requests: int, output: int) -> None:
        self.rank, self.counts, self._output = rank, Counts(counts), output
        self.spoken, self.requests = (socket.socket(fileno=number) for number in (spoken, requests))
        for number in (spoken, requests, output):
            os.set_inheritable(number, False)
        self.counts.begin()

    def become(self) -> None:
        """Have this process's standard streams, and its name, be those of the rank."""
        os.environ["RANK"] = str(self.rank)
        for number in (1, 2):
            os.dup2(self._output, number)

    def close(self) -> None:
        """They are another process's."""
        self.spoken.close()
        self.requests.close()
        os.close(self._output)


def main() -> NoReturn:
    """Feed a node's ranks, to the end of all of them."""
    end_with(int(os.environ[AGENT]))
    keep_freed()
    faulthandler.enable()
    faulthandler.register(signal.SIGUSR1, all_threads=True)
    torch_extensions.hold_back()
    spec, (first, told, *numbers) = TrainingSpec.load(Path(sys.argv[1])), map(int, sys.argv[2:])
    ends = [
        Ends(first + place, *numbers[start : start + EACH]) for place, start in enumerate(range(0, len(numbers), EACH))
    ]
    importlib.import_module("proofmark.training.feeding.loading")  # here: each would import torch
    own = os.getpid()
    with socket.socket(fileno=told) as agent:
        if serves := os.fork() == 0:
            end_with(own)
        loaded = _loaded(spec, "validation" if serves else "train")
        if not serves:
            _tell_which(agent, loaded)
    _fork_each(spec, ends, loaded, serves)
    os._exit(0)


def _loaded(spec: TrainingSpec, split: str) -> Loaded:
    """Make a data set of the case's."""
    from proofmark.training.feeding.loading import made_data

    made: Future[tuple[TrainingCase, TrainingData]] = Future()
    try:
        config = EffectiveConfig.from_dict(spec.config)
        log_from(config.host.log_level)
        case = getattr(importlib.import_module(spec.case[0]), spec.case[1])()
        made.set_result((case, made_data(case, config, split)))
    except BaseException as error:  # noqa: BLE001 (a case's code may raise anything; each rank is told)
        made.set_exception(error)
    return made.result


def _tell_which(agent: socket.socket, loaded: Loaded) -> None:
    """Say which data that is. Where there is none each rank is told why."""
    with contextlib.suppress(BaseException):
        _, data = loaded()
        which = {"items": len(data), "data": data.identity.model_dump(mode="json")}
        agent.send(json.dumps(which).encode())


def _fork_each(spec: TrainingSpec, ends: Sequence[Ends], loaded: Loaded, serves: bool) -> None:
    """Fork a process for each rank, which ends with this one, and wait for all of them."""
    own, running = os.getpid(), dict[int, Ends]()
    gc.freeze()  # a collection would touch all objects that there are, and what is touched is no longer shared
    for each in ends:
        if pid := os.fork():
            running[pid] = each
            continue
        try:
            end_with(own)
            for other in ends:
                if other is not each:
                    other.close()
            each.become()
            _run(spec, each, loaded, serves)
        finally:
            os._exit(1)
    for each in ends:
        each.close()
    while running:
        pid, status = os.wait()
        ended = running.pop(pid, None)
        if ended and not serves:
            ended.counts.note_code(os.waitstatus_to_exitcode(status))


def _run(spec: TrainingSpec, ends: Ends, loaded: Loaded, serves: bool) -> None:
    (ends.spoken if serves else ends.requests).close()
    ends.counts.note_process(serves)
    if not serves:
        feed(spec, ends.rank, loaded, ends.spoken, ends.counts)
    config = EffectiveConfig.from_dict(spec.config)
    largest = config.eval_batch_size
    serve(ends.requests, lambda: loaded()[1], config.num_workers, largest, "eval_batch_size", ends.counts.evaluate)


if __name__ == "__main__":
    main()
