"""The tree of a search's networks: each under the one that it was made of, with its accuracy."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from proofmark.automl.outcome.record import TrialRecord
from reports.charts import svg
from suites.automl.report.view import SearchView

ACROSS, DOWN, LEFT, TOP = 38.0, 54.0, 30.0, 46.0
"""Pixels between two networks side by side and between two generations, and from the edges."""

_WITHOUT = {"running": "…"}
"""What stands in place of an accuracy, by a trial's status."""

MOST = 100
"""Trials that are drawn: of more nobody could read the numbers."""


def tree(view: SearchView) -> str | None:
    """The drawing; None without trials."""
    trials = _shown(view.record.trials)
    if not trials:
        return None
    places = placed(trials)
    best = view.record.best
    made = [(_above(trial, places), trial.number) for trial in trials]
    parts = [_edge(places[above], places[number]) for above, number in made if above is not None]
    parts += [_node(trial, places[trial.number], best is not None and trial.number == best.number) for trial in trials]
    width = max(380.0, max(x for x, _ in places.values()) + LEFT)
    height = max(y for _, y in places.values()) + 34
    left_out = len(view.record.trials) - len(trials)
    more = f" Of the best, with all that they come from; {left_out} others are not drawn." if left_out > 0 else ""
    parts.append(svg.label(6, 14, "trial, and its accuracy in %; filled: the best; square: failed"))
    said = f"{len(trials)} networks in {1 + max(_depth(places).values())} generations.{more}"
    return svg.drawing(width, height, "The tree of networks", said, *parts)


def _shown(trials: Sequence[TrialRecord]) -> Sequence[TrialRecord]:
    """All of them, or the best with all that they come from."""
    if len(trials) <= MOST:
        return trials
    known, kept = {trial.number: trial for trial in trials}, set[int]()
    for trial in sorted(trials, key=lambda trial: (-(trial.accuracy or 0.0), trial.number)):
        line, above = set[int](), known.get(trial.number)
        while above is not None and above.number not in line:
            line.add(above.number)
            above = known.get(above.parent) if above.parent is not None else None
        if len(kept | line) > MOST:
            break
        kept |= line
    return [trial for trial in trials if trial.number in kept]


def _above(trial: TrialRecord, known: Collection[int]) -> int | None:
    """The trial that its network was made of; None where a record names none before it."""
    above = trial.parent
    return above if above is not None and above in known and above < trial.number else None


def placed(trials: Sequence[TrialRecord]) -> dict[int, tuple[float, float]]:
    """Where each is, in pixels: leaves side by side in their order, others above the middle of their children."""
    known = {trial.number for trial in trials}
    children: dict[int | None, list[int]] = {}
    for trial in trials:
        children.setdefault(_above(trial, known), []).append(trial.number)
    places, leaves = dict[int, tuple[float, float]](), 0
    pending = [(root, 0, False) for root in reversed(children.get(None, []))]
    while pending:
        number, depth, seen = pending.pop()
        below = children.get(number, [])
        y = TOP + DOWN * depth
        if below and not seen:
            pending.append((number, depth, True))
            pending += [(child, depth + 1, False) for child in reversed(below)]
        elif below:
            places[number] = (sum(places[child][0] for child in below) / len(below), y)
        else:
            places[number] = (LEFT + ACROSS * leaves, y)
            leaves += 1
    return places


def _depth(places: dict[int, tuple[float, float]]) -> dict[int, int]:
    return {number: round((y - TOP) / DOWN) for number, (_, y) in places.items()}


def _edge(above: tuple[float, float], below: tuple[float, float]) -> str:
    return svg.line(above[0], above[1] + 6, below[0], below[1] - 22, stroke_width=0.8)


def _node(trial: TrialRecord, place: tuple[float, float], best: bool) -> str:
    x, y = place
    shape = "square" if trial.status == "failed" else "circle"
    accuracy = f"{100 * trial.accuracy:.1f}" if trial.accuracy is not None else _WITHOUT.get(trial.status, "–")
    return (
        svg.marker(shape, x, y, filled=best)
        + svg.label(x, y - 9, str(trial.number), "middle", style=svg.HALO)
        + svg.label(x, y + 17, accuracy, "middle", style=svg.HALO)
    )
