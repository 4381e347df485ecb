"""What the events of a training must hold: those of its session, of each node's agent, and of each rank."""

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
    InStep,
    Line,
    Moment,
    OnHost,
    Positive,
    Rate,
    RunBegin,
    Seconds,
    Text,
    Typed,
    configured,
    fits,
    part,
)
from proofmark.record.events.types import Configuration as _Configuration
from proofmark.record.parts import Check, Contention, Identity
from proofmark.record.provenance import Host, Instances, Launched
from proofmark.wall.isolation import Isolation

Code = Annotated[int, Field(gt=-(1 << 31), lt=1 << 31)]


class TrainedBegin(RunBegin):
    """What runs begin with in which something is trained."""

    devices: Positive
    adapted: list[str]
    unsupported: NotRequired[Text | None]


class _TrainingBegin(TrainedBegin):
    config: Annotated[
        _Configuration, configured("better", "repeat", "global_batch_size", "gradient_accumulation_steps", "precision")
    ]
    scale: Text
    nnodes: Positive
    nproc: Positive
    audited: NotRequired[bool]
    fed: NotRequired[bool]


class _RoundBegin(Typed):
    round: Count
    seed: Count


class _Lost(Fields):
    node: Count | None
    reason: Text


class _Least(Fields):
    least: Seconds


class _RoundEnd(Typed):
    round: Count
    status: Text
    reason: NotRequired[Text | None]
    started: NotRequired[Moment | None]
    hosts: NotRequired[list[Annotated[OnHost, fits(Launched)]]]
    lost: NotRequired[list[_Lost]]
    caches_cleared: NotRequired[bool | None]
    watched: NotRequired[_Least]
    ended: NotRequired[Moment | None]
    logs: NotRequired[dict[Text, Text]]
    instances: NotRequired[Annotated[dict[str, Any], part(Instances)] | None]


SESSION_EVENTS = EventReader(
    {
        "run_begin": _TrainingBegin,
        "round_begin": _RoundBegin,
        "round_end": _RoundEnd,
        "interrupted": InStep,
        "partial": Typed,
        "stopped": Typed,
        "run_end": Typed,
    }
)
"""Events of the process that leads a training."""


class _Died(Typed):
    rank: Count
    code: Code
    died: Moment


class _Ended(Typed):
    rank: Count
    reason: Text


class _Hang(Typed):
    rank: Count
    step: Count
    phase: Text
    seconds: Seconds
    position: Annotated[list[int | bool], Field(min_length=3, max_length=3)]
    loaders: NotRequired[Text]


class Reason(Typed):
    """Why something was not to be."""

    reason: Text


class _Watched(Typed):
    least: Seconds
    most: Seconds
    to_evaluation: NotRequired[Annotated[list[Seconds], Field(min_length=2, max_length=2)]]


class _Fed(Typed):
    rank: Count
    samples: Count
    tokens: Count | None
    by_the_end: Count | None
    before: NotRequired[Count]
    began: NotRequired[Annotated[list[Count], Field(min_length=2, max_length=2)]]


class _Replayed(Fields):
    step: Count
    gradient: Seconds | None
    noise: Seconds
    rounding: NotRequired[Seconds]
    update: Seconds | None
    unseen: NotRequired[Text | None]
    state: NotRequired[Text | None]
    seeded: bool | None
    misfits: list[Text]
    astray: NotRequired[Seconds]
    stray: NotRequired[Text | None]


class _Value(Fields):
    metric: float | None
    error: Seconds
    weight: Seconds | None


class _Examined(Typed):
    took_seconds: NotRequired[Seconds]
    reason: NotRequired[Text]
    misfits: NotRequired[list[Text]]
    metric: NotRequired[float | None]
    error: NotRequired[Seconds]
    weight: NotRequired[Seconds | None]
    samples: NotRequired[Count]
    of: NotRequired[Count]
    others: NotRequired[dict[Text, _Value]]
    items: NotRequired[Positive]
    data: NotRequired[Annotated[dict[str, Any], part(Identity)]]
    steps: NotRequired[list[_Replayed]]


AGENT_EVENTS = EventReader(
    {
        "agent_begin": Annotated[Typed, fits(Host)],
        "rank_died": _Died,
        "rank_ended": _Ended,
        "hang": _Hang,
        "stopped": Typed,
        "monitor_failed": Reason,
        "watched": _Watched,
        "contention": Annotated[Typed, fits(Contention)],
        "fed": _Fed,
        "examined": _Examined,
    }
)
"""Events of a node's agent."""


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
    steps: list[Text]


class _TrainBegin(Typed):
    steps: Count
    samples: Count
    train_seconds: NotRequired[Seconds]


class _Communication(TypedDict):
    __pydantic_config__ = ConfigDict(extra="ignore", strict=True, allow_inf_nan=False)  # type: ignore[misc]

    seconds: Seconds
    of: Seconds
    steps: Count
    reason: Annotated[str, Field(max_length=4096)] | None


class _Totals(Typed):
    epoch: Count
    step: Count
    samples: Count
    train_seconds: Seconds
    data_seconds: Seconds
    compute_seconds: Seconds
    evaluation_seconds: Seconds
    checkpoint_seconds: Seconds
    confirmation_seconds: NotRequired[Seconds]
    communication: _Communication | None


class _Steps(_Totals):
    first: Count
    losses: Annotated[list[float | None], Field(min_length=1)]
    learning_rate: float
    total_steps: Count


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
    step: Count


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
    "steps": _Steps,
    "evaluation": _Evaluation,
    "check": Annotated[Typed, fits(Check), AfterValidator(_said_in_a_line)],
    "confirmation": _Confirmation,
    "checkpoint": _Step,
    "resumed": _Step,
    "diverged": _Step,
    "train_end": _TrainEnd,
    "memory": _Memory,
    "rank_end": Typed,
    "rank_failed": _RankFailed,
}
"""Events of a rank, which a vendor's code can write too."""

RANK_EVENTS = EventReader(RANK_KINDS, closed=True)
