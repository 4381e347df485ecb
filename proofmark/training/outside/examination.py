"""The agent's end of an examination: the referee's process is started when no rank runs any more, and heard."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from proofmark.process.answering.pipe import AnswerPipe
from proofmark.process.child import Child
from proofmark.process.scratch.own_directory import lay_open, remove
from proofmark.record.events.log import EventLog
from proofmark.training.outcome.event_types import EXAMINED
from proofmark.training.outcome.replay_checks import all_replayed
from proofmark.training.spec import STEP, WEIGHTS, TrainingSpec

LOG = "examiner.log"
"""What the process printed."""

PATIENCE = 4.0
"""How many set-ups it may take: it loads the data as it was loaded for the ranks, evaluates, and replays steps on the
processor, as many as there is time for; what was trained for hours is lost without it."""

LONGEST = 1 << 20
"""Bytes of an answer."""


def examine(
    path: Path,
    spec: TrainingSpec,
    node: int,
    log: EventLog,
    digest: str | None,
    steps: int,
    data: Mapping[str, Any],
) -> None:
    """Have what the ranks left examined, write down what was found, as soon as it is, and remove it.

    Args:
        path: of the spec.
        spec: what was trained.
        node: this one, where rank 0 was.
        log: the agent's.
        digest: of the weights, as rank 0 told it when training ended; None where it told none.
        steps: after which that was.
        data: which it was trained on, as the process says that has made it for the ranks; empty where it did not.

    Raises:
        OSError: no space, no permission.
    """
    directory = spec.own_directory(node, 0)
    lay_open(directory)
    if not (directory / WEIGHTS).exists() and not _steps(directory):
        return
    if not data:  # without it nobody holds the ranks to a plan
        _clear(directory)
        log.write(EXAMINED, reason="the process that loads its data has not said which that is")
        return
    pipe, deadline = AnswerPipe(LONGEST), time.monotonic() + PATIENCE * spec.setup_timeout
    with pipe.given_away() as descriptor:
        arguments, printed = [str(path), str(node), digest or "", str(steps)], spec.node_directory(node) / LOG
        child = Child("proofmark.training.outside.examiner", arguments, log=printed, passed=[descriptor])
    found: dict[str, Any] = {}
    try:
        while (answer := pipe.receive(child, deadline)) is not None:
            found = json.loads(answer)
            log.write(EXAMINED, **data, **found)
        child.has_ended(within=5)
        child.kill()
        lacking = f"its process {child.cause_of_death()}"
    except ValueError as error:
        lacking = f"its process gave no answer: {error}"
    except TimeoutError:
        took = f"{PATIENCE:g} times --setup-timeout {spec.setup_timeout:g}"
        lacking = f"it took longer than {took}: give it more"
    finally:
        child.kill()
        pipe.close()
        _clear(directory)
    if not found:
        log.write(EXAMINED, **data, reason=lacking)
    elif spec.audited and "unreplayed" not in found and not all_replayed(found.get("steps")):
        log.write(EXAMINED, **data, **found, unreplayed=lacking)


def _steps(directory: Path) -> list[Path]:
    return sorted(directory.glob(STEP.format("*")))


def _clear(directory: Path) -> None:
    """What was left is as large as the model."""
    with contextlib.suppress(OSError):
        (directory / WEIGHTS).unlink()
    remove(directory / WEIGHTS)  # a folder
    for folder in _steps(directory):
        remove(folder)
