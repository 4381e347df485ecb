"""A rank's feeder: `python -m proofmark.training.feeding.feeder SPEC RANK WORDS_FD COUNTS_FD REQUESTS_FD`.

It loads the rank's share of the plan, lays batches into shared memory ahead of time, and counts what the rank takes. It
imports no vendor's code, and hears nothing of its rank but from where it trains, and that it takes a batch; what lies
in shared memory it never reads. It ends with its rank, or when its standard input closes. What the rank is evaluated
on, a process loads that it has forked.
"""

from __future__ import annotations

import faulthandler
import importlib
import os
import queue
import select
import signal
import socket
import sys
import threading
import traceback
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from proofmark.process.lifetime import end_with, leave
from proofmark.process.log_level import log_from
from proofmark.process.memory import keep_freed
from proofmark.rules.config import EffectiveConfig
from proofmark.training.feeding import words
from proofmark.training.feeding.counts import Counts
from proofmark.training.feeding.on_request import fork_server, tell
from proofmark.training.feeding.shelf import Shelf
from proofmark.training.spec import AGENT, TrainingSpec
from proofmark.vendor import torch_extensions

if TYPE_CHECKING:
    from proofmark.case import Batch
    from proofmark.training.case import TrainingCase
    from proofmark.training.feeding.batches import Share
    from proofmark.training.feeding.loading import Planned


class Feeder:
    """Feeds one rank. This thread loads and lays; another one listens, so that the counts never wait for a slow load.

    Args:
        case: says how many tokens a sample has.
        plan: what the rank trains on.
        ahead: batches that lie ready.
        rank: to speak with it.
        counts: what is handed out.
        resumed: whether the rank may begin elsewhere than at the plan's beginning.
    """

    def __init__(
        self,
        case: TrainingCase,
        plan: Planned,
        ahead: int,
        rank: socket.socket,
        counts: Counts,
        resumed: bool,
    ) -> None:
        self._case, self._plan, self._rank, self._counts = case, plan, rank, counts
        self._resumed = resumed
        self._shelf = Shelf[tuple[int, int | None]](rank, ahead, setting="train_batch_size")
        self._orders, self._begun = queue.SimpleQueue[bytes](), False

    def feed(self) -> None:
        """Hand out the plan's batches, from where the rank begins, to the plan's end.

        Raises:
            StepError: a sample can't be read, or there is no memory.
            OSError: the rank is gone.
        """
        self._rank.send(words.hello(self._plan.identity, self._plan.order.items))
        while (order := self._orders.get())[0] == words.SAMPLE:
            self._lay(self._plan.sample(), 0)
        _, epoch, first = words.BEGIN_FORM.unpack(order)
        for share, batch in self._plan.shares(epoch, first):
            self._lay(batch, share.samples, share)

    def listen(self, parent: int) -> None:
        """Hear the rank, until it is gone, or the descriptor `parent` closes and all that it said was heard.

        Raises:
            ValueError: it said what is no word.
        """
        looked, rank = select.poll(), self._rank.fileno()
        for source in (rank, parent):
            looked.register(source, select.POLLIN)
        while rank in (ready := dict(looked.poll())):
            if message := self._said():
                self._hear(message)
            elif ready[rank] & select.POLLHUP:
                break
            else:  # it is there, and has said nothing, or that it says nothing more
                raise ValueError("it sent an unknown request")
        self._counts.end()

    def _said(self) -> bytes:
        """The rank's next word; none when it is gone."""
        try:
            return self._rank.recv(words.LONGEST)
        except ConnectionResetError:  # it left batches where they lie: that is told first, and once
            return self._rank.recv(words.LONGEST)

    def _hear(self, message: bytes) -> None:
        if message[0] != words.TAKEN:
            if self._begun or self._orders.qsize():
                raise ValueError("it asks for what it has asked for")
            if message[0] != words.SAMPLE:
                self._begin(message)
            self._orders.put(message)
            return
        self._counts.take(*self._shelf.take(message))

    def _begin(self, message: bytes) -> None:
        _, epoch, first = words.BEGIN_FORM.unpack(message)
        if (epoch or first) and not self._resumed:
            raise ValueError(f"it begins at batch {first} of epoch {epoch} without a checkpoint")
        self._counts.begin_at(epoch, first)
        self._begun = True

    def _lay(self, batch: Batch, samples: int, share: Share | None = None) -> None:
        inputs, targets = batch
        each = self._case.tokens(inputs, targets) if share else None
        self._shelf.wait_for_room()
        self._counts.lay(samples)
        self._shelf.lay(batch, (samples, share.total(each) if share and each is not None else None))


def main() -> NoReturn:
    """Feed one rank, to its end."""
    end_with(int(os.environ[AGENT]))
    keep_freed()
    faulthandler.enable()
    faulthandler.register(signal.SIGUSR1, all_threads=True)
    torch_extensions.hold_back()
    spec, number = TrainingSpec.load(Path(sys.argv[1])), int(sys.argv[2])
    rank, counts = socket.socket(fileno=int(sys.argv[3])), Counts(int(sys.argv[4]))
    rank.set_inheritable(False)
    requests = socket.socket(fileno=int(sys.argv[5]))
    requests.set_inheritable(False)
    counts.begin()
    try:
        feeder = _made(spec, number, rank, counts, requests)
    except Exception as error:  # noqa: BLE001 (a case's code may raise anything; its rank says it)
        tell(rank, error)
        counts.end()
        leave(0)
    threading.Thread(target=_listen, args=(feeder,), daemon=True).start()
    for work in (feeder.feed, threading.Event().wait):  # the thread that listens ends this process
        try:
            work()
        except Exception as error:  # noqa: BLE001 (of a worker that is killed torch tells at any time)
            tell(rank, error)
    leave(0)


def _made(spec: TrainingSpec, number: int, rank: socket.socket, counts: Counts, requests: socket.socket) -> Feeder:
    from proofmark.training.feeding.loading import Planned, ahead

    config = EffectiveConfig.from_dict(spec.config)
    log_from(config.host.log_level)
    case = getattr(importlib.import_module(spec.case[0]), spec.case[1])()
    validation = partial(case.build_dataset, config, "validation")
    largest, counted = config.eval_batch_size, counts.evaluate  # its page is that process's too
    fork_server(requests, validation, config.num_workers, largest, "eval_batch_size", counted=counted)
    plan = Planned.of(case, config, number, spec.nnodes * spec.nproc, spec.seed)
    return Feeder(case, plan, ahead(config), rank, counts, spec.resume_from is not None)


def _listen(feeder: Feeder) -> NoReturn:
    """To the rank's end, which is this process's."""
    code = 1
    try:
        feeder.listen(sys.stdin.fileno())
        code = 0
    except Exception:  # noqa: BLE001 (whatever a rank has said)
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    main()
