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
import secrets
import shutil
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

GREETING = b"proofmark-far-end 1\n"
SILENCE = 10.0
PIECE = 256 * 1024
SIOCGIFFLAGS, IFF_UP, IFF_RUNNING = 0x8913, 0x1, 0x40
MOST_FILES = 20_000
"""Files of a data directory that its fingerprint takes in."""

Frame = dict[str, Any]


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
        self._child: subprocess.Popen[bytes] | None = None
        self._asked: subprocess.Popen[bytes] | None = None
        self._work = self._tree = Path()
        self._mark = ""

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
        probe.unlink()
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
        return {"lacking": sorted({sha for sha in self._files.values() if not self._object(sha).exists()})}

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
        self, body: bytes, packages: list[str], interface: str | None, port: int | None, data_dir: str | None
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
        }

    def order_free_port(self, body: bytes) -> Frame:
        """A port that nobody listens at."""
        with socket.socket() as found:
            found.bind(("", 0))
            return {"port": found.getsockname()[1]}

    def order_drop_caches(self, body: bytes) -> None:
        """Have the kernel forget what it read from disks."""
        os.sync()
        Path("/proc/sys/vm/drop_caches").write_text("3")

    def order_ask(self, body: bytes, command: list[str], environment: dict[str, str], seconds: float) -> Frame:
        """The output of a short command."""
        full, pipe = {**os.environ, **environment}, subprocess.PIPE
        with subprocess.Popen(
            command, env=full, cwd=self._work, stdout=pipe, stderr=pipe, start_new_session=True
        ) as self._asked:
            try:
                output, errors = self._asked.communicate(timeout=seconds)
            finally:
                _kill_group(self._asked)
        return {"code": self._asked.returncode, "output": output.decode()[-PIECE:], "errors": errors.decode()[-4096:]}

    def order_run(
        self, body: bytes, command: list[str], environment: dict[str, str], directory: str, spec: str, mark: str
    ) -> None:
        """Start a node's agent, and send home what it and its ranks write into `directory`.

        Its standard input stays open as long as this end lives; `mark` is in the environment of all that it starts.
        """
        folder = Path(directory)
        folder.mkdir(parents=True)
        (folder.parent / "spec.json").write_text(spec)
        self._mark = mark
        with (folder / "agent.log").open("ab") as log:
            self._child = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                cwd=self._tree,
                env={**os.environ, **environment},
                start_new_session=True,
            )
        threading.Thread(target=self._follow, args=(self._child, folder), daemon=True).start()

    def order_stop(self, body: bytes) -> None:
        """End the agent, by its standard input first."""
        self._end_child()

    def order_remove(self, body: bytes, directory: str) -> None:
        """Remove a run's directory."""
        if (self._work / "runs").resolve() not in Path(directory).resolve().parents:
            raise ValueError(f"{directory} is no run's directory")
        shutil.rmtree(directory, ignore_errors=True)

    def _follow(self, child: subprocess.Popen[bytes], folder: Path) -> None:
        sent: dict[Path, int] = {}
        with contextlib.suppress(OSError, ValueError):  # the near end is gone: the main thread ends
            while not _has_ended(child.pid):
                self._send_new(folder, sent)
                time.sleep(0.2)
            self._sweep(child)
            child.wait()
            self._send_new(folder, sent)
            self._send("ended", code=child.returncode)

    def _send_new(self, folder: Path, sent: dict[Path, int]) -> None:
        """What was added to the logs of a folder since."""
        for path in sorted((*folder.glob("*.jsonl"), *folder.glob("*.log"), *folder.glob("*.err"))):
            with path.open("rb") as stream:
                stream.seek(sent.get(path, 0))
                while piece := stream.read(PIECE):
                    self._send("file", piece, name=path.name, offset=sent.get(path, 0))
                    sent[path] = sent.get(path, 0) + len(piece)

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

    def _watch(self) -> None:
        """The link may be cut without an end of input."""
        while time.monotonic() - self._heard < SILENCE:
            time.sleep(0.5)
        self.end()

    def end(self) -> None:
        """End what was started, and this process."""
        with self._ending:
            if self._asked is not None:
                _kill_group(self._asked)
            self._end_child()
            os._exit(0)

    def _end_child(self) -> None:
        child = self._child
        if child is not None and child.stdin is not None:
            with contextlib.suppress(OSError):
                child.stdin.close()
            deadline = time.monotonic() + 8
            while not _has_ended(child.pid) and time.monotonic() < deadline:
                time.sleep(0.05)
            self._sweep(child)

    def _sweep(self, child: subprocess.Popen[bytes]) -> None:
        """Kill the agent's group, and whatever carries the run's mark."""
        _kill_group(child)
        for _ in range(50):
            found = [pid for pid in _processes() if pid != os.getpid() and self._mark.encode() in _environment(pid)]
            for pid in found:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            if not found:
                return
            time.sleep(0.02)

    def _object(self, sha: str) -> Path:
        return self._work / "objects" / sha


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
    """'up' if it is switched on and its cable is in, 'down', or 'missing'."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
        try:
            answer = fcntl.ioctl(asked, SIOCGIFFLAGS, struct.pack("16sH14x", name.encode()[:15], 0))
        except OSError:
            return "missing"
    flags = struct.unpack("16sH14x", answer)[1]
    return "up" if flags & IFF_UP and flags & IFF_RUNNING else "down"


def _is_free(port: int) -> bool:
    with socket.socket() as tried:
        tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            tried.bind(("", port))
        except OSError:
            return False
    return True


def _has_ended(child: int) -> bool:
    """Whether a child has, its id left taken."""
    try:
        return os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT | os.WNOHANG) is not None
    except ChildProcessError:
        return True


def _kill_group(child: subprocess.Popen[bytes]) -> None:
    if child.returncode is None:  # reaped, its id might be another's
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(child.pid, signal.SIGKILL)


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
