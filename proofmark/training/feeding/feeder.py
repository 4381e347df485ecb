"""A rank's feeder: `python -m proofmark.training.feeding.feeder SPEC RANK WORDS_FD COUNTS_FD`.

It loads the rank's share of the plan, lays batches into shared memory ahead of time, and counts what the rank takes. It
imports no vendor's code, and hears nothing of its rank but from where it trains, and that it takes a batch; what lies
in shared memory it never reads. It ends with its rank, or when its standard input closes.
"""

from __future__ import annotations

import array
import contextlib
import faulthandler
import importlib
import json
import os
import queue
import select
import signal
import socket
import sys
import threading
import traceback
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from proofmark.errors import ProofmarkError, StepError
from proofmark.process.layout import read_layout, written
from proofmark.process.lifetime import end_with, leave
from proofmark.process.log_level import log_from
from proofmark.process.memory import keep_freed
from proofmark.process.slots import Pool, Slot
from proofmark.rules.config import EffectiveConfig
from proofmark.training.feeding import words
from proofmark.training.feeding.counts import Counts
from proofmark.training.spec import AGENT, TrainingSpec
from proofmark.vendor import torch_extensions

if TYPE_CHECKING:
    from proofmark.case import Batch
    from proofmark.training.case import TrainingCase
    from proofmark.training.ranks.batches import Share
    from proofmark.training.ranks.loading import Planned


HELD = 64
"""Batches that a rank may keep beside those of two steps, whose garbage is collected late. Each is a file open on both
sides, of which there are a thousand or so."""


class Feeder:
    """Of one rank. This thread loads and lays; another one listens, so that the counts never wait for a slow load.

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
        resumed: bool = False,
    ) -> None:
        self._case, self._plan, self._ahead, self._rank, self._counts = case, plan, ahead, rank, counts
        self._resumed = resumed
        self._pool = Pool(self._announce, setting="train_batch_size")
        self._orders, self._begun = queue.SimpleQueue[bytes](), False
        self._moved = threading.Condition()
        self._waiting = deque[tuple[int, int | None]]()
        self._out: dict[int, Slot] = {}

    def feed(self) -> None:
        """Hand out the plan's batches, from where the rank begins, to the plan's end.

        Raises:
            StepError: a sample can't be read, or there is no memory.
            OSError: the rank is gone.
        """
        identity = self._plan.identity.model_dump(mode="json")
        self._rank.send(bytes([words.HELLO]) + json.dumps([identity, self._plan.order.items]).encode())
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
        looked = select.poll()
        for source in (self._rank.fileno(), parent):
            looked.register(source, select.POLLIN)
        while self._rank.fileno() in dict(looked.poll()) and (message := self._said()):
            self._hear(message)
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
        with self._moved:
            if not self._waiting:
                raise ValueError("it takes a batch that is not there")
            for (number,) in words.NUMBER.iter_unpack(message[words.TAKEN_FORM.size :]):
                if number not in self._out:
                    raise ValueError("it gives back a slot that it does not have")
                self._pool.give_back(self._out.pop(number))
            self._counts.take(*self._waiting.popleft())
            self._moved.notify()

    def _begin(self, message: bytes) -> None:
        _, epoch, first = words.BEGIN_FORM.unpack(message)
        if (epoch or first) and not self._resumed:
            raise ValueError(f"it begins at batch {first} of epoch {epoch}, and there is no checkpoint")
        self._counts.begin_at(epoch, first)
        self._begun = True

    def _lay(self, batch: Batch, samples: int, share: Share | None = None) -> None:
        inputs, targets = batch
        each = self._case.tokens(inputs, targets) if share else None
        tensors, last = words.channels_first([*inputs, targets])
        text = written(tensors)
        layout = read_layout(text)
        with self._moved:
            self._moved.wait_for(lambda: len(self._waiting) < self._ahead)
            held = len(self._out) - len(self._waiting)
        if held >= self._ahead + HELD:
            raise StepError(f"its rank holds {held} batches that it has not given back; keep none of earlier steps")
        slot = self._pool.take(layout.size) or self._pool.make(layout.size)
        slot.lay(layout, tensors)
        with self._moved:
            self._out[slot.number] = slot
            self._waiting.append((samples, share.total(each) if share and each is not None else None))
        self._counts.lay(samples)
        self._rank.send(words.LAID_FORM.pack(words.LAID, slot.number, last) + text)

    def _announce(self, slot: Slot, descriptor: int) -> None:
        form = words.SLOT_FORM.pack(words.SLOT, slot.number, slot.size)
        self._rank.sendmsg([form], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [descriptor]))])


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
    counts.begin()
    try:
        feeder = _made(spec, number, rank, counts)
    except Exception as error:  # noqa: BLE001 (a case's code may raise anything; its rank says it)
        _tell(rank, error)
        counts.end()
        leave(0)
    threading.Thread(target=_listen, args=(feeder,), daemon=True).start()
    try:
        feeder.feed()
    except Exception as error:  # noqa: BLE001
        _tell(rank, error)
    threading.Event().wait()  # the other thread ends this process
    leave(0)


def _made(spec: TrainingSpec, number: int, rank: socket.socket, counts: Counts) -> Feeder:
    from proofmark.training.ranks.loading import Planned, ahead

    config = EffectiveConfig.from_dict(spec.config)
    log_from(config.host.log_level)
    case = getattr(importlib.import_module(spec.case[0]), spec.case[1])()
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


def _tell(rank: socket.socket, error: Exception) -> None:
    """Say why there is no more."""
    said = next(iter(str(error).strip().splitlines()), "")
    if not isinstance(error, ProofmarkError | ConnectionError):
        traceback.print_exc()
        said = f"{type(error).__name__}: {said}"
    with contextlib.suppress(OSError):
        rank.send(bytes([words.FAILED]) + said.encode()[: words.LONGEST - 1])


if __name__ == "__main__":
    main()
