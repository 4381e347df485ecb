"""The record of a training case at one scale: every run (seed) with its curves, times and figures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pydantic import Field

from proofmark.record.envelope import CaseRecord
from proofmark.record.parts import Check, Contention, Monitoring, Part, Rate
from proofmark.record.policy import RESTS_ON, RestsOn
from proofmark.record.provenance import Container, Host, Instances, Launched
from proofmark.rules.aims import Aim, Aims
from proofmark.training.outcome.examined import Examination, HandedOut, Standing


class Evaluation(Part):
    """The metric over the validation set at one moment of training. Null: it was no finite number."""

    SPEEDS = frozenset({"seconds", "began", "ended"})

    samples: int
    seconds: float | None = Field(description="since training began, evaluations included; null: withheld")
    metric: float | None
    others: dict[str, float | None] = Field(default_factory=dict, description="values but the headline, by name")
    began: float | None = Field(default=None, description="seconds since the epoch, as `ended`")
    ended: float | None = None


class Epoch(Part):
    """One pass over the training data, counted from 0. Seconds since the epoch of all clocks."""

    number: int
    began: float
    ended: float


class NotedStep(Part):
    """The first step and every `log_freq`th, when its loss was noted. `time` is in seconds since the epoch."""

    step: int
    epoch: int
    samples: int
    time: float
    learning_rate: float
    loss: float | None


class Rates(Part):
    """Items per second over all ranks: FlagPerf's p_whole, p_train and p_core.

    `raw` is over all of training; `no_eval` leaves evaluations out; `pure_compute` counts the synchronised compute of
    the slowest rank alone.
    """

    raw: float
    no_eval: float | None
    pure_compute: float | None


class Split(Part):
    """Where the time of rank 0 went, in seconds. `init` lies before training; `other` is the referee's own."""

    init: float
    data: float
    compute: float
    communication: float | None = Field(default=None, description="the part of compute that went to the other ranks")
    evaluation: float
    checkpoint: float
    other: float
    confirmation: float | None = Field(default=None, description="left out of training by older logs; null: none")


class Communication(Part):
    """The share of a rank's compute in which it waited for other ranks or exchanged with them, and computed nothing.

    Measured on some of its steps; an exchange during which the rank still computes gradients is not in it.
    """

    share: float | None
    steps: int = Field(description="on which it was measured")
    reason: str | None = Field(default=None, description="why the share is null")


class Rank(Part):
    """One rank's own figures."""

    SPEEDS = frozenset({"compute_seconds", "data_seconds", "communication"})

    rank: int
    node: int | None = None
    steps: int | None = Field(default=None, description="at its end; null: its log has no end")
    isolation: Literal["wall", "process"] | None = Field(default=None, description="null: it came to none")
    compute_seconds: float | None = None
    data_seconds: float | None = None
    communication: Communication | None = Field(default=None, description="null at one process")
    host_peak_bytes: int | None = None
    device_peak_bytes: int | None = None
    device_total_bytes: int | None = None

    @property
    def communication_seconds(self) -> float | None:
        """The part of its compute that went to the other ranks; None where that was not measured."""
        if self.communication is None or self.communication.share is None or self.compute_seconds is None:
            return None
        return self.communication.share * self.compute_seconds


class Failure(Part):
    """What ended a run before its time: who, why, and what they last said."""

    ranks: tuple[int, ...] = Field(description="those at fault; empty if it can't be told")
    cause: str
    diverged: bool = Field(default=False, description="the loss was no finite number any more")
    last_lines: str = Field(default="", description="of the logs of those ranks; Python stacks where they hung")


class Confirmation(Part):
    """The final weights in the case's own model, evaluated by the referee: that decides. Null: no finite number."""

    SPEEDS = frozenset({"seconds"})

    samples: int = Field(description="after which training ended with them")
    metric: float | None
    others: dict[str, float | None] = Field(default_factory=dict, description="values but the headline, by name")
    seconds: float = Field(description="that it took, outside of training")


