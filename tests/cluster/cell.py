"""A part of this machine that is a machine of its own, and that is gone when the test session is."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from types import MappingProxyType
from typing import Self

import psutil

from tests.services import missing, program
from tests.waiting import until


class Cell:
    """Namespaces of this machine and the processes in them.

    The first process reads from a pipe that only the test session holds open. When that ends, however it ends, the
    process does too, and with it, by the kernel's hand, every other process of the cell and every network link.
    """

    def __init__(
        self,
        *namespaces: str,
        setup: str = ":",
        arguments: tuple[str, ...] = (),
        environment: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """Start a cell with process numbers and mounts of its own.

        Args:
            namespaces: what else it has of its own, as options of unshare: "--net", "--uts".
            setup: a bash script, given the `arguments`, that runs in the cell before it is ready.
            arguments: the script's $1, $2, ...
            environment: variables besides the test session's own.
        """
        if not _may_make_namespaces():
            missing("root with CAP_SYS_ADMIN, to make namespaces")
        # Once /proc is the cell's own, bash's number in it is 1. An end of file ends `read`, and with it the cell.
        script = f"set -e\n{setup}\necho ready\nread || true"
        command = [program("unshare"), "--pid", "--mount-proc", "--fork", "--kill-child", *namespaces]
        self._holder = subprocess.Popen(
            [*command, "/bin/bash", "-c", script, "bash", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=os.environ | environment,
            start_new_session=True,  # Ctrl-C is for the tests: they come here when they are done
        )
        assert self._holder.stdout is not None
        if self._holder.stdout.readline() != b"ready\n":
            self._holder.kill()
            raise AssertionError(f"no cell: {' '.join(command)}")
        (self._first,) = psutil.Process(self._holder.pid).children()

    @property
    def pid(self) -> int:
        """The first process, as the test session numbers it: /proc/PID/ns and /proc/PID/root are the cell's."""
        return self._first.pid

    def inside(self, *command: str, only: str = "--all") -> list[str]:
        """The command that runs a command in the cell, in all its namespaces or, with "--net", in only that one."""
        return [program("nsenter"), f"--target={self.pid}", only, "--", *command]

    def processes(self, namespace: str = "pid") -> list[psutil.Process]:
        """What runs in the cell besides its first process, each with its name and command line in its `info`."""
        here, keepers = _namespace(self.pid, namespace), (self.pid, self._holder.pid)
        found = [
            process
            for process in psutil.process_iter(["name", "cmdline"])
            if _namespace(process.pid, namespace) == here
        ]
        return [process for process in found if process.pid not in keepers and alive(process)]

    def close(self) -> None:
        """Kill everything in the cell. Returns when the last process has ended."""
        self._holder.kill()
        self._holder.wait()
        until(lambda: not alive(self._first), "a cell to end")  # the first process is the last to be gone
        for pipe in (self._holder.stdin, self._holder.stdout):
            if pipe is not None:
                pipe.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def alive(process: psutil.Process) -> bool:
    """Whether a process runs still: one that has ended and waits to be reaped does not."""
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def kill(processes: list[psutil.Process]) -> None:
    """Kill -9 them all, and wait until they are gone."""
    for process in processes:
        try:
            process.kill()
        except psutil.NoSuchProcess:
            pass
    until(lambda: not any(alive(process) for process in processes), "killed processes to end")


def mentioned(word: str) -> list[psutil.Process]:
    """The processes whose command line holds a word, such as the path of a directory that is theirs alone."""
    found = psutil.process_iter(["name", "cmdline"])
    return [process for process in found if word in " ".join(process.info["cmdline"] or ()) and alive(process)]


def _may_make_namespaces() -> bool:
    trial = [program("unshare"), "--pid", "--mount-proc", "--fork", "--net", "--uts", "true"]
    return subprocess.run(trial, check=False, capture_output=True).returncode == 0


def _namespace(pid: int, kind: str) -> str:
    try:
        return os.readlink(f"/proc/{pid}/ns/{kind}")
    except OSError:  # it has ended
        return ""
