"""Generating networks while others train: one after another, in a thread of the driver that yields to others."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, Protocol

from proofmark.automl.search.state import Trial
from proofmark.process.threads import yield_to_others

SHARING = 64
"""Devices for each further network that is made ahead: while one trial is begun, others wait for theirs."""


@dataclass(frozen=True)
class Made:
    """A generated network, as JSON: the finished trial that it was derived from, None for a seed, and how."""

    parent: int | None
    operations: list[dict[str, Any]]
    graph: dict[str, Any]
    seconds: float = 0.0


class Networks(Protocol):
    """Where networks come from."""

    def seed(self, number: int) -> dict[str, Any]:
        """The network of a trial of the first round, as JSON."""

    def propose(self, finished: Sequence[Trial], taken: Sequence[Trial], number: int) -> Made | None:
        """A child of one of the finished trials; None where there is no other.

        Args:
            taken: the other trials, that run or have failed.
            number: of the trial that it is for: what is drawn follows from it.
        """

    def settled(self, graph: dict[str, Any], hyperparameters: dict[str, Any]) -> dict[str, Any] | None:
        """A network with hyper-parameters in it; None where those make it larger than one may be."""

    def per_image(self, graph: dict[str, Any]) -> dict[str, int]:
        """FLOPs and parameters, as `PerImage` has them."""


class Ahead:
    """Networks that are being generated, or are generated and not yet taken.

    Args:
        most: of them. What is made ahead knows nothing of trials that end until it is taken.
    """

    def __init__(self, most: int) -> None:
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="generation", initializer=yield_to_others)
        self._most = most
        self._childless: int | None = None
        self._making = deque[tuple[int, Future[Made | None]]]()

    def childless(self, parents: int) -> bool:
        """Whether generation has found no further network from this many finished trials."""
        return parents == self._childless

    def exhausted(self, parents: int) -> bool:
        """Whether it is `childless`, and no earlier network is left to be taken."""
        return self.childless(parents) and not self._making

    @property
    def idle(self) -> bool:
        """Whether another network may be begun."""
        return len(self._making) < self._most

    def begin(self, make: Callable[[], Made | None], parents: int) -> None:
        """Begin to generate a network from this many finished trials."""
        assert self.idle
        self._making.append((parents, self._pool.submit(self._timed, make)))

    def take(self) -> Made | None:
        """The network that was begun first; None if it is not ready, or if there was none to be found.

        Raises:
            Exception: whatever making it raised.
        """
        if not self._making or not self._making[0][1].done():
            return None
        parents, future = self._making.popleft()
        made = future.result()
        if made is None:
            self._childless = parents
        return made

    def close(self) -> None:
        """Wait for the network that is being generated, and drop all."""
        self._pool.shutdown(cancel_futures=True)

    def _timed(self, make: Callable[[], Made | None]) -> Made | None:
        begun = time.perf_counter()
        made = make()
        return made and replace(made, seconds=time.perf_counter() - begun)
