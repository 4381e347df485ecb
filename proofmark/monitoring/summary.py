"""From a monitor's log to what a record says of it."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from statistics import fmean

from proofmark.errors import reason
from proofmark.monitoring.watch import REWRITTEN
from proofmark.record.parts import Monitoring, Series
from proofmark.vendor.monitor_log import DeviceSample, Rubbish, Sample, devices_of, read_samples
from proofmark.wall.isolation import Isolation

Window = tuple[float, float]
Points = Sequence[tuple[float, float]]

Timed = Sequence[tuple[float, DeviceSample]]
"""Readings of one device, each with its moment."""

POINTS, DEVICES, MOST_NAMED = 300, 64, 16
"""Most points of a series in a record, most devices that have any, and most complaints of a kind: all of it is a
vendor's word."""

LATE = 0.1
"""Share of a window that may pass before the first reading."""

DEVICE_SERIES = {
    "utilisation": ("utilization", "share"),
    "power": ("power_w", "W"),
    "temperature": ("temperature_c", "°C"),
    "memory": ("memory_used_bytes", "B"),
    "clock": ("clock_mhz", "MHz"),
}

PEAKS = frozenset({"temperature", "memory", "host memory"})
"""Series of which the largest reading tells: of all others it is the mean that fits the energy, and those beside it."""


def summarise(
    path: Path,
    window: Window | None,
    items: int,
    failures: Sequence[str],
    timed: Sequence[Window] = (),
    from_first: bool = False,
) -> Monitoring | None:
    """What the monitor saw, for the record; None if there was no monitor.

    Args:
        path: the monitor's log.
        window: first and last moment of what was timed, seconds since the epoch.
        items: items run while it was.
        failures: what was wrong with the monitor's process.
        timed: the parts of the window in which the items were run, and whose energy is theirs; none: all of it.
        from_first: whether the energy is that from the first reading on, where the window began before it: by no more
            than a `LATE`th of itself, since a vendor's monitor may take its time.
    """
    if not path.exists() and not failures:
        return None
    seen = _Seen(window)
    lines, rubbish = read_samples(path, seen.take)
    isolation = lines[0].isolation if lines else None
    samples = lines[1:] if isolation else lines
    if REWRITTEN in failures:
        isolation = Isolation.none(REWRITTEN)
    problems = [*failures, *_complaints(samples, rubbish)]
    readings = _by_device(samples)
    if window and from_first and samples and samples[0].time - window[0] <= LATE * (window[1] - window[0]):
        window = max(window[0], samples[0].time), window[1]
    energy, method = _energy(samples, readings, timed or [window]) if window else (None, None)
    if energy is not None and energy <= 0:
        problems.append(f"devices that computed are said to have used no energy ({method})")
        energy = method = None
    return Monitoring(
        samples=seen.samples,
        window=window,
        series=tuple(_all_series(samples, readings)),
        energy_joules=energy,
        energy_method=method,
        energy_per_item=energy / items if energy is not None and items else None,
        throttled=tuple(seen.throttled),
        throttled_share=seen.slowed / seen.within if seen.within else None,
        foreign_processes=tuple(seen.foreign),
        failures=tuple(problems),
        isolation=isolation,
    )


def monitoring_of(
    path: Path, window: Window | None, items: int, failures: Sequence[str], timed: Sequence[Window] = ()
) -> Monitoring | None:
    """What `summarise` returns; a log that cannot be used is one of the failures. Args: as of `summarise`."""
    try:
        return summarise(path, window, items, failures, timed)
    except (ValueError, OverflowError, OSError) as error:
        why = f"the monitor's log cannot be used: {reason(error)}"
        return Monitoring(samples=0, window=window, failures=(*failures, why), isolation=Isolation.none(why))


class _Seen:
    """What may be in a single sample of very many: throttling and processes of others within the window."""

    def __init__(self, window: Window | None) -> None:
        self.samples, self.throttled, self.foreign = 0, list[str](), list[int]()
        self.within = self.slowed = 0
        self._window = window

    def take(self, sample: Sample) -> None:
        self.samples += sample.isolation is None
        if self._window and self._window[0] <= sample.time <= self._window[1]:
            if sample.cpu is not None:  # else it was asked for at a round's edge, before which a device is idle
                self.within += 1
                self.slowed += any(device.throttled for device in sample.devices)
            for device in sample.devices:
                self.throttled = sorted({*self.throttled, *(device.throttled or ())})[:MOST_NAMED]
                self.foreign = sorted({*self.foreign, *(device.foreign or ())})[:MOST_NAMED]


