"""From an event log to a run record."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

from harness.config import EffectiveConfig
from harness.events import CORRUPT, Event, read_events, seconds_between
from harness.monitoring import summarise
from harness.record import (
    STEPS,
    Accuracy,
    Check,
    Flops,
    Identity,
    Measurement,
    Memory,
    Monitoring,
    Round,
    RunRecord,
    Step,
    Utilisation,
)
from harness.statistics import spread, supported_percentiles
from harness.verdict import judge

Events = dict[str, list[Event]]


def collect(events_file: Path) -> RunRecord:
    """Make the record of a case run from its event log, whole or broken off, and judge it.

    Raises:
        ValueError: the log doesn't even hold the run's beginning.
    """
    events: Events = defaultdict(list)
    last: Event | None = None
    for event in read_events(events_file):
        events[event["event"]].append(event)
        if "clock" in event and (last is None or event["clock"] > last["clock"]):
            last = event
    if not events["run_begin"] or last is None:
        raise ValueError(f"{events_file}: no run_begin event")
    begin = events["run_begin"][0]
    config = EffectiveConfig.from_dict(begin["config"])
    engine, framework = _measurement(events, "engine"), _measurement(events, "framework")
    flops = Flops(declared=config.flops, counted=_last(events, "flops").get("counted"))
    facts = {key: begin[key] for key in ("compiler", "precision", "versions", "host", "chip", "device", "problems")}
    record = RunRecord(
        suite=config.suite,
        case=config.case,
        profile=config.profile,
        vendor=config.vendor,
        item=config.item,
        started=begin["time"],
        seconds=seconds_between(begin, last),
        config_hash=config.hash,
        config={**config.as_dict()["parameters"], **config.as_dict()["configurations"]},
        overrides=begin["config"]["overrides"],
        seed=config.seed,
        dataset=_identity(events, "dataset"),
        weights=_identity(events, "weights"),
        steps=_steps(events),
        framework=framework,
        engine=engine,
        accuracy=_accuracy(events, config, begin["gate"]),
        flops=flops,
        memory=_memory(events, begin["compiler"]),
        dishonest=tuple(dict.fromkeys(event["what"] for event in events["dishonest"])),
        disturbed=tuple(dict.fromkeys(event["what"] for event in events["disturbed"])),
        checks=tuple(_check(event) for event in events["check"]),
        partial=bool(events["partial"]),
        corrupt_lines=len(events[CORRUPT]),
        interrupted=_last(events, "interrupted").get("step"),
        **facts,
    )
    record = record.model_copy(update={"monitoring": _monitoring(record, events, events_file)})
    record = record.model_copy(update={"utilisation": _utilisation(record)})
    return record.model_copy(update={"verdict": judge(record)})


def _check(event: Event) -> Check:
    return Check.model_validate({key: event[key] for key in Check.model_fields})


def _last(events: Events, name: str, of: str | None = None) -> Event:
    return next((e for e in reversed(events[name]) if of is None or e.get("of") == of), {})


def _identity(events: Events, name: str) -> Identity | None:
    event = _last(events, name)
    return Identity(**{key: event[key] for key in ("name", "sha256", "items", "origin")}) if event else None


def _steps(events: Events) -> tuple[Step, ...]:
    """Each step once: as its end says, or as failed if it only began, or as not reached."""
    begun = {event["step"] for event in events["step_begin"]}
    ends = {event["step"]: event for event in events["step_end"]}
    interrupted = _last(events, "interrupted").get("step")
    steps = []
    for name in STEPS:
        if name in ends:
            fields = {key: ends[name].get(key) for key in ("status", "seconds", "reason", "kind", "detail")}
            steps.append(Step.model_validate({"name": name, **fields}))
        elif name in begun:
            reason = "interrupted" if name == interrupted else "it began and never ended"
            steps.append(Step(name=name, status="failed", reason=reason, kind="error"))
        else:
            steps.append(Step(name=name, status="not_reached"))
    return tuple(steps)


def _rounds(events: Events, of: str) -> list[Event]:
    return [event for event in events["round"] if event["of"] == of]


def _measurement(events: Events, of: str) -> Measurement | None:
    """All rounds of one target; None before its first round was complete."""
    rounds = [
        Round(
            items=event["items"],
            batches=len(event["batch_ns"]),
            whole_seconds=event["whole_ns"] / 1e9,
            core_seconds=sum(event["batch_ns"]) / 1e9,
            evaluation_seconds=event["evaluation_ns"] / 1e9,
            accuracy=event["accuracy"],
            started=event["started"],
        )
        for event in _rounds(events, of)
    ]
    if not rounds or any(r.whole_seconds <= 0 or r.core_seconds <= 0 for r in rounds):
        return None
    batch_ms = [ns / 1e6 for event in _rounds(events, of) for ns in event["batch_ns"]]
    core = spread([r.items / r.core_seconds for r in rounds])
    loader = _last(events, "loader", of).get("items_per_second", 0.0)
    warmup = _last(events, "warmup", of)
    return Measurement(
        rounds=tuple(rounds),
        warmup_batches=warmup.get("batches", 0),
        warmup_seconds=warmup.get("seconds", 0.0),
        whole=spread([r.items / r.whole_seconds for r in rounds]),
        core=core,
        loader=loader,
        bound_by=_bound_by(rounds, core.mean, loader),
        latency_ms={"mean": sum(batch_ms) / len(batch_ms), **supported_percentiles(batch_ms)},
        latency_batches=len(batch_ms),
    )


def _bound_by(rounds: list[Round], core: float, loader: float) -> Any:
    """The slowest of the three stages that run side by side, each in items per second."""
    items, evaluation = sum(r.items for r in rounds), sum(r.evaluation_seconds for r in rounds)
    rates = {"compute": core, "loader": loader, "evaluation": items / evaluation if evaluation else float("inf")}
    return min(rates, key=lambda stage: rates[stage])


def _accuracy(events: Events, config: EffectiveConfig, gate: float) -> Accuracy:
    """The worst round of each target counts; a round without a figure makes the whole missing."""

    def worst(of: str) -> float | None:
        scores = [event["accuracy"] for event in _rounds(events, of)]
        return min(scores) if scores and None not in scores else None

    tested = _last(events, "framework_precision").get("precision")
    framework = worst("framework") if tested == config.effective_precision else None
    fp32 = worst("framework") if tested == "fp32" else worst("framework_fp32")
    return Accuracy(
        metric=config.metric,
        target=config.target,
        gate=gate,
        framework_fp32=fp32,
        framework=framework,
        engine=worst("engine"),
    )


def _memory(events: Events, compiler: str | None) -> Memory:
    event = _last(events, "memory", "engine" if compiler else "framework")
    return Memory(**{key: event.get(key) for key in Memory.model_fields})


def _monitoring(record: RunRecord, events: Events, events_file: Path) -> Monitoring | None:
    measurement = record.measured()
    window = None
    if measurement:
        begun = [timed.started for timed in measurement.rounds]
        window = (min(begun), max(timed.started + timed.whole_seconds for timed in measurement.rounds))
    items = sum(timed.items for timed in measurement.rounds) if measurement else 0
    failures = [event["what"] for event in events["monitor_failed"]]
    try:
        return summarise(events_file.with_name("monitor.jsonl"), window, items, failures)
    except (ValueError, OverflowError, OSError) as error:
        reason = f"the monitor's log cannot be used: {str(error).splitlines()[0]}"
        return Monitoring.model_validate({"samples": 0, "window": window, "failures": (*failures, reason)})


def _utilisation(record: RunRecord) -> Utilisation:
    """MFU: FLOPs per item, as counted or else as declared, times core throughput over the chip's peak."""
    measurement = record.measured()
    if measurement is None:
        return Utilisation(reason="nothing was measured")
    if record.chip.peak is None:
        return Utilisation(reason=record.chip.peak_missing)
    flops = record.flops.counted or record.flops.declared
    return Utilisation(mfu=flops * measurement.core.mean / record.chip.peak.flops_per_second)
