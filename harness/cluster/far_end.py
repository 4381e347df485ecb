"""The far end: the one program that runs on each host, alive as long as the pipe to it.

It is sent as source before anything else is there, so it needs the standard library only. Frames both ways: a line of
JSON; where it says `size`, so many bytes follow, and from here one line's end more. Each order is answered by one frame
`answer`. Either side sends a beat each second; what hears nothing for `SILENCE` seconds, or reads the end of its input,
ends everything that it started.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import platform
import queue
import re
import secrets
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any

GREETING = b"proofmark-far-end 1\n"
SILENCE = 10.0
PIECE = 256 * 1024
DROP_CACHES = "/proc/sys/vm/drop_caches"
SIOCGIFFLAGS, IFF_UP, IFF_LOOPBACK, IFF_RUNNING = 0x8913, 0x1, 0x8, 0x40
TEMPORARY = "proofmark-host-"
"""How the name of a run's temporary directory begins."""

ABANDONED = 86_400.0
"""Seconds after which a run's folders are nobody's any more: each beat of a far end touches them."""

LOG_NAME = re.compile(r"(agent|monitor|rank[0-9]{1,7})\.(jsonl|log|err)")
"""What a node's agent and ranks write that goes home."""

MOST_FILES = 20_000
"""Files of a data directory that its fingerprint takes in."""

Frame = dict[str, Any]


class Child:
    """A process that was started, and all that it starts: those have its mark in their environment."""

    def __init__(self, process: subprocess.Popen[bytes], mark: str) -> None:
        self._process, self._mark = process, mark.encode()

    def has_ended(self) -> bool:
        """Whether it has; its id stays taken until it is waited for."""
        try:
            return os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is not None
        except ChildProcessError:
            return True

    def wait(self, seconds: float | None = None) -> int:
        """Its exit code."""
        return self._process.wait(seconds)

    def hang_up(self) -> None:
        """End its standard input."""
        if self._process.stdin is not None:
            with contextlib.suppress(OSError):
                self._process.stdin.close()

    def sweep(self) -> None:
        """Kill its group, and whatever carries its mark."""
        if self._process.returncode is None:  # reaped, its id might be another's
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)
        for _ in range(50):
            found = [pid for pid in _processes() if pid != os.getpid() and self._mark in _environment(pid)]
            for pid in found:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            if not found:
                return
            time.sleep(0.02)


