"""What a process could do by being root, or by its limits: given up, for itself and all that it starts."""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource

PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS = 24, 38
CAPABILITIES_VERSION = 0x20080522
LAST_CAPABILITY = 63

TIMERS = 128
"""Of timer_create(2), and signals that wait: thousands would go off while their process is stopped, and interrupt
whoever computes then."""

LARGEST_FILE = 64 << 30
"""Bytes that a file may have."""


def give_up(largest_file: int = LARGEST_FILE) -> list[str]:
    """Gain nothing by exec, have no capability, raise no priority, leave no core; what could not be, with its reason.

    Args:
        largest_file: bytes that a file which it writes may have.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    failed = []
    try:
        gain_nothing_by_exec()
    except OSError as error:
        failed.append(f"no_new_privs: {error.strerror}")
    for capability in range(LAST_CAPABILITY + 1):
        libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)  # who may not has none to lose
    _raise_to(resource.RLIMIT_MEMLOCK)  # root's own is small, which its capability made up for: networks lock memory
    header = (ctypes.c_uint32 * 2)(CAPABILITIES_VERSION, 0)
    if libc.capset(header, (ctypes.c_uint32 * 6)()):
        failed.append(f"capabilities: {os.strerror(ctypes.get_errno())}")
    for limit, value in {
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_NICE: 0,
        resource.RLIMIT_RTPRIO: 0,
        resource.RLIMIT_SIGPENDING: TIMERS,
        resource.RLIMIT_FSIZE: largest_file,
    }.items():
        _lower(limit, value)
    return failed


def gain_nothing_by_exec() -> None:
    """No set-user-id program, sudo for one, gives this process or what it starts more than they have.

    Raises:
        OSError: the kernel can't.
    """
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def _raise_to(limit: int) -> None:
    """Have as much of it as this process may."""
    _, hard = resource.getrlimit(limit)
    for most in (resource.RLIM_INFINITY, hard):
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(limit, (most, most))
            return


def _lower(limit: int, value: int) -> None:
    hard = resource.getrlimit(limit)[1]
    value = value if hard == resource.RLIM_INFINITY else min(value, hard)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(limit, (value, value))
