"""Where a trend changed.

Changes are proposed by PELT: R. Killick, P. Fearnhead, I. A. Eckley, "Optimal Detection of Changepoints With a Linear
Computational Cost", Journal of the American Statistical Association 107 (2012), 1590-1598, for changes of the mean, as
`ruptures` implements it (C. Truong, L. Oudre, N. Vayatis, "Selective review of offline change point detection methods",
Signal Processing 167 (2020), 107299). The penalty is three times Yao's (Statistics & Probability Letters 6 (1988),
181-189), the logarithm of the number of runs in units of the noise's variance; the noise is the median absolute
difference of runs that follow each other, which a step leaves alone. Of few runs that is not known well: so a change
stays only where Welch's test (Biometrika 34 (1947), 28-35) tells the runs on its two sides apart too, its level divided
by the number of runs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from proofmark.record.parts import VerdictKind
from reports.site.entry import Entry

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

FEWEST = 3
"""Runs between two changes: of fewer nobody knows their mean."""

STRICTNESS = 3.0
"""How many times Yao's penalty."""

LEVEL = 0.02
"""Of Welch's test, before it is divided. With both, of 1,000 simulated trends of 8 to 400 runs without a change 1 to 14
showed one, and a step of five standard deviations in the middle of 12 was found in 99 of 100."""

SMALLEST = 1e-3
"""Share of the mean below which the noise is not believed: a few runs may agree by chance."""


@dataclass(frozen=True)
class Change:
    """From the run with `id` on, a figure's mean is another. `before` and `after` are means, in the figure's unit."""

    series: str
    key: str
    id: str
    previous: str
    before: float
    after: float
    configured_otherwise: bool


def changes(entries: Sequence[Entry]) -> list[dict[str, Any]]:
    """The changes of all trends of a case, oldest first within a trend; `entries` are its runs, oldest first.

    A trend is a headline figure of the passed runs of one contender on like machines.
    """
    trends: dict[tuple[str, str], list[tuple[float, Entry]]] = defaultdict(list)
    for entry in entries:
        if entry.verdict == VerdictKind.PASS:
            for cell in entry.cells:
                if isinstance(cell.value, int | float):
                    trends[entry.series, cell.key].append((float(cell.value), entry))
    return [asdict(change) for (series, key), points in trends.items() for change in _of_trend(series, key, points)]


def _of_trend(series: str, key: str, points: Sequence[tuple[float, Entry]]) -> Iterable[Change]:
    values = [value for value, _ in points]
    edges = [0, *change_points(values), len(values)]
    for before, here, after in zip(edges, edges[1:], edges[2:], strict=False):
        earlier, later = points[here - 1][1], points[here][1]
        yield Change(
            series,
            key,
            later.id,
            earlier.id,
            _mean(values[before:here]),
            _mean(values[here:after]),
            earlier.config_hash != later.config_hash,
        )


def change_points(values: Sequence[float]) -> list[int]:
    """Positions at which the mean of a series is another than before; none where it is shorter than six."""
    if len(values) < 2 * FEWEST:
        return []
    import numpy as np
    import ruptures

    series = np.asarray(values, dtype=float)
    scale = float(np.median(np.abs(series))) or 1.0
    series = series / scale
    if not np.isfinite(series).all():
        return []
    noise = max(1.4826 * float(np.median(np.abs(np.diff(series)))) / np.sqrt(2), SMALLEST)
    proposer = ruptures.KernelCPD(kernel="linear", min_size=FEWEST).fit((series / noise)[:, None])
    edges = [0, *map(int, proposer.predict(pen=STRICTNESS * np.log(len(series))))]
    at = 1
    while at < len(edges) - 1:
        if _differ(series[edges[at - 1] : edges[at]], series[edges[at] : edges[at + 1]], LEVEL / len(series)):
            at += 1
        else:
            del edges[at]
    return edges[1:-1]


def _differ(before: NDArray[np.float64], after: NDArray[np.float64], level: float) -> bool:
    from scipy import stats

    summaries = [(side.mean(), max(side.std(ddof=1), SMALLEST), len(side)) for side in (before, after)]
    return bool(stats.ttest_ind_from_stats(*summaries[0], *summaries[1], equal_var=False).pvalue < level)


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
