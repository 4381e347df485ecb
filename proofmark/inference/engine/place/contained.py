"""An engine's process in a container of its vendor's image, whose interpreter and libraries are the vendor's own.

Nothing that it says of itself is believed, and nothing is asked of the container engine but to run it and to remove it:
who it is, what descends from it and whether that has stopped is seen from here, by the kernel.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import socket
import struct
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from proofmark.errors import StepError
from proofmark.inference.engine.place.own_group import ENDING, OUTPUT
from proofmark.inference.engine.place.process_times import has_stopped, processor_times
from proofmark.inference.engine.protocol import SOCKET
from proofmark.launch.engine_container import PYTHON, REMOVED, EngineContainer, is_gone, removal, variables_text
from proofmark.process.child import cause_of_death
from proofmark.process.descriptors import is_ready
from proofmark.process.lifetime import MARK, WITHIN
from proofmark.wall.isolation import Isolation

KEEPER = f"""exec 3<&0
(read -r removed <&3 || {REMOVED}) > /dev/null 2>&1 &"""
"""Removes the container when its standard input ends without a word, with whoever holds the other end: a container is
nobody's child, and ends with none. Nor is the keeper one, so that whatever ends the referee's family leaves it that."""

REMOVING = 60.0
"""Seconds that the engine may take to remove it."""

STOPPING, LEAST = 1.0, 3
"""Seconds that its processes get to stop, and looks: this process may have been given no processor for as long."""

KILLED = 128
"""What is added to a signal's number where a program's exit code tells of it."""


class Contained:
    """`python3 -m proofmark.inference.engine.inside.in_image` in a container, which ends with this process."""

    def __init__(
        self,
        container: EngineContainer,
        directory: Path,
        read: Sequence[tuple[Path, Path]],
        variables: Mapping[str, str],
        isolation: Isolation,
    ) -> None:
        """Start it, and wait until it has called: the case's own parent watches over how long that takes.

        Args:
            directory: its own, and its home; all that it may write.
            read: files and folders that it sees beside those of its image, here and there.
            variables: those that it has beside those of its image.
            isolation: how what it is given keeps it from the rest.

        Raises:
            StepError: the engine does not start it, or something else has called.
            OSError: there is no engine.
        """
        self.isolation: Isolation | None = isolation
        name = f"{container.name}-{secrets.token_hex(4)}"
        self._environment = {name: value for name, value in os.environ.items() if name not in (MARK, WITHIN)}
        self._environment |= container.environment
        self._remove = removal(container.engine, name)
        self._client: subprocess.Popen[bytes] | None = None
        keeper = ["/bin/sh", "-c", KEEPER, "sh", *self._remove]
        self._keeper = subprocess.Popen(
            keeper, stdin=subprocess.PIPE, env=self._environment, start_new_session=True, text=True
        )
        self._keeper.wait()  # for the shell that has begun it: by that, not waited for, its group would be our child's
        try:
            self.socket = self._begun(container, name, directory, read, variables)
            self.pid = _first_of(self.socket)
            self.life = os.pidfd_open(self.pid)
            for task in os.listdir(f"/proc/{self.pid}/task"):  # an engine's daemon gives it all cores
                with contextlib.suppress(ProcessLookupError):  # it has ended meanwhile
                    os.sched_setaffinity(int(task), os.sched_getaffinity(0))
        except BaseException:
            self._remove_container()
            raise

    def _begun(
        self,
        container: EngineContainer,
        name: str,
        directory: Path,
        read: Sequence[tuple[Path, Path]],
        variables: Mapping[str, str],
    ) -> socket.socket:
        """The connection from a container that is started now."""
        program = [PYTHON, "-P", "-m", "proofmark.inference.engine.inside.in_image", str(directory), name]
        with (
            tempfile.TemporaryDirectory(prefix="engine-") as folder,
            socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener,
        ):
            listener.bind(f"{folder}/{Path(SOCKET).name}")
            listener.listen(1)
            file = Path(folder, "variables")
            file.write_text(variables_text(variables), encoding="utf-8", errors="surrogateescape")
            given = [*read, (Path(folder), Path(SOCKET).parent)]
            cores = os.sched_getaffinity(0)
            fewer = cores if len(cores) < (os.cpu_count() or 1) else ()
            command = container.command(program, name, directory, given, file, variables, fewer)
            self._client = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=OUTPUT, stderr=OUTPUT, env=self._environment
            )
            return self._called(listener, self._client)

    def _called(self, listener: socket.socket, client: subprocess.Popen[bytes]) -> socket.socket:
        """The connection from the container."""
        while not is_ready(listener.fileno(), 0.2):
            if (code := client.poll()) is not None:
                raise StepError(f"the engine's container {_cause(code)} before it called; why is in worker.log")
        return listener.accept()[0]

    def stop(self) -> list[int]:
        """Signal its tree, until nothing is in it that has not stopped: what has starts no other.

        Raises:
            StepError: there always are others in it.
        """
        known, until, looks = set[int](), time.monotonic() + STOPPING, 0
        while True:
            found = list(dict.fromkeys(self._members()))
            running = [pid for pid in found if not has_stopped(pid)]  # one that has not stopped may continue others
            for pid in running:
                self._send(pid, signal.SIGSTOP)
            looks, late = looks + 1, looks >= LEAST and time.monotonic() > until
            if known == {*found} and (late or not processor_times(running)) and _are_all(found):
                return sorted(known)
            if late:
                raise StepError("the engine starts processes faster than they can be stopped, while it was to rest")
            known = {*found}

    def _members(self) -> Iterator[int]:
        """Its tree; nobody's once its first process has ended, whose id may be another's by now."""
        if self.socket.fileno() >= 0 and not is_ready(self.life, 0.0):
            yield from _tree(self.pid)

    def tell(self, number: int) -> None:
        """Signal its tree."""
        for pid in self._members():
            self._send(pid, number)

    def stacks(self) -> None:
        """Signal its first process."""
        if self.socket.fileno() >= 0:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                signal.pidfd_send_signal(self.life, signal.SIGUSR1)

    def _send(self, pid: int, number: int) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)

    def close(self, patience: float = ENDING) -> None:
        """Close the socket, wait, and have the engine remove the container."""
        if self.socket.fileno() < 0:
            return
        self.tell(signal.SIGCONT)
        self.socket.close()
        is_ready(self.life, patience)
        self._remove_container()
        os.close(self.life)

    def _remove_container(self) -> None:
        """Have the engine remove it, and wait for that."""
        with contextlib.suppress(subprocess.TimeoutExpired, OSError):
            ran = subprocess.run(self._remove, env=self._environment, capture_output=True, timeout=REMOVING, text=True)
            if self._keeper.stdin and (ran.returncode == 0 or is_gone(ran.stderr)):
                self._keeper.stdin.write("removed\n")
        if self._keeper.stdin:
            self._keeper.stdin.close()
        if self._client:
            self._client.kill()
            self._client.wait()

    def cause(self) -> str:
        """By the exit code that the engine hands on."""
        assert self._client is not None
        if is_ready(self.life, ENDING):
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._client.wait(ENDING)
        code = self._client.poll()
        self.close(patience=0.0)
        return "hung up, and did not end" if code is None else _cause(code)


def _cause(code: int | None) -> str:
    return cause_of_death(KILLED - code if code is not None and code > KILLED else code)


def _first_of(connection: socket.socket) -> int:
    """The id here of the container's first process: who it is can't be said by another, and all that it starts is in
    its tree, whatever that does.

    Raises:
        StepError: another has called.
    """
    pid = int(struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0])
    ids = _ids(pid) if pid else []
    if len(ids) != 2 or ids[-1] != 1:  # with more, it is the first of a namespace made in there
        raise StepError("what called the referee is not the first process of the engine's container, on this host")
    return pid


def _ids(pid: int) -> list[int]:
    """A process's ids, in this namespace and in each below."""
    try:
        lines = Path(f"/proc/{pid}/status").read_bytes().split(b"\n")
    except OSError:
        return []
    found = next((line for line in lines if line.startswith(b"NSpid:")), b"")
    return [int(word) for word in found.split()[1:]]


def _tree(root: int) -> Iterator[int]:
    """A container's first process and all others in it: whoever loses his parent there becomes that one's child. Each
    comes after its parent."""
    waiting = [root]
    while waiting:
        yield (pid := waiting.pop())
        waiting += _children(pid)


def _are_all(tree: Sequence[int]) -> bool:
    """Whether there is nobody beside these, which have stopped. Who loses his parent moves up: so it is looked from
    below, else one who starts another and ends might always be where it was looked already."""
    return {*tree}.issuperset(child for pid in reversed(tree) for child in _children(pid))


def _children(pid: int) -> list[int]:
    """By each thread's own list, in which a process is as long as there is one: a look at all processes of the machine
    would miss who has always just begun."""
    found: list[int] = []
    with contextlib.suppress(OSError):  # it has ended
        for thread in os.listdir(f"/proc/{pid}/task"):
            with contextlib.suppress(OSError):
                found += map(int, Path(f"/proc/{pid}/task/{thread}/children").read_bytes().split())
    return found
