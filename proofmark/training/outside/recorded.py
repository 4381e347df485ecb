"""Which step of a training a recorded one is, by the word of rank 0."""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from proofmark.errors import StepError
from proofmark.plain_json import is_regular_file
from proofmark.training.feeding.batches import GlobalBatches
from proofmark.training.spec import STEP, WHICH


class Which(BaseModel):
    """What rank 0 says that a step was."""

    model_config = ConfigDict(extra="forbid")
    step: int = Field(ge=1)
    epoch: int = Field(ge=0)
    batch: int = Field(ge=0)


def which_of(folder: Path, batches: GlobalBatches, steps: int) -> Which:
    """The step that was recorded in a folder.

    Args:
        folder: named after it.
        batches: the training's.
        steps: that it has at most.

    Raises:
        StepError: it says no step, or one that the training has not, or another than its name.
    """
    path = folder / WHICH
    try:
        if not is_regular_file(path):
            raise StepError(f"{folder.name}/{path.name} is not a regular file")
        which = Which.model_validate_json(path.read_bytes())
    except (OSError, ValidationError) as error:
        raise StepError(f"{folder.name}/{path.name} does not say which step it is: {error}") from None
    step = which.epoch * len(batches) + which.batch + 1
    if which.batch >= len(batches) or not folder.name == STEP.format(which.step) == STEP.format(step):
        raise StepError(f"{folder.name}/{path.name}: {which} is not a step of this training")
    if which.step > steps:  # the schedule is brought to it step by step
        raise StepError(f"{folder.name}/{path.name}: {which} is not among the training's {steps} steps")
    return which
