"""FlagPerf's monitor logs: `<vendor>_monitor.log`, and cpu, mem and pwr_monitor.log of its hosts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from proofmark.errors import ConfigurationError, Problem
from proofmark.flagperf.log_file import open_log

HOST = {"cpu_monitor.log": "share", "mem_monitor.log": "share", "pwr_monitor.log": "W"}
"""Logs of one number a line, by name, with its unit."""

CARD = {"temperature": "C", "power": "W", "memory_used": "MiB", "memory_total": "MiB", "utilisation": "%"}
"""What a card's sensors are, with their units."""

LONGEST = 4096
"""Bytes of a line that may be a monitor's."""

_TIME = re.compile(r"\d{4}-\d\d-\d\d[-T ]\d\d:\d\d:\d\d")
_NUMBER = r"\d{1,9}(?:\.\d{1,9})?"
_NONE = r"\[?N/A\]?|ERR!"
_SCALAR = re.compile(rf"({_TIME.pattern})\s+({_NUMBER})")


def _layout(text: str) -> re.Pattern[str]:
    """Of a card's line: `<sensor>` stands for its number, `<sensor~>` for its number and unit, or that it has none."""

    def value(sensor: re.Match[str]) -> str:
        name, with_unit = sensor.groups()
        number = rf"(?P<{name}>{_NUMBER})"
        return rf"(?:{number}{CARD[name]}|(?:{_NONE}))" if with_unit else number

    return re.compile(re.sub(r"<(\w+)(~?)>", value, text).replace(" ", r"\s+"))


_CARDS = (
    # 34C 56W 1234MiB 40536MiB 83%
    _layout("<temperature~> <power~> <memory_used~> <memory_total~> <utilisation~>"),
    # 36C 69W 5680/65536 MiB, and its tool's own table: | 36C  69W / 350W | 5680/65536 MiB | ...
    _layout(rf"(?:\| )?<temperature~> <power~>(?: / {_NUMBER}W)?(?: \|)? <memory_used>/<memory_total> MiB(?: \|.*)?"),
    # of a later version: | 57W / 350W | 35C P0 | 826/65536 MiB | ...
    _layout(rf"\| <power~> / {_NUMBER}W \| <temperature~> P\d+ \| <memory_used>/<memory_total> MiB \|.*"),
    # 32C 106 W/ 0 MiB/ 23374 0%, whose share is its fan's
    _layout(rf"<temperature~> <power> W/ <memory_used> MiB/ <memory_total> (?:{_NUMBER}%|/|{_NONE})"),
    # xpu_smi 45 80 1234 32768 83
    _layout("[a-z]+_smi <temperature> <power> <memory_used> <memory_total> <utilisation>"),
    # four columns that no file explains, then 512MiB / 16384MiB
    _layout(r"\S+ \S+ \S+ \S+ <memory_used>MiB / <memory_total>MiB"),
)
_OWN_UTILISATION = (
    # of the first card, or of each in turn, on lines of their own: 83%
    _layout("<utilisation~>"),
    # a table's row above the card's: | 0  NAME | 0000:0e:00.0 | 83% |
    _layout(r"\|.*\| [0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-9a-f] \| <utilisation~> .*"),
)


class Range(BaseModel):
    """What a sensor read, in `unit`. Where it never answered all three are null."""

    model_config = ConfigDict(frozen=True)

    unit: str
    lowest: float | None
    mean: float | None
    highest: float | None

    @classmethod
    def of(cls, unit: str, values: Sequence[float]) -> Range:
        """The range of some readings."""
        mean = sum(values) / len(values) if values else None
        return cls(unit=unit, lowest=min(values, default=None), mean=mean, highest=max(values, default=None))


class MonitorLog(BaseModel):
    """What a log says. `others`: lines that are no reading, such as what a tool said in place of one, and those of
    samples that lack a card."""

    model_config = ConfigDict(frozen=True)

    file: str
    first: datetime
    last: datetime
    samples: int
    others: int
    host: Range | None = None
    cards: tuple[dict[str, Range], ...] = ()