def _complaints(samples: Sequence[Sample], rubbish: Rubbish) -> Iterator[str]:
    """What the log says that could not be read, and what of it can't be."""
    if rubbish.lines:
        yield f"{rubbish.lines} lines of the monitor's log are not samples ({rubbish.first})"
    yield from _some(f"devices could not be read: {s.failure}" for s in samples if s.failure)
    yield from _some(f"device {d.device} could not be read: {d.error}" for d in devices_of(samples) if d.error)


def _some(complaints: Iterable[str]) -> list[str]:
    """Each once, and how many there are more."""
    distinct = list(dict.fromkeys(complaints))
    more = len(distinct) - MOST_NAMED
    return distinct[:MOST_NAMED] + ([f"and {more} more complaints of that kind"] if more > 0 else [])


def _by_device(samples: Sequence[Sample]) -> dict[int, Timed]:
    """The readings of each device, by its index; of two of one sample the first."""
    found = defaultdict[int, list[tuple[float, DeviceSample]]](list)
    for sample in samples:
        for device, reading in {d.device: d for d in reversed(sample.devices)}.items():
            found[device].append((sample.time, reading))
    return {device: found[device] for device in sorted(found)}


def _all_series(samples: Sequence[Sample], readings: Mapping[int, Timed]) -> Iterator[Series]:
    timed = [(sample.time, sample) for sample in samples]
    for name, key, unit in (("host CPU", "cpu", "share"), ("host memory", "memory", "B")):
        yield from _series(name, unit, None, _points(timed, key))
    for device, known in islice(readings.items(), DEVICES):
        for name, (key, unit) in DEVICE_SERIES.items():
            yield from _series(name, unit, device, _points(known, key))


def _series(name: str, unit: str, device: int | None, points: Points) -> Iterator[Series]:
    """At most POINTS points, each for a stretch; nothing if no sample has a value."""
    if points:
        stride = -(-len(points) // POINTS)
        one_of = _largest if name in PEAKS else _mean
        chosen = [one_of(points[i : i + stride]) for i in range(0, len(points), stride)]
        yield Series(
            name=name, unit=unit, device=device, times=tuple(t for t, _ in chosen), values=tuple(v for _, v in chosen)
        )


def _largest(stretch: Points) -> tuple[float, float]:
    return max(stretch, key=lambda point: point[1])


def _mean(stretch: Points) -> tuple[float, float]:
    times, values = zip(*stretch, strict=True)
    return fmean(times), fmean(values)


def _energy(
    samples: Sequence[Sample], readings: Mapping[int, Timed], windows: Sequence[Window]
) -> tuple[float | None, str | None]:
    """Joules within the windows, summed over devices, and how they were read: counters first, then power."""
    counted = [_over(windows, _counter, _points(known, "energy_j")) for known in readings.values()]
    if readings and None not in counted:
        return sum(filter(None, counted)), "device energy counter"
    powered = [_over(windows, _integral, _points(known, "power_w")) for known in readings.values()]
    if readings and None not in powered:
        return sum(filter(None, powered)), "device power, integrated"
    package = _over(windows, _counter, _points([(sample.time, sample) for sample in samples], "package_energy_j"))
    return package, "processor package counter" if package is not None else None


def _over(windows: Sequence[Window], joules: Callable[[Points, Window], float | None], points: Points) -> float | None:
    """The sum over windows; None unless each is known."""
    found = [joules(points, window) for window in windows]
    return None if None in found else sum(filter(None, found))


def _points(timed: Iterable[tuple[float, object]], key: str) -> Points:
    return [(time, value) for time, each in timed if (value := getattr(each, key)) is not None]


def _counter(points: Points, window: Window) -> float | None:
    """The growth of a counter over the window, which readings must enclose; None if it fell there."""
    steps = [(a, b) for a, b in itertools.pairwise(points) if b[0] >= window[0] and a[0] <= window[1]]
    if any(b[1] < a[1] for a, b in steps):
        return None
    ends = [_interpolated(points, moment) for moment in window]
    return ends[1] - ends[0] if ends[0] is not None and ends[1] is not None else None


def _integral(points: Points, window: Window) -> float | None:
    """The integral of power over the window by trapezia; None unless readings enclose it and two lie within."""
    inner = [point for point in points if window[0] <= point[0] <= window[1]]
    start, end = (_interpolated(points, moment) for moment in window)
    if start is None or end is None or len(inner) < 2:
        return None
    path = [(window[0], start), *inner, (window[1], end)]
    return sum((b[0] - a[0]) * (a[1] + b[1]) / 2 for a, b in itertools.pairwise(path))


def _interpolated(points: Points, moment: float) -> float | None:
    for before, after in itertools.pairwise(points):
        if before[0] <= moment <= after[0]:
            share = (moment - before[0]) / (after[0] - before[0]) if after[0] > before[0] else 0.0
            return before[1] + share * (after[1] - before[1])
    return None
