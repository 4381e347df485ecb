"""The agent's end of an examination: the referee's process is started when no rank runs any more, and heard."""

from __future__ import annotations

import contextlib
import json
import time
from pathlib import Path

from proofmark.process.answering.pipe import AnswerPipe
from proofmark.process.child import Child
from proofmark.process.scratch.own_directory import lay_open, remove
from proofmark.record.events.log import EventLog
from proofmark.training.outcome.event_types import EXAMINED
from proofmark.training.spec import STEP, WEIGHTS, TrainingSpec

LOG = "examiner.log"
"""What the process printed."""

PATIENCE = 4.0
"""How many set-ups it may take: it loads the data as each rank's feeder did, evaluates, and replays steps on the
processor; what was trained for hours is lost without it."""

LONGEST = 1 << 20
"""Bytes of its answer."""


def examine(path: Path, spec: TrainingSpec, node: int, log: EventLog, digest: str | None) -> None:
    """Have what the ranks left examined, write down what was found, and remove it.

    Args:
        path: of the spec.
        spec: what was trained.
        node: this one, where rank 0 was.
        log: the agent's.
        digest: of the weights, as rank 0 told it when training ended; None where it told none.

    Raises:
        OSError: no space, no permission.
    """
    directory = spec.own_directory(node, 0)
    lay_open(directory)
    if not (directory / WEIGHTS).exists() and not _steps(directory):
        return
    pipe = AnswerPipe(LONGEST)
    with pipe.given_away() as descriptor:
        arguments, printed = [str(path), str(node), digest or ""], spec.node_directory(node) / LOG
        child = Child("proofmark.training.outside.examiner", arguments, log=printed, passed=[descriptor])
    try:
        answer = pipe.receive(child, time.monotonic() + PATIENCE * spec.setup_timeout)
        child.has_ended(within=5)
        child.kill()
        found = json.loads(answer) if answer is not None else {"reason": f"its process {child.cause_of_death()}"}
    except ValueError as error:
        found = {"reason": f"its process gave no answer: {error}"}
    except TimeoutError:
        took = f"{PATIENCE:g} times --setup-timeout {spec.setup_timeout:g}"
        found = {"reason": f"it took longer than {took}: give it more"}
    finally:
        child.kill()
        pipe.close()
        _clear(directory)
    log.write(EXAMINED, **found)


def _steps(directory: Path) -> list[Path]:
    return sorted(directory.glob(STEP.format("*")))


def _clear(directory: Path) -> None:
    """What was left is as large as the model."""
    with contextlib.suppress(OSError):
        (directory / WEIGHTS).unlink()
    remove(directory / WEIGHTS)  # a folder
    for folder in _steps(directory):
        remove(folder)