class SeedRun(Part):
    """One training from one seed."""

    SPEEDS = frozenset(
        {"e2e_seconds", "init_seconds", "train_seconds", "no_eval_seconds", "pure_compute_seconds", "rates", "split"}
        | {"train_began", "train_ended", "epochs", "notes", "pace"}
    )
    ADDED = frozenset({"begun", "pace"})

    seed: int | None
    started: float = Field(description="seconds since the epoch")
    begun: float | None = Field(
        default=None,
        description="likewise, when a launcher had its agents started: `init_seconds` and `e2e_seconds` count from "
        "there; null: from `started`",
    )
    converged: bool | None = Field(description="null: the run did not come to its end")
    metric: float | None = Field(
        description="the last evaluation's; if confirmed, the case's own model's; if examined on all data, that's"
    )
    metrics: dict[str, float | None] = Field(default_factory=dict, description="its values but the headline, by name")
    steps: int | None
    samples: int | None
    e2e_seconds: float | None
    init_seconds: float | None
    train_seconds: float | None
    no_eval_seconds: float | None
    pure_compute_seconds: float | None
    rates: Rates | None
    pace: Rate | None = Field(
        default=None, description="of rank 0's compute, and its spread over parts of the training; null: too short"
    )
    tokens_per_item: float | None = Field(
        default=None, description="padding left out, on average; null: samples are no text, or nobody counted"
    )
    split: Split | None
    parameters: int | None = Field(description="of the model")
    train_began: float | None = Field(default=None, description="seconds since the epoch, as `train_ended`")
    train_ended: float | None = None
    epochs: tuple[Epoch, ...] = ()
    evaluations: tuple[Evaluation, ...] = ()
    uncounted: int = Field(default=0, description="evaluations in a log of others that say no number of samples")
    losses: tuple[tuple[int, float | None], ...] = Field(
        default=(), description="(step, mean loss over the global batch), downsampled"
    )
    notes: tuple[NotedStep, ...] = Field(default=(), description="downsampled, as epochs and evaluations are")
    ranks: tuple[Rank, ...] = ()
    launched: tuple[Launched, ...] = Field(
        default=(), description="nodes in their order; empty: this machine's processes"
    )
    instances: Instances | None = Field(default=None, description="null: it was no service that ran it")
    servers: tuple[SeedRun, ...] = Field(default=(), description="independent ones of a service, but the first")
    caches_cleared: bool | None = Field(default=None, description="of the hosts' disks before it; null: nobody asked")
    nodes: tuple[Host | None, ...] = Field(default=(), description="in their order; null: its agent did not begin")
    checkpoints: tuple[int, ...] = Field(default=(), description="steps at which one was begun")
    resumed_from: int | None = Field(default=None, description="step of the checkpoint that the run went on from")
    failure: Failure | None = None
    monitoring: Monitoring | None = None
    contention: Contention | None = Field(
        default=None,
        description="on the node where others took most; null: training did not come to its end",
    )
    checks: tuple[Check, ...] = Field(default=(), description="of the training's honesty")
    confirmation: Confirmation | None = Field(default=None, description="null: the vendor adapts nothing, or a miss")
    examination: Examination | None = Field(default=None, description="null: a miss without an audit, or not recorded")
    handed_out: HandedOut | None = Field(default=None, description="null: not all ranks' feeders have counted")
    standing: tuple[Standing, ...] = Field(default=(), description="what was verified, and what only claimed")

    @property
    def zero(self) -> float:
        """The moment that its seconds count from: no queue and no sending of code is the training's."""
        return self.started if self.begun is None else self.begun

    @property
    def samples_to_target(self) -> int | None:
        """Samples trained on up to the evaluation that reached the target."""
        return self.evaluations[-1].samples if self.converged and self.evaluations else None

    @property
    def seconds_to_target(self) -> float | None:
        """Seconds of training up to that evaluation."""
        return self.evaluations[-1].seconds if self.converged and self.evaluations else None


