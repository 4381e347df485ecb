"""An environment with what is required, made once: `python -m harness.cluster.install FOLDER CONSTRAINTS FILE...`.

It is known by the content of the files and the Python that makes it, in whatever state an earlier attempt left it.
Printed is its interpreter.
"""

from __future__ import annotations

import fcntl
import hashlib
import platform
import subprocess
import sys
from pathlib import Path


def main() -> int:
    """Make it where it is not there yet; 0, or the code of what failed."""
    folder, constraints, *files = map(Path, sys.argv[1:])
    environment = folder / _name([*files, constraints])
    folder.mkdir(parents=True, exist_ok=True)
    with environment.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # another session may be at it
        finished = environment / "finished"
        if not finished.exists():
            for command in commands(environment, constraints, files):
                ran = subprocess.run(command, stdout=sys.stderr)
                if ran.returncode:
                    return ran.returncode
            finished.touch()
    print(environment / "bin" / "python")
    return 0


def commands(environment: Path, constraints: Path, files: list[Path]) -> list[list[str]]:
    """What makes an environment. Nothing is kept under the user's home."""
    pip = [str(environment / "bin" / "python"), "-m", "pip", "--no-input", "--disable-pip-version-check"]
    wanted = [part for file in files for part in ("-r", str(file))]
    wanted += ["-c", str(constraints)] if constraints.is_file() else []
    return [
        [sys.executable, "-m", "venv", "--clear", str(environment)],
        [*pip, "install", "--quiet", "--no-cache-dir", *wanted],
    ]


def _name(files: list[Path]) -> str:
    digest = hashlib.sha256(repr((sys.version, sys.base_prefix, platform.libc_ver())).encode())
    for file in files:
        digest.update(b"\0" + (file.read_bytes() if file.is_file() else b""))
    return digest.hexdigest()[:16]


if __name__ == "__main__":
    sys.exit(main())
