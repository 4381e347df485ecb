"""The run record: one typed, versioned JSON per case run. Reports and gates read nothing else."""

from __future__ import annotations

import os
import secrets
from enum import StrEnum
from pathlib import Path
from typing import Any, Final, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from harness.errors import UsageError, harmless
from harness.plain_json import first_of, read_json

SCHEMA_VERSION: Final = 2

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

StepStatus = Literal["done", "skipped", "failed", "not_reached"]


class Part(BaseModel):
    """A frozen piece of a record: no unknown key, no NaN, no infinity."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class VerdictKind(StrEnum):
    """What the referee says of a case run."""

    PASS = "PASS"  # noqa: S105
    UNSUPPORTED = "UNSUPPORTED"
    AMBIGUOUS = "AMBIGUOUS"
    INSUFFICIENT = "INSUFFICIENT"
    FAIL_PERF = "FAIL_PERF"
    FAIL_ACCURACY = "FAIL_ACCURACY"
    FAIL_HONESTY = "FAIL_HONESTY"
    FAIL_LEGALITY = "FAIL_LEGALITY"
    ERROR = "ERROR"


class Verdict(Part):
    """The kind, and every reason that led to it in full sentences."""

    kind: VerdictKind
    reasons: tuple[str, ...] = ()
    expected: bool = Field(default=False, description="of UNSUPPORTED: the vendor's own file lists it")


class Step(Part):
    """One of the seven steps. `reason` says why it was skipped or how it failed."""

    name: str
    status: StepStatus
    seconds: float | None = None
    reason: str | None = None
    kind: Literal["unsupported", "error"] | None = None
    detail: str | None = Field(default=None, description="the traceback of a failed step")


class OverrideEntry(Part):
    """A legal override: what was in force, what took its place, and who asked."""

    key: str
    old: Any
    new: Any
    origin: str
    kind: Literal["changed", "added"]
    near: str | None = Field(default=None, description="the case's key that an added one may be a misspelling of")


class ProblemEntry(Part):
    """Something illegal about the configuration."""

    where: str
    key: str
    what: str


class Identity(Part):
    """What a dataset or a set of weights is, whatever it is called and wherever it lies."""

    name: str
    sha256: str
    items: int | None = None
    origin: str | None = None


class Peak(Part):
    """A chip's dense peak at one precision, FLOP/s, for all units that the run may use."""

    flops_per_second: float = Field(ge=1)
    precision: str
    source: str
    achievable: float | None = None


class Chip(Part):
    """The chip that was detected. `peak` is null, with a reason, when the chip's file doesn't know it."""

    name: str
    units: int = 1
    peak: Peak | None = None
    peak_missing: str | None = None
    memory_bandwidth: float | None = Field(default=None, description="bytes per second, of the chip whatever its units")


class Known(Part):
    """A fact that may not be known: null, with the reason."""

    value: str | None = None
    reason: str | None = None


NOT_RECORDED = Known(reason="not recorded")


class Host(Part):
    """The machine of the run, and what its devices run with in the vendor's words."""

    name: str
    system: str
    processor: str
    cores: int
    memory_bytes: int
    kernel: Known = NOT_RECORDED
    governor: Known = Field(default=NOT_RECORDED, description="what sets the CPU's clock")
    container: Known = Field(default=NOT_RECORDED, description="the image that the session itself ran in")
    driver: Known = NOT_RECORDED
    runtime: Known = Field(default=NOT_RECORDED, description="CUDA, or the vendor's own")
    firmware: Known = NOT_RECORDED


class Provenance(Part):
    """Which suite and which vendor's package made a result."""

    commit: Known
    clean: bool | None = Field(description="whether the suite's files were as in the commit; null where that is")
    vendor_version: Known
    vendor_sha256: Known = Field(description="over names and contents of the vendor's package")


class Rate(Part):
    """All items over all seconds, and beside it how far the rates of the single rounds (or runs) lie apart.

    `stdev` is their sample standard deviation, null for one round.
    """

    value: float = Field(description="items per second")
    stdev: float | None
    min: float
    max: float

    @property
    def noise(self) -> float | None:
        """The standard deviation as a share of the value; None for one round."""
        return self.stdev / self.value if self.stdev is not None and self.value > 0 else None


class Contention(Part):
    """Shares of all of a machine's cores over some time, 0 to 1."""

    others: float = Field(description="taken by what the session did not start, a virtual machine's host included")
    stolen: float = Field(description="the part that a virtual machine's host took")
    idle: float
    clock_mhz: float | None = Field(default=None, description="mean of all cores at the end; null: not readable")


class Round(Part):
    """Whole passes over the data set. Seconds; `core` is the sum of the compute windows."""

    items: int
    passes: int = 1
    batches: int
    whole_seconds: float
    core_seconds: float
    evaluation_seconds: float
    accuracy: float | None
    started: float = Field(description="seconds since the epoch")
    contention: Contention | None = Field(default=None, description="while it ran")


class Measurement(Part):
    """All timed rounds of the framework or of the engine. Throughputs are items per second."""

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
        default=None, description="items per second with nothing loaded beside it; null: nothing was"
    )
    repeated: tuple[str, ...] = Field(
        default=(), description="what disturbed a first measurement, which this one took the place of"
    )

    @property
    def core_lost(self) -> float | None:
        """The share of the core throughput that went to loading beside it; None where nothing was loaded beside."""
        return None if self.core_alone is None else max(0.0, 1 - self.core.value / self.core_alone)


