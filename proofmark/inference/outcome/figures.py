"""The figures of an inference case: each is made here, and nowhere else.

Throughputs are items per second, all items over all seconds; latencies milliseconds per batch; memory bytes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

from proofmark.inference.outcome import reasons
from proofmark.inference.outcome.reasons import SIDES, Side
from proofmark.inference.outcome.record import Measurement, RunRecord, Score
from proofmark.inference.outcome.validated import held_to, unvalidated
from proofmark.literal import percent, plural
from proofmark.monitoring.contention import merged
from proofmark.record.common_figures import cost, fact, honesty, quality, troubles, utilisation
from proofmark.record.compared import compared_figures
from proofmark.record.figures import Figure, FigureKind, valued
from proofmark.record.parts import Rate
from proofmark.rules.aims import factor_kept, reaches, slug

WHOLE = "items over all of the time that they take: loading, compute, evaluation, and what lies between them."
CORE = "items over the time of compute alone, from inputs on the host to answers on the host: the chip's speed."
FOO_TIME = "what an engine says of its calls not to be inference. Core and whole hold it; without it nobody is ranked."
LOADER = "items per second of the data loader running alone. Whole cannot be faster."
PUBLISHED = "MFU by the FLOPs that FlagPerf declares for the task: of an image model it counts a multiply-add as one."
BOUND_BY = "the slowest of loader, compute and evaluation: it limits whole. Undecided where they lie within the noise."

PERCENTILES = ("mean", "p50", "p90", "p95", "p99", "p99.9")
INFIX = {"framework": "validation", "engine": "inference"}
"""What FlagPerf calls the sides in the names of its figures."""


def figures(record: RunRecord) -> tuple[Figure, ...]:
    """All figures of a record, the same keys for every record; first the one that it is ranked by."""
    sides = {figure.key: figure for side in SIDES for figure in _of_side(record, side)}
    scores = {figure.key: figure for figure in _scores(record)}
    side = ranked(record)
    ranking = [
        sides[f"{side}_core"].known_as("core", headline=True, meaning=CORE, also=None),
        sides[f"{side}_whole"].known_as("whole", headline=True, meaning=WHOLE, also=None),
        sides[f"{side}_loader"].known_as("loader", headline=True, meaning=LOADER),
        sides[f"{side}_bound_by"].known_as("bound_by", headline=True, meaning=BOUND_BY),
    ]
    reached = [scores[f"accuracy_{side}"].known_as("accuracy", headline=True, label="accuracy")]
    for other in record.accuracy.others:
        own = scores[f"value_{slug(other.metric)}_{side}"]
        reached.append(own.known_as(f"value_{slug(other.metric)}", headline=True, label=other.metric))
    measured = (*_of_run(record), *sides.values(), *scores.values(), *_energy(record))
    return (*ranking, *compared_figures(record.compared, ranking), *measured, *reached, *_watched(record))


def ranked(record: RunRecord) -> Side:
    """The side that the case is ranked by."""
    return "framework" if record.compiler is None else "engine"


def _of_run(record: RunRecord) -> Iterator[Figure]:
    """What the case is, and how well it uses the chip."""
    batch, flops, item = record.config.get("batch_size"), record.flops, record.item
    known = batch if isinstance(batch, int) else None
    yield fact("batchsize", "batchsize", "1", **valued(known, "the case has no batch_size"))
    reached = flops.counted or flops.declared
    yield _of_measurement(
        record,
        ranked(record),
        lambda m: valued(reached * m.core.value if reached else None, "the case declares no FLOPs"),
        key="flops_rate",
        label="flops",
        unit="FLOP/s",
        of=None,
    )
    yield fact("flops_declared", "FLOPs: declared", f"FLOP/{item}", value=flops.declared)
    yield fact("flops_counted", "FLOPs: counted", f"FLOP/{item}", **valued(flops.counted, "not counted"))
    yield utilisation(record)
    if flops.convention == "flagperf":
        yield _of_measurement(
            record,
            ranked(record),
            lambda m: _by_published_flops(record, m),
            key="mfu_published",
            label="MFU, FlagPerf's way",
            unit="share",
            of=None,
            meaning=PUBLISHED,
        )
    yield from _relied_on(record)
    for number, container in enumerate(record.containers, 1):
        yield fact(f"container_{number}", "container", "text", value=container.text)
    if record.caches_cleared or record.caches_kept:
        kept = f"not cleared: {record.caches_kept}"
        yield fact("caches", "caches", "text", value="cleared before the run" if record.caches_cleared else kept)
    yield cost("e2e_seconds", "e2e_time(second)", "s", **valued(record.seconds, "it took no time of its own"))


def _relied_on(record: RunRecord) -> Iterator[Figure]:
    """The ONNX file, and the earlier run whose word for it is taken."""
    if record.onnx is not None:
        yield fact("onnx", "ONNX file", "text", value=f"SHA-256 {record.onnx}")
    if (earlier := record.validated) is not None:
        values = ", ".join(f"{metric} {value:.5f}" for metric, value in earlier.framework_fp32.items())
        reached = f"{values} of the fp32 framework, vendor {earlier.vendor}"
        source = f"session {earlier.session}, {earlier.suite}/{earlier.case}, record SHA-256 {earlier.record_sha256}"
        refused = "; not relied on" if unvalidated(record) else ""
        yield fact("validated_by", "validated by", "text", value=f"{source}: {reached}{refused}")


def _by_published_flops(record: RunRecord, measurement: Measurement) -> dict[str, Any]:
    """MFU as FlagPerf's analysis has it: core throughput times the FLOPs that its case declares, over the chip's
    peak."""
    published = record.flops.published
    if published is None:
        return valued(None, f"no FLOPs of FlagPerf's are known for profile {record.profile}")
    if record.chip.peak is None:
        return valued(None, record.chip.peak_missing)
    return valued(published * measurement.core.value / record.chip.peak.flops_per_second, "")


def _of_side(record: RunRecord, side: Side) -> Iterator[Figure]:
    """The framework's figures, or the engine's."""

    def figure(name: str, label: str, unit: str, form: Callable[[Measurement], dict[str, Any]], **more: Any) -> Figure:
        return _of_measurement(record, side, form, key=f"{side}_{name}", label=label, unit=unit, of=side, **more)

    per_second = f"{plural(record.item)}/s"
    for name in ("whole", "core"):
        also = f"p_{INFIX[side]}_{name}"
        yield figure(name, name, per_second, lambda m, name=name: _rate(getattr(m, name)), also=also)  # type: ignore[misc]
    if (found := getattr(record, side)) is not None and found.foo_seconds:
        yield from _without_foo_time(side, found, per_second)
    yield figure("loader", "loader", per_second, lambda m: _rate(m.loader))
    yield figure("bound_by", "bound by", "text", _bound_by)
    nothing = "nothing was loaded beside it"
    yield figure("core_lost", "core lost", "share", lambda m: valued(m.core_lost, nothing))
    yield figure("contention", "contention", "share", _contention)
    for name in PERCENTILES:
        few = lambda m, name=name: valued(m.latency_ms.get(name), "too few batches for it")  # noqa: E731
        yield figure(f"latency_{name.replace('.', '_')}_ms", f"latency: {name}", "ms", few)


def _without_foo_time(side: Side, found: Measurement, per_second: str) -> Iterator[Figure]:
    """What an engine declares not to be inference, and its throughputs if that is believed."""
    named: dict[str, Any] = {"of": side, "kind": FigureKind.SPEED}
    for name in ("whole", "core"):
        value = valued(found.without_foo_time(name), "nothing would be left of the time")
        label = f"{name} without foo_time"
        yield Figure(key=f"{side}_{name}_without_foo_time", label=label, unit=per_second, **named, **value)
    note = f"declared: {found.foo_time_reason}" if found.foo_time_reason else "not declared"
    value = valued(found.foo_seconds, "") | {"note": note}
    yield Figure(key=f"{side}_foo_seconds", label="foo_time", unit="s", meaning=FOO_TIME, **named, **value)


def _of_measurement(
    record: RunRecord, side: Side, form: Callable[[Measurement], dict[str, Any]], **named: Any
) -> Figure:
    """A speed of a side, or why it was not measured."""
    found = record.framework if side == "framework" else record.engine
    value = {"reason": reasons.why_not(record, side)} if found is None else form(found)
    return Figure(kind=FigureKind.SPEED, **named, **value)


def _rate(rate: Rate | None) -> dict[str, Any]:
    if rate is None:
        return {"reason": "not measured"}
    return {"value": rate.value, "spread": rate.stdev, "note": "one round" if rate.stdev is None else None}


def _bound_by(found: Measurement) -> dict[str, Any]:
    """That nothing binds tells of speeds too: it is a value, so that it is withheld with them."""
    if found.bound_by is None:
        return {"value": "undecided", "note": "the slowest two stages lie within the noise"}
    return {"value": found.bound_by}


def _contention(found: Measurement) -> dict[str, Any]:
    """The share of the machine's cores that others took in the timed rounds."""
    seen = merged([(each.whole_seconds, each.contention) for each in found.rounds if each.contention])
    if seen is None:
        return {"reason": "not recorded"}
    return {"value": seen.others, "note": f"of the cores taken by others, {percent(seen.idle)} idle"}


