"""What others than the ranks saw of a training, held against what those say."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from proofmark.record.events.log import Event
from proofmark.record.events.types import fields_of
from proofmark.record.parts import Check, Identity
from proofmark.rules.aims import aims_of, judged
from proofmark.rules.config import EffectiveConfig
from proofmark.training.logs.ranks.rank_log import RankLog
from proofmark.training.outcome.checks import (
    CLOCK,
    CLOSE,
    OUTSIDE,
    PLAN,
    REPLAYED,
    SEEDED,
    as_good,
    is_certain,
    is_close,
    keeps_the_plan,
    keeps_the_sessions_time,
    keeps_time,
)
from proofmark.training.outcome.event_types import DRAWN, EXAMINED, WATCHED
from proofmark.training.outcome.examined import Examination, Examined, HandedOut, Standing
from proofmark.training.outcome.replay_checks import takes_steps

AGENT = "the agent's clock"
LOOSE = f"the ranks: the agent's clock does not tell their time to {100 * CLOSE:g} % of it"

FEEDERS = "the processes that load the data"


def outside_checks(
    first: RankLog,
    agent: Sequence[Event],
    end: Event | None,
    examination: Examination | None,
    config: EffectiveConfig | None,
) -> Iterator[Check]:
    """All that can be checked; without a configuration, only the clocks."""
    yield from clock_checks(first, agent, end)
    if config is not None:
        yield from planned(agent, first, config)
        yield from replayed(agent, first, config.precision)
        yield from examined(examination, judged(aims_of(config.parameters)), config.precision)


def clock_checks(first: RankLog, agent: Sequence[Event], end: Event | None) -> Iterator[Check]:
    """Rank 0's clock at the end, which is the one that its speed is of, and at its last evaluation, to which its time
    to target lasts, against the agent's and the session's."""
    begun, last = first.last.get("train_begin"), first.totals()
    if not begun or not last or "train_end" not in first.last or "train_seconds" not in begun:
        return
    said = last["train_seconds"] - begun["train_seconds"]
    if seen := _last(agent, WATCHED):
        claims = [(said, seen["least"], seen["most"], "training took")]
        if "to_evaluation" in seen and (evaluated := first.last.get("evaluation")):
            after = evaluated["train_seconds"] - begun["train_seconds"]
            claims.append((after, *seen["to_evaluation"], "its last evaluation came after"))
        if all(is_certain(least, most) for _, least, most, _ in claims):
            held = [keeps_time(*each) for each in claims]
            yield next((check for check in held if not check.passed), held[0])
    if heard := (end or {}).get("watched"):
        yield keeps_the_sessions_time(said, heard["least"])


def least_seconds(first: RankLog, agent: Sequence[Event]) -> tuple[float, float]:
    """The least that rank 0's training can have taken to its end, and to its last evaluation, by the agent's clock: no
    less is reported. What was trained before a resumption is the rank's word. 0 where the agent saw nothing."""
    begun, seen = first.last.get("train_begin"), _last(agent, WATCHED)
    if not begun or not seen or "train_end" not in first.last:
        return 0.0, 0.0
    before = begun.get("train_seconds", 0.0)
    return before + seen["least"], before + seen["to_evaluation"][0] if "to_evaluation" in seen else 0.0


def tells_closely(agent: Sequence[Event]) -> bool:
    """Whether the agent's clock leaves little open of how long the training took, to its end and to its target."""
    seen = _last(agent, WATCHED)
    if seen is None:
        return False
    windows = [(seen["least"], seen["most"]), *([seen["to_evaluation"]] if "to_evaluation" in seen else ())]
    return all(is_close(least, most) for least, most in windows)


def examination_of(agent: Sequence[Event], claimed: Event | None) -> Examination | None:
    """What the referee's process found about the weights with which the target was said to be reached, and about
    recorded steps.

    Args:
        agent: its events.
        claimed: the event with which rank 0 says so; None where it was missed, and there is nothing but steps.
    """
    event = _last(agent, EXAMINED)
    if event is None:
        return None
    replays = _replays(event)
    if claimed is None:
        return Examination(**replays, claimed=None, seconds=event.get("took_seconds")) if replays else None
    known, said = fields_of(event, Examination) | replays, claimed.get("others", {})
    known["others"] = {
        name: Examined(claimed=said.get(name), **{key: each[key] for key in ("metric", "error", "weight")})
        for name, each in event.get("others", {}).items()
    }
    return Examination(**known, claimed=claimed["metric"], seconds=event.get("took_seconds"))


