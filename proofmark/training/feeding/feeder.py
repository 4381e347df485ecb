"""A rank's feeder, a process that `proofmark.training.feeding.once` has forked.

It loads the rank's share of the plan, lays batches into shared memory ahead of time, and counts what the rank takes. It
imports no vendor's code, and hears nothing of its rank but from where it trains, and that it takes a batch; what lies
in shared memory it never reads. It ends with its rank, or when its standard input closes. What the rank is evaluated
on, another process loads.
"""

from __future__ import annotations

import os
import queue
import select
import socket
import sys
import threading
import traceback
from typing import TYPE_CHECKING, NoReturn

from proofmark.process.lifetime import leave
from proofmark.rules.config import EffectiveConfig
from proofmark.training.feeding import words
from proofmark.training.feeding.counts import Counts
from proofmark.training.feeding.on_request import tell
from proofmark.training.feeding.shelf import Shelf
from proofmark.training.spec import TrainingSpec

if TYPE_CHECKING:
    from collections.abc import Callable

    from proofmark.case import Batch
    from proofmark.training.case import TrainingCase, TrainingData
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
        if first > len(self._plan.order):  # where it has come to in epochs, the rank has from its checkpoint
            raise ValueError(f"it begins at batch {first} of an epoch of {len(self._plan.order)}")
        self._counts.begin_at(epoch, first)
        self._begun = True

    def _lay(self, batch: Batch, samples: int, share: Share | None = None) -> None:
        inputs, targets = batch
        each = self._case.tokens(inputs, targets) if share else None
        self._shelf.wait_for_room()
        self._counts.lay(samples)
        self._shelf.lay(batch, (samples, share.total(each) if share and each is not None else None))


def feed(
    spec: TrainingSpec,
    number: int,
    loaded: Callable[[], tuple[TrainingCase, TrainingData]],
    rank: socket.socket,
    counts: Counts,
) -> NoReturn:
    """Feed one rank, to its end, which is this process's.

    Args:
        spec: what is trained.
        number: the rank's.
        loaded: gives the case, and what it is trained on, or raises why there is none.
        rank: to speak with it.
        counts: what is handed out.
    """
    from proofmark.training.feeding.loading import Planned, ahead

    try:
        config, (case, data) = EffectiveConfig.from_dict(spec.config), loaded()
        plan = Planned.of(case, config, number, spec.nnodes * spec.nproc, spec.seed, data=data)
        feeder = Feeder(case, plan, ahead(config), rank, counts, spec.resume_from is not None)
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
