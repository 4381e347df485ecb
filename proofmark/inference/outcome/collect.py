"""From an event log to a run record."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from proofmark import __version__
from proofmark.inference.outcome.event_types import CASE_EVENTS
from proofmark.inference.outcome.figures import figures
from proofmark.inference.outcome.kept import home_of
from proofmark.inference.outcome.record import STEPS, Accuracy, Measurement, RunRecord, Score, Step, Validated
from proofmark.inference.outcome.rounds import full_batches, measurement_of
from proofmark.inference.outcome.verdict import judge
from proofmark.inference.outside import timed_outside
from proofmark.measuring.fresh_pace import excused, fresh_pace
from proofmark.monitoring.summary import monitoring_of
from proofmark.record.begun import envelope_of, how_far, identity_of
from proofmark.record.events.log import CORRUPT, NAMED, Event, read_events, seconds_between
from proofmark.record.events.types import fields_of
from proofmark.record.integrity.chain import changes
from proofmark.record.parts import Check, Flops, Memory, Monitoring, Seal, Utilisation
from proofmark.record.provenance import Launched
from proofmark.rules.aims import Better, aims_of, worst
from proofmark.rules.config import EffectiveConfig
from proofmark.wall.isolation import Isolation, weakest

Events = dict[str, list[Event]]


def collect(events_file: Path, begun: Event | None = None, seal: Seal | None = None) -> RunRecord:
    """Make the record of a case run from its event log, whole, damaged or broken off, and judge it.

    Args:
        events_file: the log.
        begun: the event that the run began with, for a log that has lost it.
        seal: what the log is by the word of the session that writes it; None for one that nobody sealed.

    Raises:
        ValueError: nothing says what was run.
    """
    events, begin, last = _read(events_file, begun)
    launched = _last(events, "launched")
    isolated = _isolated(events["isolated"])
    begin = begin | _of_host(launched, begin) | {"isolation": begin.get("isolation", {}) | isolated}
    config = EffectiveConfig.from_dict(begin["config"])
    engine, framework = _measurement(events, "engine"), _measurement(events, "framework")
    target = "engine" if begin["compiler"] else "framework"
    own, excuses = _own_checks(events, target, here=not launched)
    record = RunRecord(
        **envelope_of(begin, config),
        compiler=begin["compiler"],
        device=begin["device"],
        seconds=seconds_between(launched if "begun" in launched else begin, last),
        begun=launched.get("begun"),
        dataset=identity_of(_last(events, "dataset")),
        weights=identity_of(_last(events, "weights")),
        steps=_steps(events),
        audit=_step(events, "audit"),
        framework=framework,
        engine=engine,
        accuracy=_accuracy(events, config, begin["gate"]),
        flops=_flops(events, config),
        memory=_memory(events, begin["compiler"]),
        dishonest=tuple(dict.fromkeys([*(event["what"] for event in events["dishonest"]), *_accusations(own, target)])),
        disturbed=tuple(dict.fromkeys([*(event["what"] for event in events["disturbed"]), *excuses])),
        checks=(*_checks(events), *own),
        framework_held=begin.get("framework_held", False),
        **_log(events, events_file, seal),
        onnx=_last(events, "onnx").get("sha256"),
        validated=_validated(_last(events, "validated")),
        caches_cleared=_last(events, "caches").get("cleared", launched.get("caches_cleared")),
        caches_kept=_last(events, "caches").get("reason"),
        launched=tuple(map(_launched, launched.get("hosts", ()))),
    )
    record = record.model_copy(update={"monitoring": _monitoring(record, events, events_file)})
    record = record.model_copy(update={"utilisation": _utilisation(record)})
    return record.model_copy(update={"verdict": judge(record)}).with_figures(figures(record))


def _read(events_file: Path, begun: Event | None) -> tuple[Events, Event, Event]:
    """All events by kind, the run's first, and the last by the clock."""
    events: Events = defaultdict(list)
    last = begun
    for event in read_events(events_file, CASE_EVENTS):
        events[event["event"]].append(event)
        if "clock" in event and (last is None or event["clock"] > last["clock"]):
            last = event
    begin = next(iter(events["run_begin"]), begun)
    if begin is None or last is None:
        raise ValueError(f"{events_file}: no run_begin event")
    return events, begin, last


