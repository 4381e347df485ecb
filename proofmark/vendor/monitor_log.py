"""The log that a vendor's monitor writes: one sample a line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from proofmark.errors import UsageError
from proofmark.vendor.readings import Reading
from proofmark.wall.isolation import Isolation


@dataclass(frozen=True)
class DeviceSample(Reading):
    """One device in a line of the log; `foreign` are those of its processes that are not the case's."""

    foreign: tuple[int, ...] | None = None


class Sample(BaseModel):
    """One line of the log: host and devices at one moment, seconds since the epoch."""

    model_config = ConfigDict(frozen=True, allow_inf_nan=False)

    time: float
    cpu: float | None = None
    memory: int | None = None
    package_energy_j: float | None = None
    devices: tuple[DeviceSample, ...] = ()
    failure: str | None = None
    isolation: Isolation | None = Field(None, description="in the first line, which is no sample of devices")


def read_samples(path: Path) -> tuple[list[Sample], int]:
    """The samples of a monitor's log in order, and how many of its lines were none."""
    samples, rubbish = [], 0
    if path.exists():
        for line in path.read_bytes().splitlines():
            try:
                samples.append(Sample.model_validate_json(line))
            except ValidationError:
                rubbish += 1
    return samples, rubbish


def memory_seen(path: Path) -> tuple[int | None, int | None]:
    """(most bytes used on any device, bytes that the largest has) in a monitor's log.

    Raises:
        UsageError: there is no such file, or no line of it is a monitor's.
    """
    expected = "expected the monitor.jsonl of a case's folder, of which each line is a sample: a time and devices"
    try:
        samples, rubbish = read_samples(path)
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror or error}; {expected}") from None
    own = [sample for sample in samples if "devices" in sample.model_fields_set]  # other logs have times too
    if not own:
        lines = len(samples) + rubbish
        found = (
            f"none of its {lines} lines is a sample" if lines else "it is empty" if path.exists() else "no such file"
        )
        raise UsageError(f"{path}: no monitor's log: {found}; {expected}")
    used = [d.memory_used_bytes for d in devices_of(samples) if d.memory_used_bytes is not None]
    total = [d.memory_total_bytes for d in devices_of(samples) if d.memory_total_bytes is not None]
    return max(used, default=None), max(total, default=None)


def devices_of(samples: Sequence[Sample]) -> Iterator[DeviceSample]:
    """All readings of all samples."""
    for sample in samples:
        yield from sample.devices
