"""Two sessions on one device would measure each other: a case holds its devices, and the next session waits.

A device is held by a socket in Linux's abstract namespace: it is there for all users, ends with its holder however that
ends, and leaves no file. A container with a network of its own doesn't see it.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import socket
import struct
import sys
import time
from collections.abc import Callable, Iterator, Sequence

import psutil

from proofmark.errors import UsageError

LOOK_EVERY = 0.5
"""Seconds between two looks at a device that is in use."""

_CREDENTIALS = struct.Struct("=iII")


def names_of(vendor: str, runs_on_processor: bool, devices: Sequence[str]) -> list[str]:
    """Devices as all sessions call them: there is one processor, whoever's compiler uses it."""
    if runs_on_processor:
        return ["the processor"]
    return [f"device {device} of vendor {vendor}" for device in devices]


@contextlib.contextmanager
def held(devices: Sequence[str], patience: float | None, note: Callable[[str], None]) -> Iterator[None]:
    """Hold devices, all or none; wait while another session does.

    Args:
        devices: what `names_of` calls them.
        patience: seconds to wait; None holds nothing.
        note: takes a line about who is waited for.

    Raises:
        UsageError: another session has one of them for longer.
    """
    if patience is None or sys.platform != "linux":
        yield
        return
    with contextlib.ExitStack() as stack:
        _take_all(stack, devices, patience, note)
        yield


def _take_all(
    stack: contextlib.ExitStack, devices: Sequence[str], patience: float, note: Callable[[str], None]
) -> None:
    """In one order everywhere, so that no two sessions wait for each other."""
    deadline = time.monotonic() + patience
    for device in sorted(set(devices)):
        taken, refusal = _take(device), ""
        while taken is None:
            refusal = refusal or f"{device} is in use by {_holder(device)}"
            if time.monotonic() >= deadline:
                raise UsageError(
                    f"{refusal}, and two sessions would measure each other; a larger --device-wait waits longer"
                )
            note(f"{refusal}: waiting up to {patience:g} s (--device-wait)")
            taken = _in_time(device, deadline)
        stack.enter_context(taken)


def _in_time(device: str, deadline: float) -> socket.socket | None:
    taken = None
    while taken is None and (left := deadline - time.monotonic()) > 0:
        time.sleep(min(LOOK_EVERY, left))
        taken = _take(device)
    return taken


def _address(device: str) -> bytes:
    """Within the 107 bytes that an address may have."""
    name = f"proofmark: {device}".encode()
    return b"\0" + (name if len(name) < 100 else hashlib.sha256(name).hexdigest().encode())


def _take(device: str) -> socket.socket | None:
    """What holds a device while it is open; None if another process has it."""
    taken = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        taken.bind(_address(device))
    except OSError as error:
        taken.close()
        if error.errno == errno.EADDRINUSE:
            return None
        raise
    taken.listen()
    return taken


def _holder(device: str) -> str:
    """The process that has a device, as well as it can be told. Asked once: the holder takes none of those who ask off
    its list."""
    pid = 0
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as asking:
        asking.setblocking(False)
        asking.connect(_address(device))
        pid = _CREDENTIALS.unpack(asking.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size))[0]
    if not pid:
        return "another session"
    with contextlib.suppress(psutil.Error, KeyError):
        return f"process {pid} of {psutil.Process(pid).username()}"
    return f"process {pid}"
