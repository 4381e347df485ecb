"""The log that a vendor's monitor writes: one sample a line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from proofmark.errors import UsageError, harmless
from proofmark.plain_json import first_of
from proofmark.vendor.readings import Reading
from proofmark.wall.isolation import Isolation

LONGEST, LARGEST = 1 << 20, 1 << 30
"""Bytes of a line, and of a log, that are read: of a thousand devices, and of weeks."""

MOST = 1_000_000
"""Lines and readings of devices, together, that are read: of eight devices each second for a day."""

Amount = Annotated[float, Field(ge=0, le=1e15)]
Bytes = Annotated[int, Field(ge=0, lt=1 << 63)]
Word = Annotated[str, AfterValidator(lambda text: harmless(text[:300]))]
Ids = Annotated[tuple[Annotated[int, Field(ge=0, lt=1 << 31)], ...], Field(max_length=10_000)]


@dataclass(frozen=True)
class DeviceSample(Reading):
    """One device in a line of the log, in the bounds of what sensors can say; `foreign` are those of its processes
    that are not the case's."""

    device: Annotated[int, Field(ge=0, lt=1 << 16)]
    temperature_c: Annotated[float, Field(ge=-273.15, le=2000)] | None = None
    power_w: Annotated[float, Field(ge=0, le=1e6)] | None = None
    energy_j: Amount | None = None
    memory_used_bytes: Bytes | None = None
    memory_total_bytes: Bytes | None = None
    utilization: Annotated[float, Field(ge=0, le=1)] | None = None
    clock_mhz: Annotated[float, Field(ge=0, le=1e6)] | None = None
    throttled: Annotated[tuple[Word, ...], Field(max_length=64)] | None = None
    processes: Ids | None = None
    error: Word | None = None
    foreign: Ids | None = None


class Sample(BaseModel):
    """One line of the log: host and devices at one moment, seconds since the epoch."""

    model_config = ConfigDict(frozen=True, allow_inf_nan=False)

    time: float = Field(ge=0, lt=1e11)
    cpu: float | None = None
    memory: int | None = None
    package_energy_j: float | None = None
    devices: Annotated[tuple[DeviceSample, ...], Field(max_length=1024)] = ()
    failure: Word | None = None
    isolation: Isolation | None = Field(None, description="in the first line, which is no sample of devices")


@dataclass
class Rubbish:
    """Lines that are no samples: how many, and what is wrong with the first."""

    lines: int = 0
    first: str = ""

    def add(self, number: int, what: str) -> None:
        """One more, the log's line `number`."""
        self.lines += 1
        self.first = self.first or harmless(f"line {number}: {what}")


def read_samples(path: Path) -> tuple[list[Sample], Rubbish]:
    """The samples of a monitor's log in order, and which of its lines were none. Time goes forward in it, and nobody
    says how the monitor is kept but the first line."""
    samples, rubbish, read = list[Sample](), Rubbish(), 0
    for number, line in enumerate(_lines(path), 1):
        try:
            sample = Sample.model_validate_json(line)
        except ValidationError as error:
            rubbish.add(number, first_of(error))
            sample = None
        read += 1 + (len(sample.devices) if sample else 0)
        if read > MOST:
            rubbish.add(number, f"it is left out with what follows: of {MOST:,} readings; see --monitor-interval")
            break
        if sample is None:
            continue
        if samples and sample.time < samples[-1].time:
            rubbish.add(number, "its time is before that of the line before")
        elif sample.isolation is not None and number > 1:
            rubbish.add(number, "isolation: is told in the first line alone")
        else:
            samples.append(sample)
    return samples, rubbish


def _lines(path: Path) -> Iterator[bytes]:
    """Of one that is too long its pieces, which are no samples."""
    if path.exists():
        with path.open("rb") as stream:
            while stream.tell() < LARGEST and (line := stream.readline(LONGEST)):
                yield line


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
        lines = len(samples) + rubbish.lines
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
