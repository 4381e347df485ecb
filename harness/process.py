"""Ending a child and its process group, by identity."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time


def wait_without_reaping(pid: int, seconds: float) -> bool:
    """Wait until a child has ended, leaving its id taken; whether it has."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            if os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT | os.WNOHANG):
                return True
        except ChildProcessError:
            return True
        time.sleep(0.01)
    return False


def end_group(process: subprocess.Popen[bytes]) -> None:
    """Kill the group that `process` leads. The leader is reaped last, so that its id can't have gone to another."""
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