def _log(events: Events, events_file: Path, seal: Seal | None) -> dict[str, Any]:
    """How far the log came, and in what state it is."""
    return {
        **how_far({name: of_kind[-1] for name, of_kind in events.items() if of_kind}),
        "corrupt_lines": len(events[CORRUPT]),
        "damaged": tuple(event["what"] for event in events[CORRUPT][:NAMED]),
        "log": seal,
        "changed": tuple(changes(events_file, seal)) if seal else (),
    }


def _flops(events: Events, config: EffectiveConfig) -> Flops:
    """FLOPs of one item, as declared, as counted and as published."""
    return Flops(
        declared=config.flops,
        counted=_last(events, "flops").get("counted"),
        published=(config.get("published") or {}).get("flops"),
        convention=config.host.flops_convention,
    )


def _isolated(events: Sequence[Event]) -> dict[str, Event]:
    """How each kind of process was isolated, by the weakest: one that is measured or audited again is started again."""
    kept = defaultdict[str, list[Isolation]](list)
    for event in events:
        kept[event["of"]].append(Isolation.model_validate(event["isolation"]))
    return {of: found.model_dump(mode="json") for of, isolations in kept.items() if (found := weakest(isolations))}


def _launched(host: Event) -> Launched:
    return Launched.model_validate(fields_of(host, Launched))


def _validated(event: Event) -> Validated | None:
    return Validated.model_validate(fields_of(event, Validated)) if event else None


def _of_host(launched: Event, begin: Event) -> Event:
    """Chip, machine, versions, device and the vendor's package of the host that it ran on, where that is another."""
    if not launched.get("hosts"):
        return {}
    host = launched["hosts"][0]
    found = {key: host[key] for key in ("chip", "host") if key in host}
    if "versions" in host:  # the suite's own code was sent there
        own = {"proofmark": __version__, "python": str(host.get("python"))}
        found["versions"] = own | host["versions"]
    if begin.get("provenance") and "package" in host:
        found["provenance"] = begin["provenance"] | host["package"]
    return {"device": launched["device"], **found}


def _checks(events: Events) -> tuple[Check, ...]:
    """The checks of each target's last measurement; what failed in an earlier one is among `dishonest` all the same."""
    last = dict[str, int]()
    for event in events["check"]:
        last[_target(event)] = max(last.get(_target(event), 0), event.get("attempt", 0))
    return tuple(Check.read(event) for event in events["check"] if event.get("attempt", 0) == last[_target(event)])


def _target(check: Event) -> str:
    """Whose a check is, by its name: the engine's bear none."""
    name: str = check["name"]
    return name.rpartition(" (")[2] if name.endswith(")") else ""


def _own_checks(events: Events, target: str, here: bool) -> tuple[list[Check], list[str]]:
    """Checks that the session makes of what it was told: of time, where the case ran `here`, and of the `target`'s
    fresh batches.

    With them, what disturbed the machine too much for one of them to accuse anybody.
    """
    checks = list(timed_outside(events["round_begin"], events["round_end"], events["round"])) if here else []
    rounds = _of(events, "round", target)
    fresh = fresh_pace([full_batches(event) for event in rounds])
    if fresh is None:
        return checks, []
    others = max((event.get("contention") or {}).get("others", 0.0) for event in rounds)
    fresh, excuses = excused(fresh, others)
    name = fresh.name if target == "engine" else f"{fresh.name} ({target})"
    return [*checks, replace(fresh, name=name)], excuses


def _accusations(checks: Sequence[Check], target: str) -> list[str]:
    """The checks that failed, each in a sentence."""
    return [f"the {target} fails '{check.name}': {check.finding}" for check in checks if not check.passed]


def _last(events: Events, name: str, of: str | None = None) -> Event:
    return next((e for e in reversed(events[name]) if of is None or e.get("of") == of), {})


def _steps(events: Events) -> tuple[Step, ...]:
    """Each of the seven once."""
    return tuple(_step(events, name) or Step(name=name, status="not_reached") for name in STEPS)


