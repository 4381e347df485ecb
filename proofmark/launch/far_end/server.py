"""Takes orders, one after another, and ends all that it started when nobody gives any more."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import IO, Any

from proofmark.launch.far_end.caches import drop_caches
from proofmark.launch.far_end.child import Child, around
from proofmark.launch.far_end.facts import facts_of
from proofmark.launch.far_end.protocol import GREETING, PIECE, SILENCE, Frame
from proofmark.launch.far_end.run import Run
from proofmark.launch.far_end.store import Store

LOOK = 0.5
"""Seconds between two looks whether the near end is silent."""


class FarEnd:
    """Takes orders from standard input; standard output is for frames alone."""

    def __init__(self) -> None:
        self._input = os.fdopen(os.dup(0), "rb")
        self._output = os.fdopen(os.dup(1), "wb", buffering=0)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(2, 1)
        self._writing = threading.Lock()
        self._ending = threading.RLock()  # a signal may come while it is held
        self._silent, self._patience = 0.0, SILENCE
        self._orders: queue.SimpleQueue[tuple[Frame, bytes]] = queue.SimpleQueue()
        self._store: Store
        self._run: Run | None = None
        self._asked: Child | None = None
        self._listening: socket.socket | None = None

    def serve(self) -> None:
        """Carry out orders until the near end is gone."""
        for name in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            signal.signal(name, lambda *_: self.end())
        threading.Thread(target=self._heartbeat, daemon=True).start()
        threading.Thread(target=self._watch, daemon=True).start()
        threading.Thread(target=self._work_off, daemon=True).start()
        with contextlib.suppress(OSError, ValueError):
            self._output.write(GREETING)
            while line := self._input.readline():
                self._silent = 0.0
                order = json.loads(line)
                body = self._body(order.get("size", 0))
                if order["order"] != "heartbeat":
                    self._orders.put((order, body))
                elif "patience" in order:
                    self._patience = float(order["patience"])
        self.end()

    def end(self, patience: float = 8.0) -> None:
        """End what was started, remove the run's folder, and end this process."""
        with self._ending:
            if self._asked is not None:
                self._asked.sweep()
            if (run := self._run) is not None:
                run.end(patience)
                run.remove()
            os._exit(0)

    def order_open(self, body: bytes, work_dir: str) -> Frame:
        """Make the work directory, and see whether it can be written."""
        self._store = Store(Path(work_dir).expanduser())
        return {"work_dir": str(self._store.folder)}

    def order_time(self, body: bytes) -> Frame:
        """This host's clock, seconds since the epoch."""
        return {"time": time.time()}

    def order_lack(self, body: bytes, tree: str, size: int) -> Frame:
        """Which files of a code tree this host has not got yet; the manifest is the body: path to SHA-256."""
        return {"lacking": self._store.lack(tree, body)}

    def order_take(self, body: bytes, sizes: dict[str, int], size: int, more: bool = False) -> None:
        """Keep files, one after another in the body, by their SHA-256; of the last one there may be more to come."""
        self._store.take(sizes, body, more)

    def order_lay_out(self, body: bytes) -> Frame:
        """Put the tree together where it is not there yet; the files of one that is there that were edited."""
        edited = self._store.lay_out()
        return {"code": str(self._store.tree), "edited": edited}

    def order_facts(self, body: bytes, **required: Any) -> Frame:
        """What a preflight asks of a host."""
        return facts_of(self._store.folder, **required)

    def order_listen(self, body: bytes, port: int | None) -> Frame:
        """Take callers at a port, as the master of a training will, until told to hang up."""
        both = socket.has_dualstack_ipv6()
        family = socket.AF_INET6 if both else socket.AF_INET
        self._listening = socket.create_server(("", port or 0), family=family, backlog=1024, dualstack_ipv6=both)
        threading.Thread(target=_take_calls, args=(self._listening,), daemon=True).start()
        return {"port": self._listening.getsockname()[1]}

    def order_hang_up(self, body: bytes) -> None:
        """Take no more callers."""
        if self._listening is not None:
            self._listening.shutdown(socket.SHUT_RDWR)  # wakes who waits for one
            self._listening.close()

    def order_reach(self, body: bytes, address: str, port: int) -> None:
        """Call another host."""
        socket.create_connection((address, port), timeout=5).close()

    def order_drop_caches(self, body: bytes) -> None:
        """Have the kernel forget what it read from disks."""
        drop_caches()

    def order_ask(
        self, body: bytes, command: list[str], environment: dict[str, str], seconds: float, mark: str
    ) -> Frame:
        """The output of a short command, and its exit code, null where it takes longer than `seconds`. Nothing that it
        started outlives it; `mark` is in the environment of all.

        It runs in the code's tree: Python finds modules where it is started before all others.
        """
        work = self._store.folder
        with tempfile.TemporaryFile(dir=work) as output, tempfile.TemporaryFile(dir=work) as errors:
            self._asked = Child(
                subprocess.Popen(
                    command,
                    env=around(environment),
                    cwd=self._store.tree,
                    stdin=subprocess.PIPE,  # open as long as this end lives
                    stdout=output,
                    stderr=errors,
                    start_new_session=True,
                ),
                mark,
            )
            try:
                code = self._asked.wait(seconds)
            except subprocess.TimeoutExpired:
                code = None
            finally:
                self._asked.sweep()
            return {"code": code, "output": _end_of(output, PIECE // 8), "errors": _end_of(errors, 4096)}

    def order_run(
        self,
        body: bytes,
        command: list[str],
        environment: dict[str, str],
        directory: str,
        leaves: list[str],
        spec: str,
        mark: str,
    ) -> None:
        """Start a node's agent, and send home what it and its ranks write into `directory` under names of `leaves`."""
        self._run = Run(Path(directory), leaves, self._send)
        self._run.start(command, environment, self._store.tree, spec, mark)

    def order_say(self, body: bytes, line: str) -> None:
        """Write a line to the agent's standard input."""
        if self._run is not None:
            self._run.say(line)

    def order_fetch(self, body: bytes, leaves: list[str]) -> Frame:
        """Send home what an agent that has ended left beside its logs; say how long each file is, and what is not
        sent."""
        sizes, unsent = self._run.fetch(leaves) if self._run is not None else ({}, [])
        more = f" and {len(unsent) - 3} more" if len(unsent) > 3 else ""
        return {"sizes": sizes, "unsent": ", ".join(unsent[:3]) + more}

    def order_stop(self, body: bytes) -> None:
        """End the agent, by its standard input first."""
        if self._run is not None:
            self._run.end(patience=8.0)

    def order_remove(self, body: bytes) -> None:
        """Remove all that is left of the run; another may follow."""
        if self._run is not None:
            self._run.remove()
        self._run = None

    def _body(self, size: int) -> bytes:
        body = bytearray()
        while len(body) < size and (piece := self._input.read1(min(PIECE, size - len(body)))):
            self._silent = 0.0
            body += piece
        return bytes(body)

    def _work_off(self) -> None:
        """Carry out orders in another thread than the one that reads them: the near end is heard while an order takes
        its time."""
        with contextlib.suppress(OSError, ValueError):  # the near end is gone: the main thread ends
            while True:
                order, body = self._orders.get()
                self._send("answer", **self._carry_out(order, body))

    def _carry_out(self, order: Frame, body: bytes) -> Frame:
        try:
            return getattr(self, f"order_{order.pop('order')}")(body, **order) or {}
        except (OSError, subprocess.SubprocessError, ValueError, LookupError, TypeError, AttributeError) as error:
            return {"error": str(error) or type(error).__name__}

    def _send(self, kind: str, body: bytes | None = None, **fields: Any) -> None:
        size = {} if body is None else {"size": len(body)}
        # a line's end after the body too: srun passes whole lines on
        frame = json.dumps({"frame": kind, **fields, **size}).encode() + b"\n" + (b"" if body is None else body + b"\n")
        with self._writing:
            view = memoryview(frame)
            while view:
                view = view[self._output.write(view) :]

    def _heartbeat(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            while True:
                time.sleep(1)
                self._send("heartbeat")
                if (run := self._run) is not None:
                    run.touch()

    def _watch(self) -> None:
        """End everything when the near end falls silent: the link may be cut without an end of input. The seconds of
        looks are counted: while this host stood still nobody listened."""
        while self._silent < self._patience:
            time.sleep(LOOK)
            self._silent += LOOK
        self.end(patience=2.0)


def _take_calls(listening: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while True:
            listening.accept()[0].close()


def _end_of(stream: IO[bytes], most: int) -> str:
    stream.seek(max(0, stream.seek(0, os.SEEK_END) - most))
    return stream.read().decode("utf-8", "replace")


if __name__ == "__main__":
    sys.stdout = sys.stderr
    FarEnd().serve()
