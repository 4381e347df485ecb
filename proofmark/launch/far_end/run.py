"""A node's agent, and what it and its ranks write on its way home."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from stat import S_ISREG
from typing import Protocol

from proofmark.launch.far_end.child import Child, around
from proofmark.launch.far_end.protocol import PIECE, goes_home, is_left
from proofmark.launch.far_end.store import temporary_directory
from proofmark.process.scratch.own_directory import remove


class Send(Protocol):
    """Sends a frame home."""

    def __call__(self, kind: str, body: bytes | None = None, **fields: object) -> None:
        """Send it.

        Raises:
            OSError: the near end is gone.
        """


class Run:
    """One job's part on this host. Its directory is the parent of the one that its logs are written into."""

    def __init__(self, logs: Path, leaves: Sequence[str], send: Send) -> None:
        self._logs, self._folder, self._leaves, self._send = logs, logs.parent, leaves, send
        self._temporary: Path | None = None
        self._in_use: Path | None = None
        self._child: Child | None = None

    def start(
        self,
        command: list[str],
        environment: dict[str, str],
        code: Path,
        spec: str,
        mark: str,
        temporary: Path | None = None,
    ) -> None:
        """Start the agent, and follow it, with a directory for temporary files: one of its own, if there is none.

        Its standard input stays open as long as this end lives; `mark` is in the environment of all that it starts.

        Raises:
            OSError: the directory is there already, or can't be written; or there is no such command.
        """
        self._logs.mkdir(parents=True)
        (self._folder / "spec.json").write_text(spec)
        self._temporary = None if temporary else temporary_directory(environment)
        self._in_use = temporary or self._temporary
        with (self._logs / "agent.log").open("ab") as log:
            process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                cwd=code,
                env={**around(environment), "TMPDIR": str(self._in_use)},
                start_new_session=True,
            )
        self._child = Child(process, mark)
        threading.Thread(target=self._follow, args=(self._child,), daemon=True).start()

    def say(self, line: str) -> None:
        """Write a line to the agent's standard input.

        Raises:
            OSError: it reads no more.
        """
        if self._child is not None:
            self._child.say(line)

    def fetch(self, leaves: Sequence[str]) -> tuple[dict[str, int], list[str]]:
        """Send home files and folders that are no logs. A pipe would be read for ever.

        Returns how many bytes each file has, and what is not sent: no files, or not by such names.

        Raises:
            OSError: one can't be read.
        """
        sizes: dict[str, int] = {}
        unsent: list[str] = []
        for path in self._found(leaves):
            name = path.relative_to(self._logs).as_posix()
            if not (goes_home(name, leaves) and S_ISREG(path.lstat().st_mode)):
                unsent.append(name)
                continue
            with path.open("rb") as stream:
                while (piece := stream.read(PIECE)) or name not in sizes:
                    self._send("file", piece, name=name, offset=sizes.get(name, 0))
                    sizes[name] = sizes.get(name, 0) + len(piece)
        return sizes, unsent

    def _found(self, leaves: Sequence[str]) -> Iterator[Path]:
        """All of those names that is no folder; links are not followed."""
        for folder, folders, files in os.walk(self._logs):
            folders.sort()
            links = [name for name in folders if Path(folder, name).is_symlink()]
            for path in (Path(folder, name) for name in sorted([*files, *links])):
                if is_left(path.relative_to(self._logs).as_posix(), leaves):
                    yield path

    def end(self, patience: float) -> None:
        """End the agent, by its standard input first, and all that it has started."""
        if self._child is not None:
            self._child.end(patience)

    def remove(self) -> None:
        """Remove all of the run's files."""
        self._remove_temporary()
        remove(self._folder)

    def touch(self) -> None:
        """Mark the run's directories as in use."""
        for folder in filter(None, (self._folder, self._in_use)):
            with contextlib.suppress(OSError):
                os.utime(folder)

    def _remove_temporary(self) -> None:
        if self._temporary is not None:
            remove(self._temporary)

    def _follow(self, child: Child) -> None:
        sent: dict[str, int] = {}
        unread: dict[str, str] = {}
        with contextlib.suppress(OSError, ValueError):  # the near end is gone: the main thread ends
            while not child.has_ended():
                self._send_new(sent, unread)
                time.sleep(0.2)
            child.sweep()
            self._remove_temporary()
            code = child.wait()
            self._send_new(sent, unread)
            free = _free(self._folder)
            self._send("ended", code=code, sizes=sent, unread=unread, free_bytes=free)

    def _written(self) -> list[str]:
        """Files of the node's folder that go home while it runs; no link."""
        with os.scandir(self._logs) as entries:
            return sorted(
                each.name
                for each in entries
                if goes_home(each.name, self._leaves) and each.is_file(follow_symlinks=False)
            )

    def _send_new(self, sent: dict[str, int], unread: dict[str, str]) -> None:
        """What was added to the logs since. A disk that can't be read is no near end that is gone."""
        try:
            written = self._written()
        except OSError as error:
            unread[self._logs.name] = error.strerror or str(error)
            return
        for name in written:
            while name not in unread:
                try:
                    with (self._logs / name).open("rb") as stream:
                        stream.seek(sent.get(name, 0))
                        piece = stream.read(PIECE)
                except OSError as error:
                    unread[name] = error.strerror or type(error).__name__
                    break
                if not piece and name in sent:
                    break
                self._send("file", piece, name=name, offset=sent.get(name, 0))  # an empty one comes home too
                sent[name] = sent.get(name, 0) + len(piece)


def _free(folder: Path) -> int:
    """Free bytes of the disk that a run's folder is on; 0 where its user gets none of them, or nobody knows."""
    try:
        (folder / "probe").write_bytes(b"x" * 4096)
    except OSError as error:
        if error.errno in (errno.EDQUOT, errno.ENOSPC):
            return 0
    try:
        return shutil.disk_usage(folder.parent).free
    except OSError:
        return 0
