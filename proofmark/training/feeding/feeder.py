"""A rank's feeder, a process that `proofmark.training.feeding.once` has forked.

It loads the rank's share of the plan, lays batches into shared memory ahead of time, and counts what the rank takes. It
imports no vendor's code, and hears nothing of its rank but from where it trains, and that it takes a batch; what lies
in shared memory it never reads. It ends with its rank, or when its standard input closes. What the rank is evaluated
on, another process loads.

What the rank says wakes nobody until it rings: beside small steps, a processor that is given to the feeder at each of
them is missed.
"""

from __future__ import annotations

import array
import os
import select
import socket
import struct
import sys
import threading
import traceback
import weakref
from collections import deque
from typing import TYPE_CHECKING, NoReturn

from proofmark.errors import StepError
from proofmark.process.lifetime import leave
from proofmark.rules.config import EffectiveConfig
from proofmark.training.feeding import words
from proofmark.training.feeding.counts import Counts
from proofmark.training.feeding.on_request import tell
from proofmark.training.feeding.shelf import Shelf
from proofmark.training.spec import TrainingSpec

if TYPE_CHECKING:
    from collections.abc import Callable

    import torch

    from proofmark.case import Batch
    from proofmark.training.case import TrainingCase, TrainingData
    from proofmark.training.feeding.batches import Share
    from proofmark.training.feeding.loading import Planned


SMALL = 8
"""Small batches that lie ready at most."""


class NoWord(Exception):
    """The rank said what is no word."""


class Feeder:
    """Feeds one rank. This thread loads, lays and hears of what was taken; another one waits for the rank's end, which
    must not wait for a slow load.

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
        self._shelf = Shelf[tuple[int, int | None]](rank, ahead, setting="train_batch_size", small=SMALL)
        self._orders, self._begun = deque[bytes](), False
        self._hearing, self._wrong = threading.Lock(), ""
        self._bell = os.eventfd(0, os.EFD_CLOEXEC)
        weakref.finalize(self, os.close, self._bell)

    def feed(self) -> None:
        """Hand out the plan's batches, from where the rank begins, to the plan's end.

        Raises:
            StepError: a sample can't be read, or there is no memory.
            NoWord: the rank said what is none.
            OSError: the rank is gone.
        """
        hello, bell = words.hello(self._plan.identity, self._plan.order.items), array.array("i", [self._bell])
        self._rank.sendmsg([hello], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, bell)])
        while (order := self._order())[0] == words.SAMPLE:
            self._lay(self._plan.sample(), 0)
        _, epoch, first = words.BEGIN_FORM.unpack(order)
        for share, batch in self._plan.shares(epoch, first):
            self._lay(batch, share.samples, share)

    def listen(self, parent: int) -> None:
        """Wait until the rank is gone, or the descriptor `parent` closes, and hear all that it said.

        Raises:
            NoWord: it said what is none.
        """
        looked = select.poll()
        looked.register(self._rank, 0)  # its end alone: what it says wakes nobody
        looked.register(parent, select.POLLIN)
        looked.poll()
        self._hear_all()
        self._counts.end()

    def _order(self) -> bytes:
        """What the rank wants, once it has said so."""
        while not self._orders:
            self._wait()
        return self._orders.popleft()

    def _wait(self) -> None:
        """Until the rank rings; what it said is heard."""
        os.eventfd_read(self._bell)
        self._hear_all()

    def _hear_all(self) -> None:
        """Hear what the rank has said since. After what is no word nothing counts any more."""
        with self._hearing:
            try:
                while not self._wrong and (message := self._said()):
                    self._hear(message)
            except (ValueError, struct.error) as error:
                self._wrong = str(error)
            if self._wrong:
                raise NoWord(self._wrong)

    def _said(self) -> bytes:
        """The rank's next word; empty where it has said no more yet, or is gone.

        An empty word that is heard once it is gone reads as its end: what it took afterwards counts for nothing.
        """
        for _ in range(2):
            try:
                if message := self._rank.recv(words.LONGEST, socket.MSG_DONTWAIT):
                    return message
                break
            except ConnectionResetError:  # it left batches where they lie: that is told first, and once
                continue
            except BlockingIOError:
                return b""
        if not _is_gone(self._rank):  # it is there, and has said nothing, or that it says nothing more
            raise ValueError("it sent an unknown request")
        return b""

    def _hear(self, message: bytes) -> None:
        if message[0] != words.TAKEN:
            if self._begun or self._orders:
                raise ValueError("it asks for what it has asked for")
            if message[0] != words.SAMPLE:
                self._begin(message)
            self._orders.append(message)
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
        items = len(share.indices) if share else 1  # of a sample that is looked at too
        each = _checked_tokens(self._case.tokens(inputs, targets), items)
        while not self._shelf.has_room:
            self._wait()
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
        except NoWord:
            _give_up()
        except Exception as error:  # noqa: BLE001 (of a worker that is killed torch tells at any time)
            tell(rank, error)
    leave(0)


def _checked_tokens(each: object, samples: int) -> torch.Tensor | None:
    """What a case's `tokens` returned for so many samples.

    Raises:
        StepError: it can't be added up.
    """
    import torch

    if each is None or (isinstance(each, torch.Tensor) and each.shape == (samples,)):
        return each
    from proofmark.measuring.rehearsal import description

    raise StepError(
        f"tokens: returns {description(each)}; expected a tensor ({samples},), or None where there are none"
    )


def _listen(feeder: Feeder) -> NoReturn:
    """To the rank's end, which is this process's."""
    try:
        feeder.listen(sys.stdin.fileno())
    except Exception:  # noqa: BLE001 (whatever a rank has said)
        _give_up()
    os._exit(0)


def _give_up() -> NoReturn:
    """End this process for what is being handled: its rank's counts are worth nothing."""
    traceback.print_exc()
    sys.stderr.flush()
    os._exit(1)


def _is_gone(rank: socket.socket) -> bool:
    looked = select.poll()
    looked.register(rank, 0)
    return bool(looked.poll(0))
