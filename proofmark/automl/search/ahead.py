"""Generating networks while others train: one at a time, in a thread of the driver's."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Protocol

from proofmark.automl.search.state import Trial


@dataclass(frozen=True)
class Made:
    """A network to try: how it was made of a finished trial's, None where it is a seed; as JSON."""

    parent: int | None
    operations: list[dict[str, Any]]
    graph: dict[str, Any]
    seconds: float = 0.0


class Networks(Protocol):
    """Where networks come from."""

    def seed(self, number: int) -> dict[str, Any]:
        """The network of a trial of the first round, as JSON."""

    def propose(self, finished: Sequence[Trial], taken: Sequence[dict[str, Any]], number: int) -> Made | None:
        """A child of one of the finished trials; None where there is no other.

        Args:
            taken: networks of other trials.
            number: of the trial that it is for: what is drawn follows from it.
        """

    def settled(self, graph: dict[str, Any], hyperparameters: dict[str, Any]) -> dict[str, Any]:
        """A network with hyper-parameters in it."""

    def per_image(self, graph: dict[str, Any]) -> dict[str, int]:
        """FLOPs and parameters, as `PerImage` has them."""


class Ahead:
    """One network in the making, or made and not yet taken.

    Attributes:
        exhausted: whether no more network could be made.
    """

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="generation")
        self._clock = clock
        self.exhausted = False
        self._making: Future[Made | None] | None = None

    @property
    def idle(self) -> bool:
        """Whether none is in the making or waits to be taken."""
        return self._making is None

    def begin(self, make: Callable[[], Made | None]) -> None:
        """Make one."""
        assert self._making is None
        self._making = self._pool.submit(self._timed, make)

    def take(self) -> Made | None:
        """What was made, None if nothing is ready.

        Raises:
            Exception: whatever making it raised.
        """
        if self._making is None or not self._making.done():
            return None
        making, self._making = self._making, None
        return making.result()

    def close(self) -> None:
        """Wait for what is in the making, and let it go."""
        self._pool.shutdown(cancel_futures=True)

    def _timed(self, make: Callable[[], Made | None]) -> Made | None:
        begun = self._clock()
        made = make()
        if made is None:
            self.exhausted = True
            return None
        return Made(made.parent, made.operations, made.graph, self._clock() - begun)
