"""What the original benchmark's jobs leave: `throughput_<rank>.json`, `accuracy.json`, `ranksize.json`.

Each holds one number as text. Independent servers have a folder each, named by their number. They are added up as the
original does: the sum over a job's ranks, or the mean over servers of the sum over each one's ranks.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from proofmark.launch.rank_result import RankResult
from proofmark.launch.service.contract import ServiceError

ACCURACY, SIZE = "accuracy.json", "ranksize.json"
LONGEST = 64
"""Characters that a number may have."""

_THROUGHPUT = re.compile(r"throughput_(\d{1,9})\.json")
_KEY = re.compile(r"(?:(\d{1,9})/)?((?:throughput_\d{1,9}|accuracy|ranksize)\.json)")


@dataclass(frozen=True)
class Instance:
    """One job, or one of several servers: items per second over its ranks, and the model's accuracy."""

    throughput: float
    accuracy: float


def write(folder: Path, results: Sequence[RankResult], server: int | None) -> None:
    """Write a node's part: of its ranks each, and of the first rank what is there once.

    Args:
        folder: the job's results.
        results: of this node's ranks.
        server: its number among independent ones, None where all nodes train together.

    Raises:
        OSError: no space, no permission.
    """
    home = folder if server is None else folder / str(server)
    home.mkdir(parents=True, exist_ok=True)
    for result in results:
        _write(home / f"throughput_{result.rank}.json", result.throughput)
        if result.rank == 0:
            _write(home / SIZE, result.world)
            if result.metric is not None:
                _write(home / ACCURACY, result.metric)


def _write(path: Path, number: float) -> None:
    path.write_text(repr(number), encoding="ascii")


def keys_of(found: Mapping[str, object], ranks: int, servers: int | None) -> list[str]:
    """The objects that there must be, each once and no other of the kind, by their path among the results.

    Args:
        found: what there is.
        ranks: how many ranks each instance has.
        servers: how many independent ones there are, None for one job.

    Raises:
        ServiceError: one is missing, is in it twice, or is one too many; named is its key.
    """
    names = [*(f"throughput_{rank}.json" for rank in range(ranks)), ACCURACY, SIZE]
    wanted = [home + name for home in _homes(servers) for name in names]
    for key in wanted:
        if key not in found:
            raise ServiceError(f"result {key} is missing")
    for key in sorted(found):
        if (named := _KEY.fullmatch(key)) and key not in wanted:
            raise ServiceError(f"result {key}: {_why_not(named, wanted)}")
    return wanted


def _why_not(named: re.Match[str], wanted: Sequence[str]) -> str:
    """What is wrong with a key that nobody asked for."""
    home = "" if named[1] is None else f"{int(named[1])}/"
    rank = _THROUGHPUT.fullmatch(named[2])
    plain = home + (f"throughput_{int(rank[1])}.json" if rank else named[2])
    if plain in wanted:
        return f"it is {plain} a second time"
    return "the job has no such rank or server"


def read(folder: Path, keys: Sequence[str], ranks: int, servers: int | None) -> list[Instance]:
    """The instances whose objects lie in a folder.

    Raises:
        ServiceError: one is not a finite number above 0, or they contradict each other; named is its key.
        OSError: one can't be read.
    """
    numbers = {key: _number(folder, key) for key in keys}
    return list(_instances(numbers, ranks, servers))


def hold_against(folder: Path, by_instance: Sequence[Sequence[RankResult]], ranks: int, servers: int | None) -> None:
    """Compare the objects with what the ranks themselves said: they are written from that, digit by digit.

    Args:
        folder: where the objects lie.
        by_instance: of each instance, what its ranks said.
        ranks: how many ranks each instance has.
        servers: how many independent ones there are, None for one job.

    Raises:
        ServiceError: ranks are missing or contradict each other, or an object says something else; named is its key.
        OSError: one can't be read.
    """
    for home, results in zip(_homes(servers), by_instance, strict=True):
        found = sorted(result.rank for result in results)
        if found != list(range(ranks)) or any(result.world != ranks for result in results):
            raise ServiceError(f"result {home}{SIZE}: ranks {found[:16]} left what they came to, of {ranks}")
        if len({result.steps for result in results}) > 1:
            raise ServiceError(f"result {home}{SIZE}: its ranks have not taken equally many steps")
        for result in results:
            _compare(folder, f"{home}throughput_{result.rank}.json", result.throughput)
            if result.rank == 0:
                _compare(folder, home + ACCURACY, result.metric)


def _compare(folder: Path, key: str, said: float | None) -> None:
    if (found := _number(folder, key)) != said:
        raise ServiceError(f"result {key}: it says {found!r}, and its rank said {said!r}")


def refuse_large(key: str, size: int) -> None:
    """Refuse an object that is too large for a number.

    Raises:
        ServiceError: it is; the text names it.
    """
    if size > LONGEST:
        raise ServiceError(f"result {key}: it has {size} bytes, and a number has {LONGEST} at most")


def _homes(servers: int | None) -> list[str]:
    return [""] if servers is None else [f"{server}/" for server in range(servers)]


def _instances(numbers: Mapping[str, float], ranks: int, servers: int | None) -> Iterator[Instance]:
    for home in _homes(servers):
        size = numbers[home + SIZE]
        if size != ranks:
            raise ServiceError(f"result {home}{SIZE}: it says {size:g} ranks, and the job has {ranks}")
        throughput = math.fsum(numbers[f"{home}throughput_{rank}.json"] for rank in range(ranks))
        yield Instance(throughput, numbers[home + ACCURACY])


def _number(folder: Path, key: str) -> float:
    with (folder / key).open("rb") as stream:
        content = stream.read(LONGEST + 1)
    refuse_large(key, len(content))
    text = content.decode("ascii", "replace").strip()
    try:
        number = float(text)
    except ValueError:
        raise ServiceError(f"result {key}: {text!r:.40} is not a number") from None
    least = 0.0 if key.endswith(ACCURACY) else math.nextafter(0.0, 1.0)
    if not math.isfinite(number) or number < least:
        raise ServiceError(f"result {key}: {text!r:.40} is not a finite number above 0")
    return number
