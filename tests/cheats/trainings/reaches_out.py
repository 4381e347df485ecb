"""Tries what a rank, or a trial, gains nothing by but a false result; and says what of it was refused."""

import os
import signal
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

from proofmark.vendor import TrainingAdapter

VERDICT, REASON = "ERROR", "RuntimeError: came past nothing of 16"


def connected(family: int, kind: int, address: Any) -> None:
    with socket.socket(family, kind) as one:
        one.settimeout(1)
        one.connect(address)
        one.send(b"x")


def attempts() -> dict[str, Callable[[], Any]]:
    home, agent = Path(os.environ["HOME"]), os.getppid()
    (cache,) = (path for parent in home.parents if (path := parent / ".cache").is_dir())
    (log, *_) = (path for name in ("rank0.jsonl", "trial.jsonl") if (path := home.parent / name).exists())
    grandparent = int(Path(f"/proc/{agent}/stat").read_text().rpartition(")")[2].split()[1])
    return {
        "results": lambda: os.listdir(home.parents[1]),
        "a log": log.read_bytes,
        "a word in a log": lambda: log.open("ab").write(b"{}\n"),
        "another log": lambda: (home.parents[1] / "events.jsonl").write_bytes(b"{}\n"),
        "caches, the key": lambda: os.listdir(cache),
        "the key": (cache / "own.key").read_bytes,
        "other vendors": lambda: os.listdir(Path(__file__).parents[1]),
        "another vendor": (Path(__file__).parents[1] / "__init__.py").read_bytes,
        "temporary files": lambda: os.listdir("/tmp"),
        "a link": lambda: os.symlink(log, home / "final.safetensors"),
        "its agent stopped": lambda: os.kill(agent, signal.SIGSTOP),
        "its agent's parent killed": lambda: os.kill(grandparent, signal.SIGKILL),
        "its agent's pages": lambda: os.listdir(f"/proc/{agent}/map_files"),
        "its agent's files": lambda: os.open(f"/proc/{agent}/fd/0", os.O_RDONLY),
        "the network": lambda: connected(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", 9)),
        "a datagram": lambda: connected(socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", 9)),
    }


def refused(attempt: Callable[[], Any]) -> bool:
    try:
        attempt()
    except (PermissionError, FileNotFoundError) as error:
        return isinstance(error, PermissionError)
    except OSError:  # a port at which nobody listens: it was reached
        return False
    return False


class Adapter(TrainingAdapter):
    def __init__(self) -> None:
        tried = attempts()
        past = [name for name, attempt in tried.items() if not refused(attempt)]
        raise RuntimeError(f"came past {', '.join(past) or 'nothing'} of {len(tried)}")
