"""What the events of a training's ranks must hold, which a vendor's code can make up."""

from __future__ import annotations

from typing import Annotated, Any, NotRequired

from pydantic import AfterValidator, ConfigDict, Field
from typing_extensions import TypedDict

from proofmark.errors import harmless
from proofmark.record.events.types import (
    IDENTITY,
    Count,
    Counted,
    EventReader,
    Fields,
    Line,
    Rate,
    Seconds,
    Text,
    Typed,
    fits,
    part,
)
from proofmark.record.parts import Check, Identity
from proofmark.wall.isolation import Isolation

Steps = Annotated[int, Field(ge=0, lt=1 << 40)]
"""More than a training has: times the samples of one, it is a number of 64 bits yet."""


class _Rank(Typed):
    rank: Count


class Isolated(Typed):
    """How a process is kept from the rest."""

    isolation: Annotated[dict[str, Any], part(Isolation)]


class _RankFailed(_Rank):
    reason: Line


def _said_in_a_line(event: dict[str, Any]) -> dict[str, Any]:
    return event | {"meaning": harmless(event["meaning"])}


class _Dataset(Typed):
    items: NotRequired[Count | None]
    validation_items: NotRequired[Count]


class _Model(Typed):
    parameters: Count


class _Optimizer(Typed):
    name: Text


class _Epoch(Typed):
    epoch: Count


class _Adapted(Typed):
    steps: Annotated[list[Annotated[str, Field(max_length=256)]], Field(max_length=64)]


class _TrainBegin(Typed):
    steps: Steps
    samples: Count
    train_seconds: NotRequired[Seconds]
    compute_seconds: NotRequired[Seconds]
    evaluation_seconds: NotRequired[Seconds]


class _Communication(TypedDict):
    __pydantic_config__ = ConfigDict(extra="ignore", strict=True, allow_inf_nan=False)  # type: ignore[misc]

    seconds: Seconds
    of: Seconds
    steps: Count
    reason: Annotated[str, Field(max_length=4096)] | None


class _Totals(Typed):
    epoch: Count
    step: Steps
    samples: Count
    train_seconds: Seconds
    data_seconds: Seconds
    compute_seconds: Seconds
    evaluation_seconds: Seconds
    checkpoint_seconds: Seconds
    confirmation_seconds: NotRequired[Seconds]
    communication: _Communication | None


class _Steps(_Totals):
    first: Steps
    losses: Annotated[list[float | None], Field(min_length=1)]
    learning_rate: float
    total_steps: Count


def _end_at_its_step(event: dict[str, Any]) -> dict[str, Any]:
    if event["first"] + len(event["losses"]) - 1 != event["step"]:
        losses = f"{len(event['losses'])} losses from step {event['first']} on"
        raise ValueError(f"{losses} do not end at step {event['step']}")
    return event


_Others = Annotated[dict[Annotated[str, Field(max_length=256)], float | None], Field(max_length=64)]
"""Metrics beside the case's first, by name: very many evaluations are kept."""


class _Evaluation(_Totals):
    metric: float | None
    others: NotRequired[_Others]
    samples_evaluated: NotRequired[Rate]
    took_seconds: Seconds


class _TrainEnd(_Totals):
    converged: bool
    weights: NotRequired[Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]]
    tokens: NotRequired[Count | None]


class _Step(Typed):
    step: Steps


class _Apart(Fields):
    data: Annotated[float, Field(gt=-1e12, lt=1e12)]
    compute: Annotated[float, Field(gt=-1e12, lt=1e12)]


class _Resumed(_Step):
    apart: NotRequired[_Apart]


class _Confirmation(_Step):
    samples: Count
    metric: float | None
    others: NotRequired[_Others]
    took_seconds: Seconds


class _Memory(Typed):
    host_peak_bytes: Count | None
    device_peak_bytes: Count | None
    device_total_bytes: Count | None


RANK_KINDS: dict[str, Any] = {
    "rank_begin": _Rank,
    "isolated": Isolated,
    "init_begin": Typed,
    "dataset": Annotated[_Dataset, fits(Identity)],
    "model": _Model,
    "adapted": _Adapted,
    "flops": Counted,
    "weights": IDENTITY,
    "optimizer": _Optimizer,
    "init_end": Typed,
    "train_begin": _TrainBegin,
    "epoch_begin": _Epoch,
    "steps": Annotated[_Steps, AfterValidator(_end_at_its_step)],
    "pace": _Totals,
    "evaluation": _Evaluation,
    "check": Annotated[Typed, fits(Check), AfterValidator(_said_in_a_line)],
    "confirmation": _Confirmation,
    "checkpoint": _Step,
    "resumed": _Resumed,
    "diverged": _Step,
    "train_end": _TrainEnd,
    "memory": _Memory,
    "rank_end": Typed,
    "rank_failed": _RankFailed,
}
"""Events of a rank, which a vendor's code can write too."""

RANK_EVENTS = EventReader(RANK_KINDS, closed=True)
