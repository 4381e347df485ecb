"""The batches of a timed round: at places that nobody can know, some give way to inputs that nobody has seen.

A fresh batch is spliced from two of the data (`probes.splice`), so it lies off the data's manifold. Its answers are
held to the reference, as are random rows of others that are only watched. What of the data gave way is answered after
the round, and scored: every sample is.

Each place is drawn by itself, so that no other tells of it: what comes after a fresh batch is as likely fresh as any.
The referee's work for one lies before the call that comes before it, and after its own, and so before fresh ones as
often as before others: none is slower for the referee's sake.

Where batches lie in an engine's sight before they are asked about, fresh ones don't: one that works ahead of the clock
has none of them ready, and is slower when they come.
"""

from __future__ import annotations

import random
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from proofmark.measuring.probes import splice

if TYPE_CHECKING:
    import torch

    from proofmark.case import Batch, IdentifiedDataset, Loader

SHARE, SHARE_OF_FEW, FEW, MOST = 8, 3, 24, 128
"""One batch in eight is fresh, 128 of a round at most. Of few batches it is one in three, up to 24: of
fewer nobody could tell an engine that answers each fifth at once from chance."""

Place = Callable[["list[torch.Tensor]"], "list[torch.Tensor]"]

ENOUGH = 3
"""Batches of a round from which on some are fresh."""

HELD = 4 << 30
"""Bytes of the data's own batches that may wait for the end of a round, and as many of answers."""

ROWS = 2
"""Rows of a batch whose answers are held against the reference."""


@dataclass
class Noted:
    """A batch that is remembered.

    Attributes:
        position: which of the round's it is.
        rows: the inputs of some rows, as they were before the call.
        chosen: which rows those are.
        held: the data's own inputs and targets, where others took their place; None where it is only watched.
        answers: of those rows, once they are there; none where there was no room for them.
    """

    position: int
    rows: list[list[torch.Tensor]]
    chosen: list[int]
    held: tuple[list[torch.Tensor], torch.Tensor] | None = None
    answers: list[list[torch.Tensor]] = field(default_factory=list)