class Accuracy(Part):
    """Scores of the metric, each the worst over its rounds. Null: that step did not run."""

    metric: str
    target: float
    gate: float = Field(description="share of the framework's accuracy that the engine must keep")
    framework_fp32: float | None = None
    framework: float | None = None
    engine: float | None = None


class Flops(Part):
    """Floating-point operations per item, a multiply-add counted as two."""

    declared: float
    counted: float | None = None


class Utilisation(Part):
    """Model FLOPs utilisation: share of the chip's dense peak, or null with a reason."""

    mfu: float | None = None
    reason: str | None = None


class Memory(Part):
    """Bytes; null where nothing could read it."""

    host_peak_bytes: int | None = None
    device_peak_bytes: int | None = None
    device_total_bytes: int | None = None


class Series(Part):
    """Readings over time. `device` is null for the host; times are seconds since the epoch."""

    name: str
    unit: str
    device: int | None
    node: int | None = Field(default=None, description="null where there is only one")
    times: tuple[float, ...]
    values: tuple[float, ...]


class Monitoring(Part):
    """What the monitor saw. `window` spans the timed rounds of the ranked measurement."""

    samples: int
    window: tuple[float, float] | None
    series: tuple[Series, ...] = ()
    energy_joules: float | None = Field(default=None, description="within the window, all devices")
    energy_method: str | None = None
    energy_per_item: float | None = Field(default=None, description="joules")
    throttled: tuple[str, ...] = Field(
        default=(), description="why a device ran slower than it could, within the window"
    )
    foreign_processes: tuple[int, ...] = Field(default=(), description="of others, on a device, within the window")
    failures: tuple[str, ...] = Field(default=(), description="what was wrong with the monitor")


class Check(Part):
    """A check of the engine's honesty: its figure, and the bound that it is held to."""

    name: str
    passed: bool
    figure: float | None = Field(description="null where it is no finite number")
    bound: float | None
    meaning: str


class Kept(Part):
    """Something that a failed run leaves to look at, or to go on from."""

    what: str
    path: str = Field(description="within the folder of the run, if it isn't absolute")


class CaseRecord(Part):
    """What the record of any suite's case run holds."""

    schema_version: Literal[2] = SCHEMA_VERSION
    suite: str
    case: str
    profile: str
    vendor: str
    precision: str
    item: str
    started: float = Field(description="seconds since the epoch")
    seconds: float | None = Field(description="null: withheld")
    config_hash: str
    config: dict[str, Any]
    overrides: tuple[OverrideEntry, ...] = ()
    problems: tuple[ProblemEntry, ...] = ()
    expected_unsupported: str | None = Field(
        default=None, description="why the vendor's own file expects it not to work; null: it does not"
    )
    versions: dict[str, str]
    provenance: Provenance | None = None
    host: Host | None
    chip: Chip
    seed: int | None
    dataset: Identity | None = None
    flops: Flops | None
    utilisation: Utilisation = Utilisation()
    interrupted: str | None = None
    corrupt_lines: int = Field(0, description="of the event logs")
    damaged: tuple[str, ...] = Field((), description="those lines, the first of them: file, line, what is wrong")
    partial: bool = Field(False, description="whether steps were left out because only some tests were selected")
    kept: tuple[Kept, ...] = Field((), description="what is left of a run that failed")
    verdict: Verdict | None = None

    def save(self, path: Path) -> None:
        """Write the record whole or not at all.

        Raises:
            OSError: no space, no permission.
        """
        text = self.model_dump_json(indent=1)
        draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}")  # nobody can have laid a link there
        try:
            with draft.open("x", encoding="utf-8") as stream:
                stream.write(text + "\n")
                stream.flush()
                os.fsync(stream.fileno())
            draft.replace(path)
        finally:
            draft.unlink(missing_ok=True)

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read a record back.

        Raises:
            UsageError: unreadable, of another schema version, or not a record.
        """
        try:
            raw = read_json(path)
            version = raw.get("schema_version") if isinstance(raw, dict) else None
            if version != SCHEMA_VERSION:
                raise UsageError(f"{path}: schema version {version!r:.80}, this Proofmark reads {SCHEMA_VERSION}")
            return cls.model_validate(raw)
        except ValidationError as error:
            raise UsageError(harmless(f"{path}: not a run record: {first_of(error)}")) from None
        except (OSError, ValueError, RecursionError) as error:
            told = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise UsageError(harmless(f"{path}: not a run record: {told}")) from None


class RunRecord(CaseRecord):
    """Everything about one run of one inference case."""

    host: Host
    seed: int
    flops: Flops
    compiler: str | None
    device: int | None = Field(None, description="index of the device that the case had; null if it had its pick")
    weights: Identity | None = None
    steps: tuple[Step, ...]
    framework: Measurement | None = None
    engine: Measurement | None = None
    accuracy: Accuracy
    memory: Memory = Memory()
    dishonest: tuple[str, ...] = Field((), description="what an engine did that an honest one does not")
    disturbed: tuple[str, ...] = Field((), description="what shows that the machine changed while it was timed")
    checks: tuple[Check, ...] = ()
    monitoring: Monitoring | None = None

    @field_validator("steps")
    @classmethod
    def _are_the_seven(cls, steps: tuple[Step, ...]) -> tuple[Step, ...]:
        if tuple(step.name for step in steps) != STEPS:
            raise ValueError(f"expected the steps {', '.join(STEPS)}")
        return steps

    def measured(self) -> Measurement | None:
        """The measurement that the case is ranked by: the engine's, or the framework's without one."""
        return self.engine if self.compiler is not None else self.framework

    def step(self, name: str) -> Step:
        """The step called `name`."""
        return next(step for step in self.steps if step.name == name)