def _scores(record: RunRecord) -> Iterator[Figure]:
    """Accuracies by who reached them, the target, and what the engine must keep beyond it; then the other values."""
    yield fact("metric", "metric", "text", value=record.accuracy.metric)
    yield from _of_score(record, record.accuracy, "accuracy", "accuracy", "")
    for score in record.accuracy.others:
        key = slug(score.metric)
        yield from _of_score(record, score, f"value_{key}", score.metric, f"_{key}")


def _of_score(record: RunRecord, found: Score, key: str, name: str, suffix: str) -> Iterator[Figure]:
    """One value's figures: `key` and `name` say whose they are, `suffix` tells its target from others'."""
    precision, of = record.precision, f", {name}" if suffix else ""
    rows: tuple[tuple[str, str, Side, float | None], ...] = (
        ("framework_fp32", f"val {name}, fp32", "framework", found.framework_fp32),
        ("framework", f"val {name}, {precision}", "framework", found.framework),
        ("engine", f"infer {name}", "engine", found.engine),
    )
    less = found.better == "lower"
    for who, label, side, score in rows:
        one = who == "framework" and precision == "fp32" and score == found.framework_fp32
        known = valued(score, reasons.why_no_score(record, side))
        held = {"target": found.target, "repeats": f"{key}_framework_fp32" if one else None}
        yield quality(f"{key}_{who}", label, found.metric, lower_is_better=less, **known, **held)
    if found.target is not None:
        at_most = {"note": "at most"} if less else {}
        yield quality(f"target{suffix}", f"target{of}", found.metric, value=found.target, **at_most)
        yield quality(
            f"engine_floor{suffix}", f"target, engine{of}", found.metric, **_floor(record, held_to(record, found))
        )