def _step(events: Events, name: str) -> Step | None:
    """A step as its end says, or as failed if it only began; None where it did not begin."""
    end = next((event for event in reversed(events["step_end"]) if event["step"] == name), None)
    if end is not None:
        fields = {key: end.get(key) for key in ("status", "seconds", "reason", "kind", "detail")}
        return Step.model_validate({"name": name, **fields})
    if not any(event["step"] == name for event in events["step_begin"]):
        return None
    why = "interrupted" if name == _last(events, "interrupted").get("step") else "it began and never ended"
    return Step(name=name, status="failed", reason=why, kind="error")


def _of(events: Events, kind: str, of: str) -> list[Event]:
    """The events of a kind that are of a target's last measurement: a disturbed one is repeated, and no part of it
    counts."""
    attempt = sum(event["of"] == of for event in events["repeated"])
    return [event for event in events[kind] if event["of"] == of and event.get("attempt", 0) == attempt]


def _measurement(events: Events, of: str) -> Measurement | None:
    """All rounds of one target; None before its first round was complete."""
    warmup = _last(events, "warmup", of)
    return measurement_of(
        _of(events, "round", of),
        _of(events, "loader", of),
        warmup_batches=warmup.get("batches", 0),
        warmup_seconds=warmup.get("seconds", 0.0),
        core_alone=_last(events, "alone", of).get("items_per_second"),
        foo_time_reason=_last(events, "foo_time", of).get("reason"),
        repeated=tuple("; ".join(event["what"]) for event in events["repeated"] if event["of"] == of),
    )


def _accuracy(events: Events, config: EffectiveConfig, gate: float) -> Accuracy:
    """The worst round of each target counts; a round without a figure makes the whole missing."""
    (name, aim), *others = aims_of(config.parameters).items()
    scores = tuple(
        Score(metric=each, target=of.target, better=of.better, **_reached(events, config, each, of.better))
        for each, of in others
    )
    reached = _reached(events, config, None, aim.better)
    return Accuracy(metric=name, target=config.target, better=aim.better, gate=gate, others=scores, **reached)


def _reached(events: Events, config: EffectiveConfig, name: str | None, better: Better) -> dict[str, float | None]:
    """A value of the metric by who reached it; the headline where it has no name."""

    def worst_of(of: str) -> float | None:
        rounds = _of(events, "round", of)
        found = [event["accuracy"] if name is None else event.get("others", {}).get(name) for event in rounds]
        known = [value for value in found if value is not None]
        return worst(known, better) if known and len(known) == len(found) else None

    tested = _last(events, "framework_precision").get("precision")
    return {
        "framework_fp32": worst_of("framework") if tested == "fp32" else worst_of("framework_fp32"),
        "framework": worst_of("framework") if tested == config.effective_precision else None,
        "engine": worst_of("engine"),
    }


def _memory(events: Events, compiler: str | None) -> Memory:
    event = _last(events, "memory", "engine" if compiler else "framework")
    return Memory(**{key: event.get(key) for key in Memory.model_fields})


def _monitoring(record: RunRecord, events: Events, events_file: Path) -> Monitoring | None:
    measurement = record.measured()
    rounds = measurement.rounds if measurement else ()
    timed = [(each.started, each.started + each.whole_seconds) for each in rounds]
    window = (min(begun for begun, _ in timed), max(ended for _, ended in timed)) if timed else None
    items = sum(each.items for each in rounds)
    failures = [event["what"] for event in events["monitor_failed"]]
    return monitoring_of(home_of(events_file.parent) / "monitor.jsonl", window, items, failures, timed)


def _utilisation(record: RunRecord) -> Utilisation:
    """MFU: FLOPs per item, as counted or else as declared, times core throughput over the chip's peak."""
    measurement = record.measured()
    if measurement is None:
        return Utilisation(reason="nothing was measured")
    if record.chip.peak is None:
        return Utilisation(reason=record.chip.peak_missing)
    flops = record.flops.counted or record.flops.declared
    return Utilisation(mfu=flops * measurement.core.value / record.chip.peak.flops_per_second)
