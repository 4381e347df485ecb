"""A rank's data loaded by a process that it forks before it is closed in, and before any code of a vendor's runs in it:
the worker processes of a loader speak to it over sockets in files and shared memory, which a rank behind its wall has
not."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from proofmark.process.lifetime import end_with
from proofmark.training.feeding.on_request import OnRequest, tell

if TYPE_CHECKING:
    from proofmark.training.case import TrainingData


def fork_loaders(
    data: Sequence[Callable[[], TrainingData]], workers: int, ahead: int, setting: str
) -> list[socket.socket]:
    """Fork it; the ends by which to ask for batches of each.

    This process has no threads yet. The other one ends when it does.

    Args:
        data: what makes it, there.
        workers: processes that load each.
        ahead: batches that lie ready.
        setting: what makes batches smaller.

    Raises:
        OSError: there can be no more processes, or no more descriptors.
    """
    pairs = [socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET) for _ in data]
    parent = os.getpid()
    if os.fork():
        for own, _ in pairs:
            own.close()
        return [rank for _, rank in pairs]
    try:
        end_with(parent)
        for _, rank in pairs:
            rank.close()
        _serve([own for own, _ in pairs], data, workers, ahead, setting)
    finally:
        os._exit(0)


def _serve(
    ends: Sequence[socket.socket],
    data: Sequence[Callable[[], TrainingData]],
    workers: int,
    ahead: int,
    setting: str,
) -> None:
    """Load until the rank is gone."""
    from proofmark.training.ranks.loading import RankLoader

    try:  # all of them before there is a thread: their workers are forked here
        loaders = [RankLoader(make(), workers, ahead=ahead) for make in data]
    except Exception as error:  # noqa: BLE001 (a case's code may raise anything)
        for end in ends:
            tell(end, error)
        return
    served = [OnRequest(loader, ahead, end, setting) for loader, end in zip(loaders, ends, strict=True)]
    threads = [threading.Thread(target=each.feed_or_tell) for each in served]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