def _floor(record: RunRecord, found: Score) -> dict[str, Any]:
    """The value that the engine must reach, and what demands it: the harder of the target and a share."""
    ratio, fp32 = record.policy.accuracy_ratio, found.framework_fp32
    share = found.floor(ratio)
    if ranked(record) == "framework" or fp32 is None or share is None or not math.isfinite(fp32):
        return {"reason": "no engine is held to a framework"}
    if found.target is not None and reaches(found.target, share, found.better):
        return {"value": found.target, "note": "the target"}
    return {"value": share, "note": f"{100 * factor_kept(fp32, ratio, found.better):g} % of the fp32 framework's"}


def _energy(record: RunRecord) -> Iterator[Figure]:
    """Within the timed window, all devices together."""
    seen, side = record.monitoring, ranked(record)
    power = seen is not None and any(series.name == "power" for series in seen.series)
    too_few = "fewer than two readings of power in a timed round, or none around it"
    more = "a smaller --monitor-interval or larger --min-seconds has more"
    why = f"{too_few}: {more}" if power else "nothing read power or energy"
    reason = reasons.unless_ended(record, side, why if seen else "there was no monitor")
    whole, item = (seen.energy_joules, seen.energy_per_item) if seen else (None, None)
    method = {"note": seen.energy_method} if seen and seen.energy_method else {}
    yield cost("energy_joules", "energy: timed window", "J", **valued(whole, reason))
    per_item = {**valued(item, reason), **(method if item is not None else {})}
    yield cost("energy_per_item", "energy: per item", f"J/{record.item}", headline=True, **per_item)
    how = {"reason": reason} if whole is None else {"value": (seen and seen.energy_method) or "not recorded"}
    yield cost("energy_method", "energy: read by", "text", repeats="energy_per_item", **how)


def _watched(record: RunRecord) -> Iterator[Figure]:
    """Memory, checks, and what the monitor found wrong."""
    why = reasons.why_not(record, "engine") if record.engine is None else "none recorded"
    to_be_checked = record.compiler is None or record.engine is not None  # else those that passed are the framework's
    yield honesty([check for check in record.checks if to_be_checked or not check.passed], why)
    yield from troubles([record.monitoring])
    memory, side = record.memory, ranked(record)
    for name, size in (("host", memory.host_peak_bytes), ("device", memory.device_peak_bytes)):
        reason = reasons.unless_ended(record, side, f"nothing read the {name}'s memory")
        total = memory.device_total_bytes if name == "device" and size is not None else None
        of = f"of {total / 2**30:.3g} GiB" if total is not None else None
        yield fact(f"memory_{name}_bytes", f"memory, {name}", "B", **valued(size, reason), note=of)