class FarEnd:
    """Takes orders from standard input; standard output is for frames alone."""

    def __init__(self) -> None:
        self._input = os.fdopen(os.dup(0), "rb")
        self._output = os.fdopen(os.dup(1), "wb", buffering=0)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(2, 1)
        self._writing = threading.Lock()
        self._ending = threading.RLock()  # a signal may come while it is held
        self._heard = time.monotonic()
        self._orders: queue.SimpleQueue[tuple[Frame, bytes]] = queue.SimpleQueue()
        self._temporary: Path | None = None
        self._child: Child | None = None
        self._asked: Child | None = None
        self._run: Path | None = None
        self._listening: socket.socket | None = None
        self._work = self._tree = Path()

    def serve(self) -> None:
        """Until the near end is gone."""
        for name in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            signal.signal(name, lambda *_: self.end())
        threading.Thread(target=self._beat, daemon=True).start()
        threading.Thread(target=self._watch, daemon=True).start()
        threading.Thread(target=self._work_off, daemon=True).start()
        with contextlib.suppress(OSError, ValueError):
            self._output.write(GREETING)
            while line := self._input.readline():
                self._heard = time.monotonic()
                order = json.loads(line)
                body = self._body(order.get("size", 0))
                if order["order"] != "beat":
                    self._orders.put((order, body))
        self.end()

    def _body(self, size: int) -> bytes:
        body = bytearray()
        while len(body) < size and (piece := self._input.read1(min(PIECE, size - len(body)))):
            self._heard = time.monotonic()
            body += piece
        return bytes(body)

    def _work_off(self) -> None:
        """Not where input is read: the near end is heard while an order takes its time."""
        with contextlib.suppress(OSError, ValueError):  # the near end is gone: the main thread ends
            while True:
                order, body = self._orders.get()
                self._send("answer", **self._carry_out(order, body))

    def _carry_out(self, order: Frame, body: bytes) -> Frame:
        try:
            return getattr(self, f"order_{order.pop('order')}")(body, **order) or {}
        except (OSError, subprocess.SubprocessError, ValueError, LookupError, TypeError, AttributeError) as error:
            return {"error": str(error) or type(error).__name__}

    def order_open(self, body: bytes, work_dir: str) -> Frame:
        """Make the work directory, and see whether it can be written."""
        self._work = Path(work_dir).expanduser()
        for name in ("objects", "code", "runs"):
            (self._work / name).mkdir(parents=True, exist_ok=True)
        probe = _beside(self._work / "runs" / "probe")
        probe.write_bytes(b"x" * 4096)
        _remove_leftovers((self._work / "runs").iterdir(), now=probe.stat().st_mtime)
        probe.unlink()
        _remove_leftovers(Path(tempfile.gettempdir()).glob(TEMPORARY + "*"), now=time.time())
        return {"work_dir": str(self._work)}

    def order_time(self, body: bytes) -> Frame:
        """This host's clock, seconds since the epoch."""
        return {"time": time.time()}

    def order_lack(self, body: bytes, tree: str, size: int) -> Frame:
        """Which files of a code tree this host has not got yet; the manifest is the body: path to SHA-256."""
        self._files: dict[str, str] = json.loads(body)
        self._tree = self._work / "code" / tree
        if self._tree.is_dir():
            return {"lacking": []}
        return {"lacking": sorted({sha for sha in self._files.values() if not self._is_whole(sha)})}

    def order_take(self, body: bytes, sizes: dict[str, int], size: int) -> None:
        """Keep files, one after another in the body, by their SHA-256."""
        begin = 0
        for sha, length in sizes.items():
            content = body[begin : begin + length]
            if hashlib.sha256(content).hexdigest() != sha:
                raise ValueError("a file was damaged on its way")
            _write_at_once(self._object(sha), content)
            begin += length

    def order_lay_out(self, body: bytes) -> Frame:
        """Put the tree together where it is not there yet; the files of one that is there that were edited."""
        if not self._tree.is_dir():
            new = _beside(self._tree)
            for path, sha in self._files.items():
                (new / path).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(self._object(sha), new / path)
            try:
                new.rename(self._tree)
            except OSError:  # another session was faster
                shutil.rmtree(new)
        found = {path: hashlib.sha256(file.read_bytes()).hexdigest() for path, file in _files_under(self._tree)}
        names = found.keys() | self._files.keys()
        edited = sorted(name for name in names if found.get(name) != self._files.get(name))
        return {"code": str(self._tree), "edited": edited}

    def order_facts(
        self,
        body: bytes,
        packages: list[str],
        interface: str | None,
        port: int | None,
        data_dir: str | None,
        shared: str | None,
        clear_caches: bool,
    ) -> Frame:
        """What a preflight asks of a host."""
        return {
            "hostname": socket.gethostname(),
            "python": platform.python_version(),
            "versions": {name: _version(name) for name in packages},
            "free_bytes": shutil.disk_usage(self._work).free,
            "interface": None if interface is None else _interface_state(interface),
            "port_free": None if port is None else _is_free(port),
            "data": None if data_dir is None else fingerprint(Path(data_dir)),
            "shared": None if shared is None else Path(shared).exists(),
            "clears_caches": os.access(DROP_CACHES, os.W_OK) if clear_caches else None,
        }

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
        os.sync()
        Path(DROP_CACHES).write_text("3")

    def order_ask(
        self, body: bytes, command: list[str], environment: dict[str, str], seconds: float, mark: str
    ) -> Frame:
        """The output of a short command. Nothing that it started outlives it; `mark` is in the environment of all."""
        full = {**os.environ, **environment}
        with tempfile.TemporaryFile(dir=self._work) as output, tempfile.TemporaryFile(dir=self._work) as errors:
            self._asked = Child(
                subprocess.Popen(
                    command,
                    env=full,
                    cwd=self._work,
                    stdin=subprocess.PIPE,  # open as long as this end lives
                    stdout=output,
                    stderr=errors,
                    start_new_session=True,
                ),
                mark,
            )
            try:
                code = self._asked.wait(seconds)
            finally:
                self._asked.sweep()
            return {"code": code, "output": _end_of(output, PIECE // 8), "errors": _end_of(errors, 4096)}

    def order_run(
        self, body: bytes, command: list[str], environment: dict[str, str], directory: str, spec: str, mark: str
    ) -> None:
        """Start a node's agent, and send home what it and its ranks write into `directory`.

        Its standard input stays open as long as this end lives; `mark` is in the environment of all that it starts.
        """
        folder = Path(directory)
        folder.mkdir(parents=True)
        (folder.parent / "spec.json").write_text(spec)
        self._run = folder.parent
        self._temporary = _temporary_directory(environment)
        with (folder / "agent.log").open("ab") as log:
            child = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                cwd=self._tree,
                env={**os.environ, **environment, "TMPDIR": str(self._temporary)},
                start_new_session=True,
            )
        self._child = Child(child, mark)
        threading.Thread(target=self._follow, args=(self._child, folder), daemon=True).start()

    def order_stop(self, body: bytes) -> None:
        """End the agent, by its standard input first."""
        self._end_child()

    def order_remove(self, body: bytes, directory: str) -> None:
        """Remove a run's directory."""
        if (self._work / "runs").resolve() not in Path(directory).resolve().parents:
            raise ValueError(f"{directory} is no run's directory")
        shutil.rmtree(directory, ignore_errors=True)
        self._run = self._temporary = self._child = None

    def _follow(self, child: Child, folder: Path) -> None:
        sent: dict[str, int] = {}
        unread: dict[str, str] = {}
        with contextlib.suppress(OSError, ValueError):  # the near end is gone: the main thread ends
            while not child.has_ended():
                self._send_new(folder, sent, unread)
                time.sleep(0.2)
            child.sweep()
            self._remove_temporary()
            code = child.wait()
            self._send_new(folder, sent, unread)
            free = shutil.disk_usage(self._work).free
            self._send("ended", code=code, sizes=sent, unread=unread, free_bytes=free)

    def _send_new(self, folder: Path, sent: dict[str, int], unread: dict[str, str]) -> None:
        """What was added to the logs of a folder since."""
        for name in sorted(name for name in os.listdir(folder) if LOG_NAME.fullmatch(name)):
            while name not in unread:
                try:
                    with (folder / name).open("rb") as stream:
                        stream.seek(sent.get(name, 0))
                        piece = stream.read(PIECE)
                except OSError as error:
                    unread[name] = error.strerror or type(error).__name__
                    break
                if not piece and name in sent:
                    break
                self._send("file", piece, name=name, offset=sent.get(name, 0))  # an empty one comes home too
                sent[name] = sent.get(name, 0) + len(piece)

    def _send(self, kind: str, body: bytes | None = None, **fields: Any) -> None:
        size = {} if body is None else {"size": len(body)}
        # a line's end after the body too: srun passes whole lines on
        frame = json.dumps({"frame": kind, **fields, **size}).encode() + b"\n" + (b"" if body is None else body + b"\n")
        with self._writing:
            view = memoryview(frame)
            while view:
                view = view[self._output.write(view) :]

    def _beat(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            while True:
                time.sleep(1)
                self._send("beat")
                for folder in filter(None, (self._run, self._temporary)):
                    with contextlib.suppress(OSError):
                        os.utime(folder)

    def _watch(self) -> None:
        """The link may be cut without an end of input."""
        while time.monotonic() - self._heard < SILENCE:
            time.sleep(0.5)
        self.end(patience=2.0)

    def end(self, patience: float = 8.0) -> None:
        """End what was started, remove the run's folder, and end this process."""
        with self._ending:
            if self._asked is not None:
                self._asked.sweep()
            self._end_child(patience)
            self._remove_temporary()
            if self._run is not None:
                shutil.rmtree(self._run, ignore_errors=True)
            os._exit(0)

    def _remove_temporary(self) -> None:
        if self._temporary is not None:
            shutil.rmtree(self._temporary, ignore_errors=True)

    def _end_child(self, patience: float = 8.0) -> None:
        if self._child is not None:
            self._child.hang_up()
            deadline = time.monotonic() + patience
            while not self._child.has_ended() and time.monotonic() < deadline:
                time.sleep(0.05)
            self._child.sweep()

    def _is_whole(self, sha: str) -> bool:
        """Whether a file is here as it was sent: power may have failed since."""
        try:
            return hashlib.sha256(self._object(sha).read_bytes()).hexdigest() == sha
        except OSError:
            return False

    def _object(self, sha: str) -> Path:
        return self._work / "objects" / sha


def _temporary_directory(environment: dict[str, str]) -> Path:
    """One for a run, where the user wants it unless sockets would not fit in it: their paths have 107 bytes at most."""
    base = environment.get("TMPDIR") or tempfile.gettempdir()
    fits = len(os.fsencode(base)) <= 107 - len(f"/{TEMPORARY}01234567/pymp-01234567/listener-01234567")
    return Path(tempfile.mkdtemp(prefix=TEMPORARY, dir=base if fits else "/tmp"))  # noqa: S108 (its name is random)


def _remove_leftovers(folders: Iterable[Path], now: float) -> None:
    """Folders that no far end has removed: the host was switched off. `now` is by their disk's own clock."""
    for folder in folders:
        with contextlib.suppress(OSError):  # going just now
            if now - folder.lstat().st_mtime > ABANDONED:
                shutil.rmtree(folder, ignore_errors=True)


def _take_calls(listening: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while True:
            listening.accept()[0].close()


def _end_of(stream: IO[bytes], most: int) -> str:
    stream.seek(max(0, stream.seek(0, os.SEEK_END) - most))
    return stream.read().decode("utf-8", "replace")


def _write_at_once(path: Path, content: bytes) -> None:
    new = _beside(path)
    new.write_bytes(content)
    new.rename(path)


def _beside(path: Path) -> Path:
    """A hidden name next to `path` that no other host which shares the disk takes."""
    return path.with_name(f".{path.name}.{secrets.token_hex(4)}")


def _files_under(folder: Path) -> Iterator[tuple[str, Path]]:
    """Files of a tree by their paths in it, but for what Python itself adds."""
    for path in sorted(folder.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            yield path.relative_to(folder).as_posix(), path


def fingerprint(folder: Path) -> str | None:
    """Names and sizes of a directory's first files, in order, as one SHA-256; None if there is no such directory."""
    if not folder.is_dir():
        return None
    digest, count = hashlib.sha256(), 0
    for directory, names, files in os.walk(folder):
        names.sort()
        for name in sorted(files):
            path = os.path.join(directory, name)
            digest.update(f"{os.path.relpath(path, folder)}\0{os.path.getsize(path)}\0".encode("utf-8", "replace"))
            count += 1
            if count == MOST_FILES:
                return digest.hexdigest()
    return digest.hexdigest()


def _version(package: str) -> str | None:
    from importlib import metadata  # half of what a far end imports; there is an order less to wait for without it

    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _interface_state(name: str) -> str:
    """'up' if it is switched on and its cable is in, 'loopback' if it leads nowhere, 'down', or 'missing'."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
        try:
            answer = fcntl.ioctl(asked, SIOCGIFFLAGS, struct.pack("16sH14x", name.encode()[:15], 0))
        except OSError:
            return "missing"
    flags = struct.unpack("16sH14x", answer)[1]
    if flags & IFF_LOOPBACK:
        return "loopback"
    return "up" if flags & IFF_UP and flags & IFF_RUNNING else "down"


def _is_free(port: int) -> bool:
    with socket.socket() as tried:
        tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            tried.bind(("", port))
        except OSError:
            return False
    return True


def _processes() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdecimal()]


def _environment(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:  # gone, or another user's
        return b""


if __name__ == "__main__":
    sys.stdout = sys.stderr
    FarEnd().serve()