class TrainingRecord(CaseRecord):
    """Everything about one training case at one scale. What a log of others does not say of theirs is null."""

    SPEEDS = frozenset(
        {"seconds", "seconds_to_target", "rates", "items_per_second_per_device", "tokens_per_second"}
    ) | {"tokens_per_second_per_device"}

    scale: str
    nnodes: int | None
    nproc: int | None
    metric: str
    target: float | None
    better: str
    others: Aims = Field(default_factory=dict, description="the metric's other values, judged or shown")
    global_batch_size: int | None
    train_batch_size: int | None = Field(description="samples that a process takes at once")
    optimizer: str | None = Field(default=None, description="its class")
    validation_items: int | None = None
    weights_given: bool = Field(default=False, description="whether training was to begin from given weights")
    adapted: tuple[str, ...] = Field(default=(), description="steps of training that the vendor does its own way")
    unsupported: str | None = Field(default=None, description="why the vendor does not train at the precision")
    fed: bool = Field(default=False, description="whether processes without others' code loaded, and counted, the data")
    audited: bool = Field(default=False, description="whether steps were recorded, and done again outside the ranks")
    read_from: tuple[str, ...] = Field(default=(), description="logs of others; empty: measured by Proofmark")
    ended: bool = Field(default=True, description="whether the event log came to its end")
    runs: tuple[SeedRun, ...] = ()
    repeats: int = Field(description="how many runs were asked for")
    seconds_to_target: float | None = Field(
        default=None, description="olympic mean of the runs from five on, else their mean"
    )
    rates: dict[str, Rate] = Field(default_factory=dict, description="items per second over the runs")
    items_per_second_per_device: float | None = None
    tokens_per_second: float | None = Field(
        default=None, description="padding left out; counted in, where a run has no `tokens_per_item`"
    )
    tokens_per_second_per_device: float | None = Field(default=None, description="as a log of others says")

    @property
    def aims(self) -> dict[str, Aim]:
        """All values of the metric, the headline first."""
        headline = Aim(target=self.target, better="lower" if self.better == "lower" else "higher")
        return {self.metric: headline, **{name: aim for name, aim in self.others.items() if name != self.metric}}

    @property
    def trainings(self) -> Sequence[SeedRun]:
        """Its runs, and those of a service's further servers, each the whole case by itself."""
        return [each for run in self.runs for each in (run, *run.servers)]

    @property
    def variant(self) -> dict[str, str]:
        """The scale."""
        return {"scale": self.scale}

    @property
    def run_name(self) -> str:
        """The run's name, with its scale."""
        return f"{super().run_name}/{self.scale}"

    @property
    def claimed(self) -> frozenset[RestsOn]:
        """What was not verified in each of its runs; tokens where it has any."""
        runs = [] if self.in_vendors_image else self.trainings  # agents, feeders and the examination too
        sure = [{each.what for each in run.standing if each.verified} for run in runs]
        due = (what for what in RESTS_ON if what != "tokens" or self.tokens_per_second is not None)
        return frozenset(what for what in due if not sure or not all(what in each for each in sure))

    @property
    def hosts(self) -> Sequence[Host]:
        """The hosts of its nodes where a launcher found them, otherwise the session's."""
        launched = next((run.launched for run in self.runs if run.launched), ())
        return [node.host for node in launched if node.host] or super().hosts

    @property
    def containers(self) -> Sequence[Container]:
        """Those of all nodes, of all runs."""
        return [node.container for run in self.runs for node in run.launched if node.container]

    @property
    def fresh_weights(self) -> bool:
        """Whether none were given."""
        return self.weights is None

    @property
    def batch_size(self) -> int | None:
        """Samples of a step, of all processes."""
        return self.global_batch_size

    @property
    def world(self) -> int | None:
        """All processes."""
        return self.nnodes * self.nproc if self.nnodes and self.nproc else None

    @property
    def resumed(self) -> bool:
        """Whether any run went on from a checkpoint: a conformance result, no rankable time."""
        return any(run.resumed_from is not None for run in self.runs)

    @property
    def unrankable(self) -> list[str]:
        """A resumed training has no time to rank."""
        return ["it was resumed from a checkpoint, and has no time to rank"] if self.resumed else []
