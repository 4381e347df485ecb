"""The record of an inference case: its seven steps, what was measured, and what its engine was held to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import Field, field_validator, model_validator

from proofmark.record.envelope import CaseRecord
from proofmark.record.parts import Check, Contention, Flops, Identity, Memory, Monitoring, Part, Rate, Seconds
from proofmark.record.policy import RestsOn, default_policy
from proofmark.record.provenance import Container, Host, Launched
from proofmark.rules.aims import Aim, Better, factor_kept
from proofmark.wall.isolation import Isolation

STEPS = (
    "init",
    "data_and_model",
    "framework_validation",
    "export",
    "compile",
    "engine_inference",
    "summary",
)
"""The seven steps of an inference case, in order."""

MEASURED = ("framework_validation", "engine_inference", "audit")
"""Steps whose seconds are those of a measurement."""

StepStatus = Literal["done", "skipped", "failed", "not_reached"]


class Step(Part):
    """One of the seven steps. `reason` says why it was skipped or how it failed."""

    SPEEDS = frozenset({"seconds"})

    name: str
    status: StepStatus
    seconds: float | None = None
    reason: str | None = None
    kind: Literal["unsupported", "error"] | None = None
    detail: str | None = Field(default=None, description="the traceback of a failed step")

    def speeds(self) -> frozenset[str]:
        """Seconds of a step that measured nothing tell of no speed."""
        return self.SPEEDS if self.name in MEASURED else frozenset()


class Round(Part):
    """Whole passes over the data. Seconds; `core` is the sum of the compute windows."""

    SPEEDS = frozenset(
        "items filled passes batches whole_seconds core_seconds evaluation_seconds foo_seconds started "
        "contention".split()
    )

    items: int
    filled: int = Field(default=0, description="of the items: samples once more, so that no batch is short")
    passes: int = 1
    batches: int
    whole_seconds: Seconds
    core_seconds: Seconds
    evaluation_seconds: Seconds
    foo_seconds: float = Field(default=0.0, ge=0, lt=1e12, description="of compute: no inference, by its own word")
    accuracy: float | None
    weight: float | None = Field(default=None, description="of that mean, in a pass; 0: none; null in older records")
    started: float = Field(description="seconds since the epoch")
    contention: Contention | None = Field(default=None, description="while it ran")


class Measurement(Part):
    """All timed rounds of the framework or of the engine. Throughputs are items per second."""

    SPEEDS = frozenset(
        "warmup_seconds whole core loader bound_by latency_ms latency_batches core_alone repeated".split()
    )

    rounds: tuple[Round, ...]
    warmup_batches: int
    warmup_seconds: float
    whole: Rate
    core: Rate
    loader: Rate | None = Field(description="the data loader alone, in rounds between the timed ones")
    bound_by: Literal["loader", "compute", "evaluation"] | None = Field(
        description="the slowest stage; null where the slowest two lie within the noise"
    )
    latency_ms: dict[str, float] = Field(
        default_factory=dict, description="per batch: mean and the percentiles that the count supports"
    )
    latency_batches: int = 0
    core_alone: float | None = Field(
        default=None, gt=0, description="items per second with nothing loaded beside it; null: nothing was"
    )
    foo_time_reason: str | None = Field(
        default=None, description="why calls hold what is no inference, as the compiler declares; null: it does not"
    )
    repeated: tuple[str, ...] = Field(
        default=(), description="what disturbed each earlier measurement, of which this one took the place"
    )

    @property
    def foo_seconds(self) -> float:
        """Seconds of all rounds together that its calls report as no inference (`foo_time`)."""
        return sum(timed.foo_seconds for timed in self.rounds)

    def without_foo_time(self, of: Literal["whole", "core"]) -> float | None:
        """Items per second with `foo_time` left out of the time; None where no time would be left."""
        items = sum(timed.items for timed in self.rounds)
        seconds = sum(getattr(timed, f"{of}_seconds") - timed.foo_seconds for timed in self.rounds)
        return items / seconds if seconds > 0 else None

    @property
    def core_lost(self) -> float | None:
        """The share of the core throughput that went to loading beside it; None where nothing was loaded beside."""
        return None if self.core_alone is None else max(0.0, 1 - self.core.value / self.core_alone)


class Score(Part):
    """One value of the metric by who reached it, each the worst over its rounds. Null: that step did not run."""

    metric: str = Field(description="what the value is called")
    target: float | None = Field(description="null: it is shown, and not judged")
    better: Better = "higher"
    framework_fp32: float | None = None
    framework: float | None = None
    engine: float | None = None

    @property
    def aim(self) -> Aim:
        """What it is to come to."""
        return Aim(target=self.target, better=self.better)

    def floor(self, share: float) -> float | None:
        """The worst that an engine may have beside its framework; None where there is none to stand beside."""
        reference = self.framework_fp32
        return None if reference is None else factor_kept(reference, share, self.better) * reference


class Accuracy(Score):
    """The metric's headline, and its other values."""

    target: float
    gate: float = Field(description="share of the framework's accuracy that the engine must keep")
    others: tuple[Score, ...] = ()

    @property
    def scores(self) -> tuple[Score, ...]:
        """All values, the headline first."""
        return (self, *self.others)