def read_monitor_logs(paths: Sequence[Path]) -> list[MonitorLog]:
    """What each of the logs says, in their order.

    Raises:
        ConfigurationError: with every file that can't be read, or is none of FlagPerf's monitors'.
    """
    found, problems = list[MonitorLog](), list[Problem]()
    for path in paths:
        try:
            found.append(_host(path, HOST[path.name]) if path.name in HOST else _cards(path))
        except OSError as error:
            problems.append(Problem(str(path), "", f"cannot be read: {error.strerror or error}"))
        except ValueError as error:
            problems.append(Problem(str(path), "", str(error)))
    if problems:
        raise ConfigurationError(problems)
    return found


def _host(path: Path, unit: str) -> MonitorLog:
    """Read a host's line: a time and a number."""
    times, values, others = list[datetime](), list[float](), 0
    for line in _lines(path):
        time = _time(match[1]) if (match := _SCALAR.fullmatch(line)) else None
        if match and time and (unit != "share" or float(match[2]) <= 1):
            times.append(time)
            values.append(float(match[2]))
        else:
            others += 1
    if not times:
        raise ValueError(f"is not a log of FlagPerf's monitors: expected lines of a time and a number ({unit})")
    reading = Range.of(unit, values)
    return MonitorLog(file=str(path), first=times[0], last=times[-1], samples=len(times), others=others, host=reading)


def _cards(path: Path) -> MonitorLog:
    """A line with the time, then one for each card, with their shares of use among them or not; again and again."""
    times, sensors, others = list[datetime](), _Sensors(), 0
    for line in _lines(path):
        if time := _time(line):
            times.append(time)
            sensors.end_sample()
        elif times and (match := _first(_CARDS, line)):
            sensors.lines.append(match)
        elif times and (match := _first(_OWN_UTILISATION, line)):
            sensors.used.append(match)
        else:
            others += 1
    sensors.end_sample()
    if not sensors.cards:
        expected = "expected a line with the time, then one for each card such as '34C 56W 1234MiB 40536MiB 83%'"
        raise ValueError(f"is not a log of FlagPerf's monitors: {expected}")
    cards = tuple({name: Range.of(unit, each[name]) for name, unit in CARD.items()} for each in sensors.cards)
    others += sensors.left_out
    return MonitorLog(file=str(path), first=times[0], last=times[-1], samples=len(times), others=others, cards=cards)


def _first(layouts: Sequence[re.Pattern[str]], line: str) -> re.Match[str] | None:
    return next((match for layout in layouts if (match := layout.fullmatch(line))), None)


class _Sensors:
    """What cards said, by their place in samples. One in which a card didn't answer doesn't say which: it is left out.

    Attributes:
        lines: of the sample that is being read, one for each card.
        used: those of cards' shares of use, where they stand apart.
        cards: readings of each card, by sensor.
        left_out: how many lines were.
    """

    def __init__(self) -> None:
        self.lines, self.used = list[re.Match[str]](), list[re.Match[str]]()
        self.cards, self.left_out, self._taken = list[dict[str, list[float]]](), 0, 0

    def end_sample(self) -> None:
        """Take the sample's readings; where it has more cards than those before it, they lacked some."""
        lines, used, self.lines, self.used = self.lines, self.used, [], []
        if len(lines) > len(self.cards):
            self.left_out, self._taken = self.left_out + self._taken, 0
            self.cards = [{name: [] for name in CARD} for _ in lines]
        if len(lines) < len(self.cards) or len(used) > len(lines):
            self.left_out += len(lines) + len(used)
            return
        self._taken += len(lines) + len(used)
        for part in (lines, used):
            for card, match in zip(self.cards, part, strict=False):
                _add(card, match)


def _add(card: dict[str, list[float]], match: re.Match[str]) -> None:
    """What a line says of a card; a sensor that it doesn't name, or that didn't answer, has no figure."""
    for name, text in match.groupdict().items():
        card[name] += [] if text is None else [float(text)]


def _lines(path: Path) -> Iterator[str]:
    """Lines that are not blank; of one that is too long its pieces, which are no reading."""
    with open_log(path) as stream:
        while piece := stream.readline(LONGEST):
            if line := piece.decode("utf-8", "replace").strip():
                yield line


def _time(text: str) -> datetime | None:
    if not _TIME.fullmatch(text):
        return None
    try:
        return datetime.fromisoformat(f"{text[:10]}T{text[11:]}")
    except ValueError:
        return None
