"""What of the referee's own runs beside an engine leaves it the cores: in one thread, or with what others leave.

More threads, with nothing left to do, would spin on cores that an engine wants.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from proofmark.process.control_groups import quota_of_processors
from proofmark.process.warm.main import THREADS

T = TypeVar("T")

LATER = 10
"""By how much less urgent what can wait is than what others do: of ten turns it gets about one."""


COMPILE_THREADS = "TORCHINDUCTOR_COMPILE_THREADS"
"""In how many processes torch's inductor compiles a device's kernels; 1 is in none but its own."""


def yield_to_others() -> None:
    """This thread takes what others leave of the cores from now on, and so does what it starts. Where a thread has a
    priority of its own, which is on Linux."""
    if sys.platform == "linux":
        os.nice(LATER)


def in_the_background(call: Callable[[], T]) -> T:
    """Call in a thread that yields to others; return or raise what the call does. This thread keeps its priority, which
    only root could give back."""
    with ThreadPoolExecutor(1, initializer=yield_to_others) as pool:
        return pool.submit(call).result()


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """Within, torch operators of this thread use one core; afterwards as many as before."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def threads_of_quota() -> dict[str, str]:
    """The variable by which libraries compute with as many threads as a container's quota of processors has the time
    of. They count the cores: of more threads than it has the time of all wait for its next period.

    Empty where the quota has the time of all cores, or the user says how many threads there are.
    """
    quota = quota_of_processors()
    if THREADS in os.environ or quota is None or quota >= len(os.sched_getaffinity(0)):
        return {}
    return {THREADS: str(quota)}


def heed_environment() -> None:
    """Have torch compute with as many threads as the environment says, though it was imported before that said so.

    It starts them: a wall, where there is to be one, must be on by now.
    """
    named = os.environ.get(THREADS, "")
    torch = sys.modules.get("torch")
    if torch is not None and named.isdecimal() and int(named) not in (0, torch.get_num_threads()):
        torch.set_num_threads(int(named))


def compile_within(device: str) -> None:
    """Have torch's inductor compile for a device in this process, where no others could help: they share what lies in
    /dev/shm, and behind a wall that has none they end, and torch waits for them forever. A processor's kernels it
    compiles by threads.

    Args:
        device: as torch calls it.
    """
    if device.split(":")[0] == "cpu":
        return
    import multiprocessing  # which makes another name for what is run

    try:
        multiprocessing.get_context("fork").Lock()
    except OSError:
        os.environ[COMPILE_THREADS] = "1"
        if (config := sys.modules.get("torch._inductor.config")) is not None:  # it has read the variable already
            config.compile_threads = 1  # type: ignore[attr-defined]
