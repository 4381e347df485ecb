"""From what was timed to a measurement: rounds, their rates, what bounds them, and the latencies of their batches."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

from proofmark.inference.outcome.record import Measurement, Round
from proofmark.measuring.fresh_pace import Round as FreshRound
from proofmark.measuring.statistics import rate, supported_percentiles
from proofmark.record.events.log import Event
from proofmark.record.parts import Contention, Rate

WITHIN = 0.05
"""Rates that lie closer than this are the same, whatever their noise."""

Stage = Literal["loader", "compute", "evaluation"]


def round_of(event: Event) -> Round:
    """A `round` event as the record has it."""
    return Round(
        items=event["items"],
        filled=event.get("filled", 0),
        passes=event.get("passes", 1),
        batches=len(event["batch_ns"]),
        whole_seconds=event["whole_ns"] / 1e9,
        core_seconds=sum(event["batch_ns"]) / 1e9,
        evaluation_seconds=event["evaluation_ns"] / 1e9,
        foo_seconds=event.get("foo_ns", 0) / 1e9,
        accuracy=event["accuracy"],
        weight=event.get("weight"),
        started=event["started"],
        contention=Contention.model_validate(event["contention"]) if event.get("contention") else None,
    )


def full_batches(event: Event) -> FreshRound:
    """The seconds of a `round` event's full batches: fresh ones, and the data's own."""
    drawn, batch_ns = set(event.get("fresh", ())), event["batch_ns"]
    a_pass = max(1, len(batch_ns) // max(1, event.get("passes", 1)))
    full = [number for number in range(len(batch_ns)) if number % a_pass < event.get("full", a_pass)]
    fresh = [batch_ns[number] / 1e9 for number in full if number in drawn]
    return FreshRound(fresh, [batch_ns[number] / 1e9 for number in full if number not in drawn])


def core_of(rounds: Sequence[Round]) -> Rate:
    """The core throughput of rounds that took some time."""
    return rate([timed.items for timed in rounds], [timed.core_seconds for timed in rounds])


def measurement_of(rounds: Sequence[Event], loader: Sequence[Event], **facts: Any) -> Measurement | None:
    """A measurement from its `round` and `loader` events; None before a first round, or where one took no time.

    Args:
        rounds: of one target, in order.
        loader: rounds of the loader alone.
        facts: what else the record holds of it.
    """
    timed = [round_of(event) for event in rounds]
    if not timed or any(each.whole_seconds <= 0 or each.core_seconds <= 0 for each in timed):
        return None
    loaded = [(event["items"], event["seconds"]) for event in loader if event["items"] > 0 and event["seconds"] > 0]
    loading = rate([items for items, _ in loaded], [seconds for _, seconds in loaded]) if loaded else None
    core = core_of(timed)
    batch_ms = [ns / 1e6 for event in rounds for ns in event["batch_ns"]]
    return Measurement(
        rounds=tuple(timed),
        whole=rate([each.items for each in timed], [each.whole_seconds for each in timed]),
        core=core,
        loader=loading,
        bound_by=_bound_by(timed, core, loading),
        latency_ms={"mean": sum(batch_ms) / len(batch_ms), **supported_percentiles(batch_ms)},
        latency_batches=len(batch_ms),
        **facts,
    )


def margin(one: Rate, other: Rate, bound: float) -> float:
    """How far two rates may lie apart and still be the same, as a share: twice their noise, or the case's bound."""
    return max(bound, 2 * math.hypot(one.noise or 0.0, other.noise or 0.0))


def _bound_by(rounds: Sequence[Round], core: Rate, loader: Rate | None) -> Stage | None:
    """The slowest of the stages, if in each of its rounds it was slower than the next one in any."""
    rates: dict[Stage, Rate] = {"compute": core}
    if loader is not None:
        rates["loader"] = loader
    seconds = [each.evaluation_seconds for each in rounds]
    if all(each > 0 for each in seconds):
        rates["evaluation"] = rate([each.items for each in rounds], seconds)
    slowest, *others = sorted(rates, key=lambda stage: rates[stage].value)
    if not others:
        return slowest
    first, second = rates[slowest], rates[others[0]]
    return slowest if first.max < second.min and first.value < second.value * (1 - WITHIN) else None
