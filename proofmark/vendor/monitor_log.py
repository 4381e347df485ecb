"""The log that a vendor's monitor writes: one sample a line."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from proofmark.errors import UsageError, harmless
from proofmark.plain_json import first_of
from proofmark.vendor.readings import Reading
from proofmark.wall.isolation import Isolation

LONGEST, LARGEST = 1 << 20, 1 << 30
"""Bytes of a line, and of a log, that are read: of four hundred devices, and of eight each second for five days."""

MOST, FURTHEST = 250_000, 16_000_000
"""Lines and readings of devices, together, that are held, in 200 MB (of eight devices each second for seven hours, each
fourth second for a day), and that are read."""

FEW = 16
"""Processes of a device, of which a reason for its slowness is as large as eight, that come with a reading."""

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
        """Count one more, which is the log's line `number`."""
        self.lines += 1
        self.first = self.first or harmless(f"line {number}: {what}")


def read_samples(path: Path, notice: Callable[[Sample], object] = lambda sample: None) -> tuple[list[Sample], Rubbish]:
    """The samples of a monitor's log in order, thinned evenly where they are too many, and which of its lines were
    none. Time goes forward in it, and nobody says how the monitor is kept but the first line.

    Args:
        notice: is told every sample, those too that are not kept.
    """
    samples, rubbish = _Thinned(), Rubbish()
    for sample in _every(path, rubbish):
        notice(sample)
        samples.add(sample)
    return samples.whole(), rubbish


class _Thinned:
    """The log's first line, the first and the last of all samples, and each, each second, each fourth ... of them."""

    def __init__(self) -> None:
        self._kept, self._held, self._step, self._count = list[Sample](), 0, 1, 0
        self._last: Sample | None = None

    def add(self, sample: Sample) -> None:
        self._last = sample
        if self._count == 0 or (self._count - 1) % self._step == 0:
            self._kept.append(sample)
            self._held += _size(sample)
        self._count += 1
        while self._held > MOST and len(self._kept) > 2:
            del self._kept[2::2]
            self._step *= 2
            self._held = sum(map(_size, self._kept))

    def whole(self) -> list[Sample]:
        ends = [self._last] if self._last is not None and self._last is not self._kept[-1] else []
        return self._kept + ends


def _every(path: Path, rubbish: Rubbish) -> Iterator[Sample]:
    """Each sample of a log; lines that are none are counted as rubbish."""
    latest, read = 0.0, 0
    for number, line in enumerate(_lines(path, rubbish), 1):
        try:
            sample = Sample.model_validate_json(line)
        except ValidationError as error:
            rubbish.add(number, first_of(error))
            sample = None
        read += _size(sample) if sample else FURTHEST // MOST  # it takes longer
        if read > FURTHEST:
            rubbish.add(number, f"it is left out with what follows: of {FURTHEST:,} readings; see --monitor-interval")
            break
        if sample is None:
            continue
        if sample.time < latest:
            rubbish.add(number, "its time is before that of the line before")
        elif sample.isolation is not None and number > 1:
            rubbish.add(number, "isolation: is allowed in the first line only")
        else:
            latest = sample.time
            yield sample


def _size(sample: Sample) -> int:
    """Readings that it takes as much memory as: one with very many processes, or reasons, is as large as several."""
    return 1 + sum(1 + max(0, _beside(device) - FEW) // 8 for device in sample.devices)


def _beside(device: DeviceSample) -> int:
    return sum(len(ids or ()) for ids in (device.processes, device.foreign)) + 8 * len(device.throttled or ())


def _lines(path: Path, rubbish: Rubbish) -> Iterator[bytes]:
    """The lines of a log; of one that is too long its pieces, which are no samples."""
    if path.exists():
        with path.open("rb") as stream:
            number = 0
            while stream.tell() < LARGEST and (line := stream.readline(LONGEST)):
                number += 1
                yield line
            if stream.read(1):
                what = f"what follows is left out: of {LARGEST:,} bytes; see --monitor-interval"
                rubbish.add(number + 1, what)


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
