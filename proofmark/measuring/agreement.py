"""The answers of an honesty round: every call's are looked at, a while after it, before it is dropped."""

from __future__ import annotations

import math
import random
from collections import deque
from collections.abc import Callable, Sequence
from itertools import cycle, islice
from typing import TYPE_CHECKING

from proofmark.measuring.names import Names, Shortfall
from proofmark.measuring.probes import Call
from proofmark.process.threads import one_thread

if TYPE_CHECKING:
    import torch

Ask = Callable[["list[torch.Tensor]"], "list[torch.Tensor]"]
"""Who says what the answers should be."""

KEPT = 5
"""Earlier calls whose answers are held, to be looked at when time has passed."""

ROWS, BUDGET = 8, 192
"""Rows of a call, chosen by chance when it is over, that are answered by another too; how many in all, before it is one
row of each call."""

AT_ONCE = 16
"""Rows that are compared at once: enough to tell how far samples lie apart."""


class Answers:
    """What became of each call's answers and inputs, and some rows of them."""

    def __init__(self, most: int | None = None) -> None:
        """`most` rows are kept, of all that are taken each as likely (a reservoir sample); None for all."""
        self._most = most
        self.changed = self.written = 0
        self._held: deque[Call] = deque()
        self.taken = 0
        self._inputs: list[list[torch.Tensor]] = []
        self._answers: list[list[torch.Tensor]] = []
        self._chance = random.SystemRandom()

    def hold(self, calls: Sequence[Call]) -> None:
        """Take calls that are over, and look at those that are old enough."""
        self._held.extend(calls)
        self._look(KEPT)

    def finish(self) -> None:
        """Look at all that are left."""
        self._look(0)

    def _look(self, kept: int) -> None:
        with one_thread():
            while len(self._held) > kept:
                call = self._held.popleft()
                self.changed += _differing(call.outputs, call.answer)
                self.written += _differing(call.inputs, call.before)
                self._take_rows(call)

    def _take_rows(self, call: Call) -> None:
        count = len(call.before[0])
        wanted = ROWS if self.taken < BUDGET else 1
        rows = self._chance.sample(range(count), min(wanted, count))
        for row in rows:
            inputs, answer = ([tensor[row : row + 1].clone() for tensor in each] for each in (call.before, call.answer))
            self.take_row(inputs, answer)

    def take_row(self, inputs: list[torch.Tensor], answer: list[torch.Tensor]) -> None:
        """Take a row as it was asked, and what was answered to it."""
        self.taken += 1
        if self._most is None or len(self._inputs) < self._most:
            self._inputs.append(inputs)
            self._answers.append(answer)
        elif (place := self._chance.randrange(self.taken)) < self._most:
            self._inputs[place], self._answers[place] = inputs, answer

    def worst(
        self,
        ask: Ask,
        batch: int | None,
        company: Sequence[list[torch.Tensor]] = (),
        shortfall: Shortfall | None = None,
    ) -> float:
        """The largest distance of any row's answer from what another answers to the same inputs.

        Args:
            ask: takes inputs, returns outputs on the host.
            batch: rows that it must be asked at once; None if any number will do.
            company: full batches of other inputs, by which is told how far samples lie apart where there are fewer
                rows than AT_ONCE.
            shortfall: says of what an answer names how near it was to being chosen; None if nobody can.
        """
        import torch

        order = self._chance.sample(range(len(self._inputs)), len(self._inputs))
        size, worst = batch or AT_ONCE, 0.0
        others = [ask(inputs) for inputs in company] if len(order) < AT_ONCE else []
        among = [torch.cat(column) for column in zip(*others, strict=True)]
        names = Names(shortfall)
        for start in range(0, len(order), size):
            rows = list(islice(cycle(order), start, start + size))
            inputs = [torch.cat(column) for column in zip(*(self._inputs[row] for row in rows), strict=True)]
            wanted = ask(inputs)
            answer = _of_form([self._answers[row] for row in rows], wanted)
            if answer is None:
                return float("inf")
            worst = max(worst, farthest(answer, wanted, among or wanted))
            names.add(inputs, answer, wanted, among or wanted)
        return max(worst, names.distance())


def _of_form(answers: list[list[torch.Tensor]], wanted: list[torch.Tensor]) -> list[torch.Tensor] | None:
    """All rows together; None where one has another form than is wanted."""
    import torch

    forms = [(tensor.shape[1:], _kind(tensor)) for tensor in wanted]
    if any([(tensor.shape[1:], _kind(tensor)) for tensor in row] != forms for row in answers):
        return None
    return [torch.cat(column) for column in zip(*answers, strict=True)]


def _kind(tensor: torch.Tensor) -> tuple[bool, bool]:
    return tensor.is_floating_point(), tensor.is_complex()


def farthest(answer: list[torch.Tensor], wanted: list[torch.Tensor], among: list[torch.Tensor]) -> float:
    """The largest distance over outputs that are no names."""
    each = zip(answer, wanted, among, strict=True)
    return max((distance(*three) for three in each if three[1].is_floating_point()), default=0.0)


def distance(answer: torch.Tensor, wanted: torch.Tensor, among: torch.Tensor | None = None) -> float:
    """How far the worst row of `answer` is from `wanted`, in units of how far rows of `among` are from their mean.

    Those are `wanted` if none are given. Where they are all alike, in units of their length. Infinite for another shape
    or for what is not a number. Equal infinities, as of a place that is masked, are no distance, and tell of none.
    """
    import torch

    if answer.shape != wanted.shape or not answer.is_floating_point():
        return float("inf")
    got, want = (tensor.to(torch.float64).reshape(len(tensor), -1) for tensor in (answer, wanted))
    rows = want if among is None else among.to(torch.float64).reshape(len(among), -1)
    if rows.isinf().any():
        known = rows.masked_fill(rows.isinf(), math.nan)
        rows = torch.where(rows.isinf(), known.nanmean(0).nan_to_num(), rows)
    spread = float((rows - rows.mean(0)).norm(dim=1).mean()) or float(rows.norm(dim=1).mean())
    worst = float(torch.where(got == want, 0.0, got - want).norm(dim=1).max())
    if worst == 0:
        return 0.0
    return worst / spread if spread > 0 and worst == worst else float("inf")


def _differing(now: list[torch.Tensor], then: list[torch.Tensor]) -> int:
    """How many tensors, on whatever device, are no longer what they were on the host."""
    import torch

    pairs = zip(now, then, strict=True)
    return sum(not _same(torch.Tensor.to(torch.Tensor.detach(one), "cpu"), other) for one, other in pairs)


def _same(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Bit for bit, so that NaN equals itself."""
    import torch

    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    return torch.equal(one.contiguous().reshape(-1).view(torch.uint8), other.contiguous().reshape(-1).view(torch.uint8))
