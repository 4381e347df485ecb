"""What the events of a training must hold: those of its session and of each node's agent."""

from __future__ import annotations

from typing import Annotated, Any, NotRequired

from pydantic import Field

from proofmark.record.events.types import Configuration as _Configuration
from proofmark.record.events.types import (
    Count,
    EventReader,
    Fields,
    InStep,
    Items,
    Moment,
    OnHost,
    Positive,
    RunBegin,
    Seconds,
    Text,
    Typed,
    configured,
    fits,
    part,
)
from proofmark.record.parts import Contention, Identity
from proofmark.record.provenance import Host, Instances, Launched

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
    resume: NotRequired[Text | None]


class _RoundBegin(Typed):
    round: Count
    seed: Count


class _Lost(Fields):
    node: Count | None
    reason: Text


class _Least(Fields):
    least: Seconds


class _Served(Fields):
    started: NotRequired[Moment]
    ended: NotRequired[Moment]


class _RoundEnd(Typed):
    round: Count
    status: Text
    reason: NotRequired[Text | None]
    left: NotRequired[Text]
    started: NotRequired[Moment | None]
    hosts: NotRequired[list[Annotated[OnHost, fits(Launched)]]]
    lost: NotRequired[list[_Lost]]
    caches_cleared: NotRequired[bool | None]
    watched: NotRequired[_Least]
    ended: NotRequired[Moment | None]
    servers: NotRequired[list[_Served]]
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


class _Drawn(Typed):
    chances: Annotated[list[Annotated[float, Field(gt=0, le=1)]], Field(max_length=1024)]


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
    shown_before: NotRequired[Count]
    evaluated: NotRequired[Count | None]
    evaluated_before: NotRequired[Count]
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
    drawn: NotRequired[Seconds | None]
    replaced: NotRequired[bool]
    due: NotRequired[bool]


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
    items: NotRequired[Items]
    data: NotRequired[Annotated[dict[str, Any], part(Identity)]]
    steps: NotRequired[list[_Replayed]]
    unreplayed: NotRequired[Text]


DRAWN = "drawn"
"""The numbers that the first agent has drawn."""

WATCHED = "watched"
"""The least and the most seconds that rank 0's training can have taken, to its end and to its last evaluation, or to
the end that what was handed out is counted by; the last one counts."""

CONTENTION = "contention"
"""What others took of the agent's machine's cores, from the look that saw training begin to the first one after its
end; the last one counts."""

FED = "fed"
"""What a rank was handed out."""

EXAMINED = "examined"
"""What was found of the last weights, and of recorded steps; the last one counts, and has all of those before."""

MONITOR_FAILED = "monitor_failed"
"""What was wrong with the node's monitor."""

OUTLIVED = "outlived"
"""Which processes of a node's ranks go on though they were killed; told with the first of these ranks."""

AGENT_EVENTS = EventReader(
    {
        "agent_begin": Annotated[Typed, fits(Host)],
        "rank_died": _Died,
        "rank_ended": _Ended,
        OUTLIVED: _Ended,
        "hang": _Hang,
        "stopped": Typed,
        MONITOR_FAILED: Reason,
        DRAWN: _Drawn,
        WATCHED: _Watched,
        CONTENTION: Annotated[Typed, fits(Contention)],
        FED: _Fed,
        EXAMINED: _Examined,
    }
)
"""Events of a node's agent."""