Digest = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]


class Validated(Part):
    """What a run that validates nothing itself relies on: an earlier run, whose record was verified."""

    session: str = Field(description="what its folder was called")
    record_sha256: Digest
    suite: str
    case: str
    profile: str
    case_hash: str
    vendor: str
    started: float
    framework_fp32: dict[str, float] = Field(description="the metric's values, by what they are called")
    dataset_sha256: str
    weights: Identity
    onnx_sha256: Digest = Field(description="of what it exported")


def variant_of(compiler: str | None, config: Mapping[str, Any]) -> dict[str, str]:
    """The compiler, or that there is none; and the scenario where it is another than the usual one."""
    latency = {"scenario": "latency"} if config.get("scenario") == "latency" else {}
    return {"compiler": compiler or "none", **latency}


class RunRecord(CaseRecord):
    """Everything about one run of one inference case."""

    host: Host
    seed: int
    flops: Flops
    compiler: str | None
    device: int | None = Field(None, description="index of the device that the case had; null if it had its pick")
    begun: float | None = Field(
        None,
        description="seconds since the epoch by the clock of the host that it ran on, when its processes were ready "
        "there: `seconds` count from then; null: from `started`",
    )
    steps: tuple[Step, ...]
    framework: Measurement | None = None
    engine: Measurement | None = None
    accuracy: Accuracy
    memory: Memory = Memory()
    dishonest: tuple[str, ...] = Field((), description="what an engine did that an honest one does not")
    disturbed: tuple[str, ...] = Field((), description="what shows that the machine changed while it was timed")
    audit: Step | None = Field(None, description="beyond the seven; null: nobody asked for one")
    checks: tuple[Check, ...] = ()
    framework_held: bool = Field(False, description="whether checks of a framework on the vendor's device were due")
    monitoring: Monitoring | None = None
    onnx: Digest | None = Field(None, description="SHA-256 of the ONNX file that was exported, or else given")
    validated: Validated | None = Field(None, description="of `no_validation`: what --validated named")
    caches_cleared: bool | None = Field(None, description="of the machine's disks before it; null: nobody asked")
    caches_kept: str | None = Field(None, description="why they were not cleared, where somebody asked")
    launched: tuple[Launched, ...] = Field((), description="the host that it ran on; empty: the session's own machine")

    @model_validator(mode="before")
    @classmethod
    def _have_a_policy(cls, values: Any) -> Any:
        """What was made before there were policies has its gate, which --accuracy-gate set."""
        if not isinstance(values, dict) or "policy" in values:
            return values
        scores = values.get("accuracy")
        gate = scores.get("gate") if isinstance(scores, dict) else getattr(scores, "gate", None)
        if not isinstance(gate, float) or not 0 < gate <= 1:
            return values
        return {**values, "policy": default_policy().model_copy(update={"accuracy_ratio": gate})}

    @field_validator("steps")
    @classmethod
    def _are_the_seven(cls, steps: tuple[Step, ...]) -> tuple[Step, ...]:
        if tuple(step.name for step in steps) != STEPS:
            raise ValueError(f"expected the steps {', '.join(STEPS)}")
        return steps

    @property
    def zero(self) -> float:
        """The moment that its seconds count from: no queue and no sending of code is the case's."""
        return self.started if self.begun is None else self.begun

    @property
    def variant(self) -> dict[str, str]:
        """See `variant_of`."""
        return variant_of(self.compiler, self.config)

    @property
    def claimed(self) -> frozenset[RestsOn]:
        """Nothing, since the referee measured it itself; on another host that one says what it measured."""
        here = all(host.is_the_sessions_own for host in self.launched)
        return frozenset() if here else frozenset({"time", "samples", "metric"})

    @property
    def unrankable(self) -> list[str]:
        """Whoever can write a session's folder can make one that verifies, of another, smaller network."""
        if self.framework is not None or self.validated is None:
            return []
        return [
            "whose network its ONNX file is says an earlier session alone (--validated), of which nobody has seen who "
            "signed it, and nobody has counted its operations"
        ]

    @property
    def kept_apart(self) -> Mapping[str, Isolation]:
        """The monitor's too: it runs beside an engine's container, and not in it."""
        monitor = self.monitoring and self.monitoring.isolation
        return self.isolation | ({"monitor": monitor} if monitor else {})

    @property
    def containers(self) -> Sequence[Container]:
        """That of the host."""
        return [host.container for host in self.launched if host.container]

    def measured(self) -> Measurement | None:
        """The measurement that the case is ranked by: the engine's, or the framework's without one."""
        return self.engine if self.compiler is not None else self.framework

    @property
    def steps_and_audit(self) -> Sequence[Step]:
        """The seven steps, and the audit if there was one."""
        return self.steps if self.audit is None else (*self.steps, self.audit)

    def step(self, name: str) -> Step:
        """The step called `name`."""
        return next(step for step in self.steps if step.name == name)