class Mixed:
    """A loader for one round."""

    def __init__(
        self,
        loader: Loader,
        full: Sequence[int],
        first: list[torch.Tensor],
        place: Place | None = None,
        rest: int = 0,
        other: list[torch.Tensor] | None = None,
    ) -> None:
        """`full` are the places of the round's full batches; `first` is the inputs of one, `other` those of another: of
        these two a fresh one is made with which the round begins. `place`, if there is one, puts batches ahead where
        the engine sees them; so many samples are a `rest`, to be answered by themselves."""
        self._place, self.rest_size = place, rest
        self.rest: tuple[list[torch.Tensor], torch.Tensor] | None = None
        self._loader, self._size, self._chance = loader, len(first[0]), random.SystemRandom()
        batches, each = len(full), sum(tensor.nbytes for tensor in first)
        wanted = max(batches // SHARE, min(batches // SHARE_OF_FEW, FEW))
        held = max(1, HELD // max(1, each))
        self._fresh = self._drawn(list(full), min(max(1, wanted), MOST, held, batches // 2), held)
        others = [place for place in full if place not in self._fresh]
        count = len(self._fresh)
        self._watched = set(self._chance.sample(others, min(count, len(others))))
        self._noted: dict[int, Noted] = {}
        self._last = deque([first, other or first], maxlen=2)  # the next one may be `first` itself
        self._pinned = [tensor.is_pinned() for tensor in first]
        self._made = self._new(0) if 0 in self._fresh else None
        self._position = -1
        self._answered = -1
        self._with_answers: list[Noted] = []
        self._asked_for_room = 0
        self.spent_ns = 0

    def _drawn(self, places: list[int], count: int, held: int) -> set[int]:
        """About so many of them, each by itself; drawn again where that leaves none of a kind, or takes too many."""
        if not count:
            return set()
        most = max(1, min(2 * count, held, len(places) - 1))
        while True:
            drawn = {place for place in places if self._chance.random() < count / len(places)}
            if 0 < len(drawn) <= most:
                return drawn

    @property
    def dataset(self) -> IdentifiedDataset:
        """The data."""
        return self._loader.dataset

    def __len__(self) -> int:
        return len(self._loader)

    def __iter__(self) -> Iterator[Batch]:
        """One pass; the next one goes on in the round."""
        for inputs, targets in self._loader:
            self._position += 1
            begun = time.perf_counter_ns()
            given = self._given(inputs)
            self._make_next(inputs)
            self.spent_ns += time.perf_counter_ns() - begun
            yield (self._place(given) if self._place is not None and given is inputs else given), targets
            if not self._position and self.rest_size:
                begun = time.perf_counter_ns()
                self.rest = [tensor[: self.rest_size].clone() for tensor in inputs], targets[: self.rest_size].clone()
                self.spent_ns += time.perf_counter_ns() - begun
            if given is not inputs:
                begun = time.perf_counter_ns()
                # copies: a loader's own may lie in shared memory, or be filled with its next batch
                self._noted[self._position].held = [tensor.clone() for tensor in inputs], targets.clone()
                self.spent_ns += time.perf_counter_ns() - begun

    def _given(self, inputs: list[torch.Tensor]) -> list[torch.Tensor]:
        """The batch, or a fresh one in its place."""
        made, self._made = self._made, None
        if len(inputs[0]) != self._size:
            self._noted.pop(self._position, None)
            return inputs
        if self._position in self._watched:
            self._note(self._position, inputs)
        return made or inputs

    def _make_next(self, inputs: list[torch.Tensor]) -> None:
        """The batch after this one, of this one and the one before, if it is to be fresh."""
        if len(inputs[0]) == self._size:
            self._last.append(inputs)
        if self._position + 1 in self._fresh:
            self._made = self._new(self._position + 1)

    def _new(self, position: int) -> list[torch.Tensor]:
        """A fresh batch for that place, of the last two of the data."""
        right, left = self._last
        shift = self._chance.randint(1, max(1, self._size - 1))
        made = splice(left, right, self._chance.uniform(0.25, 0.75), shift)
        made = [new.pin_memory() if pinned else new for new, pinned in zip(made, self._pinned, strict=True)]
        self._note(position, made)
        return made

    def _note(self, position: int, given: list[torch.Tensor]) -> None:
        """Keep rows of what is given there."""
        chosen = self._chance.sample(range(self._size), min(ROWS, self._size))
        rows = [[tensor[row : row + 1].clone() for tensor in given] for row in chosen]
        self._noted[position] = Noted(position, rows, chosen)

    def takes(self, outputs: list[torch.Tensor]) -> bool:
        """Keep what was answered to the next batch, if it is remembered; whether that was a fresh one."""
        self._answered += 1
        noted = self._noted.get(self._answered)
        if noted is None:
            return False
        if self._has_room(noted, ROWS * sum(output[:1].nbytes for output in outputs)):
            noted.answers = [[output[row : row + 1].clone() for output in outputs] for row in noted.chosen]
        return self._answered in self._fresh

    def _has_room(self, noted: Noted, size: int) -> bool:
        """Whether answers of so many bytes are kept: where there are more than there is room for, those of each batch
        are as likely to be (a reservoir sample), and others give way."""
        most = max(1, HELD // max(1, size))
        self._asked_for_room += 1
        if len(self._with_answers) < most:
            self._with_answers.append(noted)
            return True
        if (place := self._chance.randrange(self._asked_for_room)) >= most:
            return False
        self._with_answers[place].answers = []
        self._with_answers[place] = noted
        return True

    @property
    def noted(self) -> list[Noted]:
        """All that are remembered, in order."""
        return list(self._noted.values())