def _replays(event: Event) -> dict[str, Any]:
    """What became of recorded steps; nothing where there were none."""
    why = {"unreplayed": event["unreplayed"]} if "unreplayed" in event else {}
    steps = event.get("steps", ())
    if not steps:
        return why
    left = sum(bool(each.get("due")) for each in steps)
    updates = sum(each["update"] is not None for each in steps)
    unseen = next((each["unseen"] for each in steps if each.get("unseen")), None)
    return {**why, "left": left, "replayed": len(steps) - left, "updates": updates, "unseen": unseen}


def examined(examination: Examination | None, judged: Sequence[str], precision: str) -> Iterator[Check]:
    """Checks whether the examination bears out what was claimed; none where there is none.

    Args:
        examination: what was found.
        judged: names of the metric's values that are, the headline first.
        precision: that of the training.
    """
    found = examination
    if found is None or found.reason or found.claimed is None:
        return
    if found.misfits:
        what = f"its last weights do not fit the case's own model: {', '.join(found.misfits)}"
        yield Check(OUTSIDE, passed=False, figure=float(len(found.misfits)), bound=0.0, meaning=what)
        return
    for name, each in {judged[0]: found, **found.others}.items():
        if name in judged and each.claimed is not None:
            own = math.nan if each.metric is None else each.metric
            yield as_good(name, each.claimed, own, each.weight, found.samples or 0, each.error, precision)


def planned(agent: Sequence[Event], first: RankLog, config: EffectiveConfig) -> Iterator[Check]:
    """Check rank 0's steps and samples against the plan, whose data the referee's process has counted; and which data
    it says that was."""
    event, end = _last(agent, EXAMINED) or {}, first.last.get("train_end")
    if end and "items" in event:
        yield keeps_the_plan(end["step"], end["samples"], event["items"], config.global_batch_size)
    said, there = (fields_of(each or {}, Identity) for each in (first.last.get("dataset"), event.get("data")))
    if said and there and said != there:
        what = "the data that it says it was trained on is not what a process without vendor's code has loaded"
        yield Check(PLAN, passed=False, figure=None, bound=0.0, meaning=what)


def replayed(agent: Sequence[Event], first: RankLog, precision: str) -> Iterator[Check]:
    """Check the recorded steps against their replays; nothing where none were recorded."""
    event, end = _last(agent, EXAMINED) or {}, first.last.get("train_end")
    drawn = _last(agent, DRAWN)
    trained = end["step"] if end else None
    yield from takes_steps(event.get("steps", ()), precision, trained, drawn["chances"] if drawn else None)


def standing(
    checks: Iterable[Check],
    found: Examination | None,
    taken: HandedOut | None = None,
    *,
    text: bool = False,
    resumed: bool = False,
    walled: bool = False,
    close: bool = False,
) -> tuple[Standing, ...]:
    """For each kind of figure, whether it was verified outside of the run's ranks or is only claimed.

    Args:
        checks: of its honesty.
        found: of its last weights.
        taken: what its ranks were handed out.
        text: whether it has tokens.
        resumed: whether there were samples before that.
        walled: whether all its ranks were behind a wall: others can reach into the processes that count.
        close: whether the agent's clock leaves little open of how long it took.
    """
    made = list(checks)
    held = {check.name for check in made} - {check.name for check in made if not check.passed}
    of = "on all validation data" if found and found.whole else f"on {found.samples if found else 0} samples drawn"
    counted = walled and taken is not None and taken.wrong is None
    unseen = f"; updates of some were not: {found.unseen}" if found and found.unseen else ""
    timed = AGENT if close or CLOCK not in held else LOOSE
    claimed = "the ranks, as the plan has it for their steps" if PLAN in held else "the ranks"
    verified = {
        "time": (CLOCK in held and close, timed),
        "samples": (counted and not resumed, FEEDERS if counted and not resumed else claimed),
        **({"tokens": (counted, FEEDERS)} if text else {}),
        "metric": (OUTSIDE in held, f"the referee's process, from the last weights, {of}"),
        "initial weights": (SEEDED in held, "the referee's process, from the seed"),
        "steps": (REPLAYED in held, f"the referee's process, by some that were recorded{unseen}"),
    }
    return tuple(
        Standing.model_validate(
            {"what": what, "verified": sure, "by": by if sure or what == "samples" or by == LOOSE else "the ranks"}
        )
        for what, (sure, by) in verified.items()
    )


def _last(events: Sequence[Event], kind: str) -> Event | None:
    return next((event for event in reversed(events) if event["event"] == kind), None)
