"""A trial that trains nothing: it does what its spec's configuration says of its number, without torch."""

from __future__ import annotations

import json
import os
import shutil
import signal
import struct
import sys
import time
from pathlib import Path

PHASES = ("start", "init", "data", "recording", "compute", "evaluation", "scoring", "checkpoint", "end")
"""As `proofmark.training.heartbeat` has them."""

TOTALS = {"epoch": 0, "step": 1, "samples": 0, "train_seconds": 0.0, "data_seconds": 0.0, "compute_seconds": 0.0}
TOTALS |= {"evaluation_seconds": 0.0, "checkpoint_seconds": 0.0, "communication": None}


def main() -> int:
    spec = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    folder = Path(spec["directory"]) / "noderank0"
    number = spec["trial"]
    does = spec["config"]["does"].get(str(number), "train")
    with (folder / "trial.jsonl").open("a", encoding="utf-8") as log:

        def tell(kind: str, **fields: object) -> None:
            log.write(json.dumps(moment(kind) | fields) + "\n")
            log.flush()

        tell("trial_begin", trial=number, **({"host": "elsewhere"} if number == 1 else {}))
        if not sys.stdin.readline():
            shutil.rmtree(os.environ["TMPDIR"], ignore_errors=True)
            return 1
        (folder / "begun").write_text("yes")  # of an empty file nothing is left when the trial has ended
        if does == "crash":
            sys.exit("it fell over")
        if does == "hang in a step":
            beat(folder, 1, "compute")
        if does in ("hang", "hang in a step"):
            sys.stdin.buffer.read()
            shutil.rmtree(os.environ["TMPDIR"], ignore_errors=True)  # as a real one with whom nobody speaks any more
            return 1
        if does == "nan":
            tell("trial_failed", reason="the loss of step 3 is not a finite number")
            return 1
        if does == "memory":
            tell("trial_failed", reason="it ran out of memory: the host has no more")
            return 1
        how, waits, path = does.partition(" for ")
        while waits and not Path(path).exists():
            time.sleep(0.05)
        if how == "crash, having waited":
            sys.exit("it fell over")
        if how.startswith("show "):
            tell("trial_failed", reason=os.environ.get(how.removeprefix("show "), "it is not there"))
            return 1
        accuracy = 0.5 + 0.01 * number
        for epoch in range(1 + spec["epochs"]):
            if epoch == 1 and does == "killed":
                (folder / "own0").mkdir()
                (folder / "own0" / "weights").touch()
                os.kill(os.getpid(), signal.SIGKILL)
            if epoch == 1 and does == "kill the driver":
                os.kill(os.getppid(), signal.SIGKILL)
                sys.stdin.buffer.read()
                shutil.rmtree(os.environ["TMPDIR"])
                return 1
            tell(
                "evaluation", **TOTALS | {"samples": 100 * epoch}, metric=accuracy, samples_evaluated=10, took_seconds=0
            )
        tell("counted", forward=10, training=30)
        tell("computed", dtypes=["float32"], window=[0.0, 1.0])
        tell("chosen", metric=accuracy, epoch=1)
        if does in ("let go", "let go at once"):  # of its device, and end when the next trial has begun
            following = folder.parents[1] / f"{number + 1:05d}"
            while does == "let go" and not following.exists():  # which is ready by then
                time.sleep(0.01)
            end(folder)
            while not (following / "noderank0" / "begun").exists():
                time.sleep(0.01)
        if does == "save slowly":
            end(folder)
            time.sleep(1.0)
        tell("trial_end", trial=number)
    given = {"trained": 100 * spec["epochs"], "evaluated": 10 * (1 + spec["epochs"])}
    (folder / "handed_out.jsonl").write_text(json.dumps(moment("handed_out") | given) + "\n")
    return 0


def moment(kind: str) -> dict[str, object]:
    return {"event": kind, "time": time.time(), "clock": time.perf_counter_ns()}


def end(folder: Path) -> None:
    """The last sign of life, of a trial that computes no more."""
    beat(folder, 1, "end")


def beat(folder: Path, step: int, phase: str) -> None:
    """A sign of life."""
    packed = struct.pack("=qqqqd", os.getpid(), 0, step, PHASES.index(phase), time.monotonic())
    (folder / "rank0.heartbeat").write_bytes(packed)


if __name__ == "__main__":
    sys.exit(main())
