"""What can wait yields the cores to others, and leaves the thread that waits for it as it is."""

from __future__ import annotations

import multiprocessing.context
import os
import sys
import threading
from types import ModuleType

import pytest

from proofmark.process.threads import COMPILE_THREADS, LATER, compile_within, in_the_background, threads_of_quota
from proofmark.process.warm.main import THREADS


def niceness() -> int:
    return os.getpriority(os.PRIO_PROCESS, threading.get_native_id())


@pytest.mark.skipif(sys.platform != "linux", reason="threads have no priority of their own")
def test_what_is_done_in_the_background_yields_and_this_thread_does_not() -> None:
    before = niceness()
    assert in_the_background(niceness) == min(19, before + LATER) and niceness() == before


def test_what_fails_in_the_background_fails_here() -> None:
    with pytest.raises(ZeroDivisionError):
        in_the_background(lambda: 1 / 0)


@pytest.mark.parametrize(
    "quota, given, expected", [(3, None, {THREADS: "3"}), (3, "6", {}), (8, None, {}), (16, None, {}), (None, None, {})]
)
def test_no_more_threads_compute_than_a_quota_has_the_time_of(
    monkeypatch: pytest.MonkeyPatch, quota: int | None, given: str | None, expected: dict[str, str]
) -> None:
    """Unless the user says so."""
    monkeypatch.setattr("proofmark.process.threads.quota_of_processors", lambda: quota)
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: set(range(8)))
    monkeypatch.delenv(THREADS, raising=False)
    if given is not None:
        monkeypatch.setenv(THREADS, given)
    assert threads_of_quota() == expected


@pytest.mark.parametrize("device, shared, threads", [("acme:0", False, 1), ("acme", True, 8), ("cpu", False, 8)])
def test_a_devices_kernels_are_compiled_in_one_process_where_others_cannot_help(
    monkeypatch: pytest.MonkeyPatch, device: str, shared: bool, threads: int
) -> None:
    def refused(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    if not shared:
        monkeypatch.setattr(multiprocessing.context.BaseContext, "Lock", refused)
    read = ModuleType("torch._inductor.config")
    monkeypatch.setattr(read, "compile_threads", 8, raising=False)
    monkeypatch.setitem(sys.modules, read.__name__, read)
    monkeypatch.setenv(COMPILE_THREADS, "8")
    compile_within(device)
    assert (vars(read)["compile_threads"], os.environ[COMPILE_THREADS]) == (threads, str(threads))
