"""A monitor's readings as panels over time."""

from __future__ import annotations

import bisect
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import NamedTuple

from proofmark.record.parts import Monitoring, Series
from reports.charts.panels import Panel, Point, numbered_line


class _Subject(NamedTuple):
    """What a panel shows: the first of these series that was read, each with the panel's label.

    `together` makes one reading of those of a node's devices, and is called `how`.
    """

    name: str
    series: dict[str, str]
    together: Callable[[Collection[float]], float]
    how: str
    factor: float = 1.0
    shown: tuple[float, ...] = (0.0,)


def _mean(values: Collection[float]) -> float:
    return sum(values) / len(values)


_USED = {"utilisation": "device utilisation, %", "host CPU": "host CPU, %"}
_SUBJECTS = (
    _Subject("utilisation", _USED, _mean, "mean", 100.0, (0.0, 100.0)),
    _Subject("power", {"power": "power, W"}, sum, "sum"),
    _Subject("temperature", {"temperature": "temperature, °C"}, max, "hottest", shown=()),
    _Subject("memory", {"memory": "device memory, GiB", "host memory": "host memory, GiB"}, max, "fullest", 2.0**-30),
)


def reading_panels(seen: Monitoring, begin: float) -> Iterator[Panel]:
    """A panel for each subject that was read: a line per device, or per node where there are several.

    `begin` is the moment that becomes 0, in seconds since the epoch.
    """
    for subject in _SUBJECTS:
        for name, label in subject.series.items():
            found = [series for series in seen.series if series.name == name and series.times]
            if found:
                yield _panel(subject, label, found, begin)
                break


def absent(seen: Monitoring) -> str | None:
    """A sentence on what nobody read, so that an absent panel is not taken for a zero; None if all was read.

    Where there was no sample, or they are withheld, it says no more than that none is shown.
    """
    if not seen.samples:
        return "No readings over time are shown."
    names = {series.name for series in seen.series}
    missing = [subject.name for subject in _SUBJECTS if not names & subject.series.keys()]
    return f"No reading of {' or '.join(missing)}." if missing else None


def _panel(subject: _Subject, label: str, found: Sequence[Series], begin: float) -> Panel:
    nodes = sorted({series.node for series in found if series.node is not None})
    if not nodes:
        lines = {_device(series): _points(series) for series in found}
    else:
        by_node = {node: [_points(series) for series in found if series.node == node] for node in nodes}
        lines = {f"node {node}": _merged(points, subject.together) for node, points in by_node.items()}
        label += f", {subject.how} of a node" if any(len(points) > 1 for points in by_node.values()) else ""
    drawn = [
        numbered_line(name, [(moment - begin, subject.factor * value) for moment, value in points], number)
        for number, (name, points) in enumerate(lines.items())
    ]
    return Panel(label, tuple(drawn), subject.shown)


def _device(series: Series) -> str:
    return "host" if series.device is None else f"device {series.device}"


def _points(series: Series) -> list[Point]:
    return list(zip(series.times, series.values, strict=False))


def _merged(lines: Sequence[Sequence[Point]], together: Callable[[Collection[float]], float]) -> list[Point]:
    """One line of several: at each moment of the longest, what they are together."""
    longest = max(lines, key=len)
    return [(moment, together([_at(line, moment) for line in lines])) for moment, _ in longest]


def _at(line: Sequence[Point], moment: float) -> float:
    """The value of a line at a moment, between its points by a straight line, before and after them as they are."""
    index = bisect.bisect_left(line, (moment,))
    if index in (0, len(line)):
        return line[min(index, len(line) - 1)][1]
    (before, low), (after, high) = line[index - 1 : index + 1]
    return low + (high - low) * (moment - before) / (after - before) if after > before else high
