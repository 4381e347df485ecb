"""What the events of a search must hold: those of its session, of its driver's journal, and of each trial."""

from __future__ import annotations

from typing import Annotated, Any, Literal, NotRequired

from pydantic import AfterValidator, Field, TypeAdapter, ValidationError

from proofmark.automl.case import LEAST_MARK
from proofmark.plain_json import first_of
from proofmark.record.events.types import (
    IDENTITY,
    Count,
    EventReader,
    Fields,
    InStep,
    Items,
    Line,
    Moment,
    Positive,
    Rate,
    Seconds,
    Text,
    Typed,
    configured,
    fits,
    part,
)
from proofmark.record.events.types import Configuration as _Configuration
from proofmark.record.parts import Check, Contention, Identity
from proofmark.record.provenance import Host
from proofmark.rules.config import EffectiveConfig
from proofmark.training.outcome.event_types import Reason, TrainedBegin
from proofmark.training.outcome.rank_event_types import RANK_KINDS
from proofmark.wall.isolation import Isolation

Number = Annotated[int, Field(ge=0, lt=1 << 31)]
Share = Annotated[float, Field(ge=0, le=1)]
Digest = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]


class _Settings(Fields):
    """The part of a configuration by which a search is reported and judged."""

    min_seconds: Seconds
    mark_seconds: Annotated[float, Field(ge=LEAST_MARK, lt=1e12)]
    first_mark: Positive
    max_trials: Positive
    rankable: bool


_SETTINGS = TypeAdapter(_Settings)


def _is_of_a_search(values: Any) -> Any:
    config = EffectiveConfig.from_dict(values)
    try:
        _SETTINGS.validate_python({name: config.get(name) for name in _Settings.__annotations__})
    except ValidationError as error:
        raise ValueError(first_of(error)) from None
    return values


class _SearchBegin(TrainedBegin):
    trials_among_others: NotRequired[bool]
    config: Annotated[_Configuration, configured("precision"), AfterValidator(_is_of_a_search)]


class _Folder(Typed):
    folder: Text
    resumed: bool


SESSION_EVENTS = EventReader(
    {
        "run_begin": _SearchBegin,
        "search": _Folder,
        "contention": Annotated[Typed, fits(Contention)],
        "search_failed": Reason,
        "interrupted": InStep,
        "partial": Typed,
        "stopped": Typed,
        "run_end": Typed,
    }
)
"""Events of the process that leads a search."""


class _Linked(Typed):
    previous: Digest


class _DriverBegin(_Linked):
    config_hash: Text
    devices: Positive
    places: NotRequired[Positive]
    conditions: NotRequired[Digest]
    host: Annotated[dict[str, Any], fits(Host)]


class PerImage(Fields):
    """FLOPs of one image: forward, and of a step on it; and by the original's formulas."""

    forward: Count
    training: Count
    compatible_forward: Count
    compatible_training: Count
    parameters: Count


class HyperParameters(Fields):
    """What the study chooses."""

    kernel_size: NotRequired[Positive | None]
    batch_size: Positive
    dropout: Annotated[float, Field(ge=0, lt=1)]


class _TrialBegin(_Linked):
    trial: Number
    round: Number
    attempt: Positive
    parent: Number | None
    operations: list[dict[str, Any]]
    graph: dict[str, Any]
    per_image: PerImage
    hyperparameters: HyperParameters
    study: Number
    sampled: bool
    epochs: Positive
    seed: Count
    generated_seconds: Seconds
    device: Text


class Epoch(Fields):
    """What one evaluation, and the training before it, came to."""

    clock: Count
    images: Count
    evaluated: Count
    accuracy: Share | None
    loss: float | None
    seconds: Seconds


class Counted(Fields):
    """FLOPs of one image as torch's counter has them."""

    forward: Count
    training: Count


class Energy(Fields):
    """What the devices took while a trial trained."""

    joules: Seconds | None
    reason: Text | None
    method: NotRequired[Text | None]


class TrialData(Fields):
    """SHA-256 of what a trial trained on, and of what it was evaluated on."""

    train: Digest
    evaluated: Digest


