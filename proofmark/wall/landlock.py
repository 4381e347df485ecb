"""Landlock by its published system calls (numbers are the same on every architecture): landlock(7).

All that a ruleset handles is refused unless a rule allows it. A rule is for a file, or a directory and all below it.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import stat
from collections.abc import Iterator
from enum import IntFlag
from pathlib import Path

CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446
VERSION = 1 << 0
"""The flag by which CREATE_RULESET answers with its version."""

PATH_BENEATH, NET_PORT = 1, 2
PR_SET_NO_NEW_PRIVS = 38


class Access(IntFlag):
    """What may be done with files, as bits of Landlock's rules."""

    EXECUTE = 1 << 0
    WRITE_FILE = 1 << 1
    READ_FILE = 1 << 2
    READ_DIR = 1 << 3
    REMOVE_DIR = 1 << 4
    REMOVE_FILE = 1 << 5
    MAKE_CHAR = 1 << 6
    MAKE_DIR = 1 << 7
    MAKE_REG = 1 << 8
    MAKE_SOCK = 1 << 9
    MAKE_FIFO = 1 << 10
    MAKE_BLOCK = 1 << 11
    MAKE_SYM = 1 << 12
    REFER = 1 << 13
    TRUNCATE = 1 << 14
    IOCTL_DEV = 1 << 15


NOTHING = Access(0)
READ = Access.EXECUTE | Access.READ_FILE | Access.READ_DIR
USE = Access.READ_FILE | Access.WRITE_FILE | Access.IOCTL_DEV
SHARE = Access.READ_FILE | Access.WRITE_FILE | Access.TRUNCATE | Access.MAKE_REG | Access.REMOVE_FILE
"""A directory of shared memory: what is there can't be listed."""
_SPECIAL = Access.MAKE_CHAR | Access.MAKE_BLOCK | Access.MAKE_FIFO | Access.MAKE_SOCK | Access.MAKE_SYM
WRITE = ~(_SPECIAL | Access.IOCTL_DEV)
"""Files and directories alone: the referee reads what is left there, and must neither be led elsewhere nor wait."""
OF_A_FILE = Access.EXECUTE | Access.WRITE_FILE | Access.READ_FILE | Access.TRUNCATE | Access.IOCTL_DEV

_FILES = {1: Access.REFER, 2: Access.TRUNCATE, 3: Access.IOCTL_DEV, 4: Access.IOCTL_DEV}
"""By version: the first right that it doesn't handle yet."""

BIND_TCP, CONNECT_TCP = 1 << 0, 1 << 1
TCP = BIND_TCP | CONNECT_TCP
"""From version 4 on."""

ABSTRACT_SOCKETS, SIGNALS = 1 << 0, 1 << 1
"""From version 6 on."""


class _Ruleset(ctypes.Structure):
    _fields_ = [("files", ctypes.c_uint64), ("network", ctypes.c_uint64), ("scoped", ctypes.c_uint64)]


class _Port(ctypes.Structure):
    _fields_ = [("allowed", ctypes.c_uint64), ("port", ctypes.c_uint64)]


class _Beneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = [("allowed", ctypes.c_uint64), ("parent", ctypes.c_int32)]


def version() -> int:
    """The version of Landlock that the kernel has.

    Raises:
        OSError: ENOSYS where the kernel was built without, EOPNOTSUPP where it was started without.
    """
    return _call(CREATE_RULESET, None, ctypes.c_size_t(0), VERSION)


def restrict(rules: dict[Path, Access], network: bool, listening: bool, abstract: bool) -> int:
    """Refuse this thread, and all that it starts, what no rule allows.

    Args:
        rules: what may be done with a file, or a directory and all below it. One that is not there is left out.
        network: whether TCP stays open.
        listening: whether a TCP port may be listened at that the kernel chooses, where it does not.
        abstract: whether abstract sockets of others stay.

    Returns:
        The version in use.

    Raises:
        OSError: the kernel has none, or refuses.
    """
    found = version()
    handled = Access((_FILES.get(found) or Access.IOCTL_DEV << 1) - 1)
    tcp, scopes = 0 if network or found < 4 else TCP, SIGNALS | (0 if abstract else ABSTRACT_SOCKETS)
    ruleset = _Ruleset(handled, tcp, scopes if found >= 6 else 0)
    size = 24 if found >= 6 else 16 if found >= 4 else 8
    descriptor = _call(CREATE_RULESET, ctypes.byref(ruleset), ctypes.c_size_t(size), 0)
    try:
        for path, access in rules.items():
            _allow(descriptor, path, access & handled)
        if tcp and listening:
            _call(ADD_RULE, descriptor, NET_PORT, ctypes.byref(_Port(BIND_TCP, 0)), 0)
        if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0):
            raise OSError(ctypes.get_errno(), "no_new_privs")
        _call(RESTRICT_SELF, descriptor, 0)
    finally:
        os.close(descriptor)
    return found


def _allow(ruleset: int, path: Path, access: Access) -> None:
    with _there(path) as descriptor:
        if descriptor is not None:
            directory = stat.S_ISDIR(os.fstat(descriptor).st_mode)
            rule = _Beneath(access if directory else access & OF_A_FILE, descriptor)
            _call(ADD_RULE, ruleset, PATH_BENEATH, ctypes.byref(rule), 0)


@contextlib.contextmanager
def _there(path: Path) -> Iterator[int | None]:
    try:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        yield None
        return
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _call(number: int, *arguments: object) -> int:
    answer: int = ctypes.CDLL(None, use_errno=True).syscall(ctypes.c_long(number), *arguments)
    if answer < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return answer
