"""`python -m benchmarks.event_log [MB]`: how fast a long event log of a rank is read, and in how much memory.

Writes a log of 200 MB, such as a training of millions of steps leaves, into the temporary directory, and deletes it.
"""

from __future__ import annotations

import json
import random
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from proofmark.record.events.log import read_events
from proofmark.training.logs.ranks.rank_log import RankLog

LOSSES = 10
"""Of each note, as with the `log_freq` that training cases have."""


def main() -> None:
    """Print MB/s of the reader alone and of the reader with what a record needs, and the memory that took."""
    size = int(float(sys.argv[1] if len(sys.argv) > 1 else 200) * 1e6)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rank0.jsonl"
        write_log(path, size)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        _report("read_events", path, lambda: sum(1 for _ in read_events(path)))
        _report("RankLog", path, lambda: RankLog(0).take(read_events(path)))
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    print(f"{'memory':12} {grown / 1024:7.1f} MiB more at its peak")


def write_log(path: Path, size: int) -> None:
    """A rank's notes of its steps, with an evaluation after every hundredth, `size` bytes of them."""
    noise = random.Random(0)
    with path.open("wb") as stream:
        step = 0
        while stream.tell() < size:
            step += LOSSES
            parts = ("train", "data", "compute", "evaluation", "checkpoint")
            seconds = {f"{part}_seconds": step * noise.random() for part in parts}
            totals = {"time": time.time(), "clock": time.perf_counter_ns(), "epoch": step // 1000, "step": step}
            totals |= {"samples": 64 * step, **seconds}
            losses = [noise.random() for _ in range(LOSSES)]
            notes = {
                "first": step - LOSSES + 1,
                "losses": losses,
                "learning_rate": noise.random(),
                "total_steps": 10**7,
            }
            stream.write(_line({"event": "steps", **totals, **notes}))
            if step % (100 * LOSSES) == 0:
                stream.write(_line({"event": "evaluation", **totals, "metric": noise.random(), "took_seconds": 0.1}))


def _line(event: dict[str, object]) -> bytes:
    return json.dumps(event, separators=(",", ":")).encode() + b"\n"


def _report(name: str, path: Path, read: Callable[[], object]) -> None:
    begun = time.perf_counter()
    read()
    print(f"{name:12} {path.stat().st_size / 1e6 / (time.perf_counter() - begun):7.1f} MB/s", flush=True)


if __name__ == "__main__":
    main()