class Outcome(Fields):
    """What a trial came to, by what it left."""

    status: Literal["finished", "failed", "stopped"]
    reason: Text | None
    accuracy: Share | None
    best_epoch: Count | None
    stopped_early: Text | None
    epochs: list[Epoch]
    counted: Counted | None
    dtypes: list[Text]
    adapted: NotRequired[list[Text]]
    checks: list[Annotated[dict[str, Any], fits(Check)]]
    energy: Energy
    isolation: NotRequired[Annotated[dict[str, Any], part(Isolation)] | None]
    host: NotRequired[Text | None]
    log_sha256: Digest | None
    train_seconds: Seconds
    data: NotRequired[TrialData | None]


class _TrialEnd(_Linked, Outcome):
    trial: Number


class DataItems(Fields):
    """How many items the splits have that trials train on and are evaluated on."""

    train: Count
    search: Count


class _Examined(_Linked):
    trial: Number
    accuracy: Share | None
    items: Count
    dataset: Annotated[dict[str, Any], part(Identity)] | None
    reason: Text | None
    data_items: NotRequired[DataItems | None]
    chosen_on: NotRequired[Annotated[dict[str, Any], part(Identity)] | None]
    check: NotRequired[Annotated[dict[str, Any], fits(Check)] | None]


class _Datasets(_Linked):
    dataset: Annotated[dict[str, Any], part(Identity)]


class _InitModels(_Linked):
    networks: Annotated[list[Annotated[dict[str, Any], part(Identity)]], Field(min_length=1)]


GAVE_UP = "trials in a row have failed"
"""In the reason of a search's end, by which its verdict, and who resumes it, know that it gave up."""


NO_DEVICE = "no device is left"
"""Likewise: processes on all of them go on though they were killed."""


def gave_up(reason: str | None) -> bool:
    """Whether a search that ended for this reason gave up: once the cause is mended, another driver goes on."""
    return reason is not None and any(words in reason for words in (GAVE_UP, NO_DEVICE))


class _SearchEnd(_Linked):
    reason: Text


JOURNAL_EVENTS = EventReader(
    {
        "init_models": _InitModels,
        "driver_begin": _DriverBegin,
        "trial_begin": _TrialBegin,
        "trial_end": _TrialEnd,
        "going_on": _Linked,
        "data": _Datasets,
        "search_end": _SearchEnd,
        "contention": Annotated[_Linked, fits(Contention)],
        "examined": _Examined,
    }
)
"""Events of a search's journal."""


class _TrialOwn(Typed):
    trial: Number
    host: NotRequired[Text]


class _CountedEvent(Typed):
    forward: Count
    training: Count


class _HandedOut(Typed):
    trained: Count
    evaluated: Count


HANDED_EVENTS = EventReader({"handed_out": _HandedOut}, closed=True)
"""Events of what a trial's ranks were handed."""


class _Items(Typed):
    train: Count
    search: Count


class _Searched(Typed):
    accuracy: Share
    images: Items
    of_all: Items


class _Data(Typed):
    train: Digest
    evaluated: Digest


class _Computed(Typed):
    dtypes: list[Text]
    window: Annotated[list[Moment], Field(min_length=2, max_length=2)]


class _Chosen(Typed):
    metric: Share | None
    epoch: Count


class _Measured(Typed):
    joules: Rate | None
    reason: Text | None


class _TrialFailed(Typed):
    reason: Line
    rank: NotRequired[Number]


TRIAL_EVENTS = EventReader(
    {
        **RANK_KINDS,
        "trial_begin": _TrialOwn,
        "data": _Data,
        "evaluated_on": IDENTITY,
        "chosen_on": IDENTITY,
        "items": _Items,
        "searched": _Searched,
        "counted": _CountedEvent,
        "computed": _Computed,
        "chosen": _Chosen,
        "energy": _Measured,
        "stopped_early": Reason,
        "monitor_failed": Reason,
        "trial_failed": _TrialFailed,
        "trial_end": _TrialOwn,
    },
    closed=True,
)
"""Events of a trial: those of a training's rank, and its own."""
