"""FlagPerf's folders of logs: `run<time>/<case key>/round<N>/<host>_noderank<i>/rank<r>.out.log`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from proofmark.errors import UsageError
from proofmark.rules.scale import Scale

_NAME = r"[A-Za-z0-9_.+-]{1,99}"
_KEY = re.compile(rf"(?P<case>{_NAME}):(?P<framework>{_NAME}):(?P<chip>{_NAME}):(?P<nnodes>\d+):(?P<nproc>\d+)(:.*)?")
_RANK = re.compile(r"(?:node)?rank(?P<rank>\d{1,9})(?:\.(?:out\.log|err\.log|log\.txt)|(?P<renamed>\D.*)?)", re.DOTALL)


@dataclass(frozen=True)
class RunFolder:
    """A run by its folder; null is what that does not say.

    Attributes:
        case: as FlagPerf calls it.
        scale: chip, nodes and processes of each.
        began: when FlagPerf's session began, by its own clock, seconds since the epoch.
    """

    case: str | None = None
    scale: Scale | None = None
    began: float | None = None

    @classmethod
    def of(cls, log: Path) -> RunFolder:
        """The run folder of a log."""
        names = [path.name for path in log.absolute().parents]
        began = next((time for name in names if (time := _time(name)) is not None), None)
        for name in names:
            match = _KEY.fullmatch(name)
            if match:
                return cls(match["case"], _scale(match), began)
        round_at = next((index for index, name in enumerate(names) if re.fullmatch(r"round\d+", name)), None)
        above = names[round_at + 1] if round_at is not None and round_at + 1 < len(names) else ""
        return cls(above if re.fullmatch(_NAME, above) else None, None, began)


def one_per_round(paths: Sequence[Path]) -> list[Path]:
    """Of each round's logs the one of node 0's first rank, what it said and no errors; any other file is a run of its
    own. Of a round that lies beside others, renamed, the names are alike but for the rank."""
    found: dict[tuple[Path, str], tuple[tuple[int, int, bool], Path]] = {}
    for path in paths:
        rank = _RANK.fullmatch(path.name)
        node = re.search(r"noderank(\d{1,9})$", path.parent.name)
        of_round = (rank["renamed"] or "").replace(".err.", ".out.") if rank else ""
        key = (path if rank is None else path.parent.parent if node else path.parent, of_round)
        order = (int(node[1]) if node else 0, int(rank["rank"]) if rank else 0, ".out." not in path.name)
        found[key] = min(found.get(key, (order, path)), (order, path))
    return [path for _, path in found.values()]


def _scale(match: re.Match[str]) -> Scale | None:
    try:
        return Scale.parse(f"{match['chip']}x{match['nnodes']}x{match['nproc']}")
    except UsageError:
        return None


def _time(name: str) -> float | None:
    try:
        return datetime.strptime(name, "run%Y%m%d%H%M%S").replace(tzinfo=UTC).timestamp()
    except ValueError:
        return None
