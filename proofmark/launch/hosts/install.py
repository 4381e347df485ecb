"""What is required, installed once: `python -m proofmark.launch.hosts.install FOLDER CONSTRAINTS FILE...`.

It is known by the content of the files and the Python that makes it, in whatever state an earlier attempt left it.
Printed is its interpreter.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import platform
import shutil
import signal
import subprocess
import sys
import threading
from importlib.util import find_spec
from pathlib import Path

NO_PIP = (
    "has no ensurepip, which gives an environment its pip: on Debian and Ubuntu have python3-venv installed there, or "
    "name another Python by `python`"
)


def main() -> int:
    """Make the environment where it is not there yet; 0, or the exit code of what failed."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    folder, constraints, *files = map(Path, sys.argv[1:])
    environment = folder / _name([*files, constraints])
    folder.mkdir(parents=True, exist_ok=True)
    with environment.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # another session may be at it
        finished = environment / "finished"
        if not finished.exists():
            if find_spec("ensurepip") is None:
                print(f"ERROR: {sys.executable} {NO_PIP}", file=sys.stderr)
                return 1
            if code := _make(environment, commands(environment, constraints, files)):
                shutil.rmtree(environment, ignore_errors=True)
                return code
            finished.touch()
    print(environment / "bin" / "python")
    return 0


def _make(environment: Path, steps: list[list[str]]) -> int:
    """Do the steps, with a place of their own for what they put down meanwhile."""
    aside = environment.with_suffix(".tmp")
    shutil.rmtree(aside, ignore_errors=True)
    aside.mkdir()
    try:
        for command in steps:
            environ = {**os.environ, "TMPDIR": str(aside), "PYTHONPATH": ""}  # what is found by it today is no part
            ran = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=sys.stderr, env=environ)
            if ran.returncode:
                return ran.returncode
        return 0
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def _end_with_parent() -> None:
    """End when standard input closes: it is open as long as whoever asked for this lives."""
    while os.read(0, 4096):
        pass
    os.killpg(0, signal.SIGKILL)


def commands(environment: Path, constraints: Path, files: list[Path]) -> list[list[str]]:
    """The commands that make an environment. Nothing is kept under the user's home.

    From wheels alone: to build a package is to run its code, with the index's address, and the password that may be in
    it, in a command line for all to see.
    """
    pip = [str(environment / "bin" / "python"), "-m", "pip", "--no-input", "--disable-pip-version-check"]
    wanted = [part for file in files for part in ("-r", str(file))]
    wanted += ["-c", str(constraints)] if constraints.is_file() else []
    return [
        [sys.executable, "-m", "venv", "--clear", str(environment)],
        [*pip, "install", "--quiet", "--no-cache-dir", "--only-binary", ":all:", *wanted],
    ]


def _name(files: list[Path]) -> str:
    digest = hashlib.sha256(repr((sys.version, sys.base_prefix, platform.libc_ver(), platform.machine())).encode())
    for file in files:
        digest.update(b"\0" + (file.read_bytes() if file.is_file() else b""))
    return digest.hexdigest()[:32]  # of half of that whoever writes a file could have a second one


if __name__ == "__main__":
    sys.exit(main())
