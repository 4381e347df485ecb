"""From a run's folder to its record."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from proofmark.launch.service.ticket import home_of
from proofmark.record.begun import envelope_of, how_far, identity_of
from proofmark.record.events.log import CORRUPT, LOG_FILE, NAMED, Event, read_events, seconds_between
from proofmark.record.integrity.chain import changes
from proofmark.record.parts import Check, Flops, Seal, Utilisation
from proofmark.record.provenance import Chip
from proofmark.rules.aims import aims_of
from proofmark.rules.config import EffectiveConfig
from proofmark.training.logs.digests import changed_since
from proofmark.training.logs.ranks.rank_log import RankLog
from proofmark.training.logs.seed_run import collect_run
from proofmark.training.outcome.checks import PLAN
from proofmark.training.outcome.event_types import AGENT_EVENTS, SESSION_EVENTS
from proofmark.training.outcome.figures import figures
from proofmark.training.outcome.over_runs import measured, olympic_mean, rates_over, tokens_over
from proofmark.training.outcome.record import SeedRun, TrainingRecord
from proofmark.training.outcome.shortfall import is_short
from proofmark.training.outcome.verdict import judge
from proofmark.wall.isolation import Isolation, weakest

ALONE: Event = {"hosts": [], "instances": None}
"""What of a run's end is not an independent server's."""


def collect(run_dir: Path, begun: Event | None = None, seal: Seal | None = None) -> TrainingRecord:
    """The judged record of what lies in `run_dir`, whole or not.

    Args:
        run_dir: the run's folder.
        begun: the event that the run began with, for a log that has lost it.
        seal: what the session's log is by its own word; None for one that nobody sealed.

    Raises:
        ValueError: nothing says what was run.
    """
    read = list(read_events(run_dir / LOG_FILE, SESSION_EVENTS))
    events = [event for event in read if event["event"] != CORRUPT]
    last = {event["event"]: event for event in events}
    begin = next((event for event in events if event["event"] == "run_begin"), begun)
    if begin is None:
        raise ValueError(f"{run_dir / 'events.jsonl'} does not say what was run")
    begin = begin | _of_hosts(events)  # first: the chip there decides over utilisation
    config = EffectiveConfig.from_dict(begin["config"])
    runs, firsts, kept, damaged = _rounds(run_dir, events, begin["nnodes"], config)
    begin |= {"isolation": begin.get("isolation", {}) | _isolation(kept)}
    damaged = [*(event["what"] for event in read if event["event"] == CORRUPT), *damaged, *_damaged_agents(run_dir)]
    first = firsts[0] if firsts else RankLog(0)
    processes = begin["nnodes"] * begin["nproc"] * config.gradient_accumulation_steps
    record = TrainingRecord(
        **envelope_of(begin, config),
        **{name: getattr(config, name) for name in ("metric", "target", "better")},
        others=dict([*aims_of(config.parameters).items()][1:]),
        **{name: begin[name] for name in ("scale", "nnodes", "nproc")},
        repeats=config.repeat,
        flops=None,  # comes with the rates, for which it takes the record to tell which runs are measured
        adapted=tuple(dict.fromkeys([*begin["adapted"], *_adapted(firsts)])),
        seconds=seconds_between(begin, [begin, *events][-1]),
        **_said_by(first),
        weights_given=config.host.weights is not None,
        global_batch_size=config.global_batch_size,
        train_batch_size=-(-config.global_batch_size // processes),
        runs=tuple(runs),
        unsupported=begin.get("unsupported"),
        fed=begin.get("fed", False),
        audited=begin.get("audited", False),
        **how_far(last),
        ended="run_end" in last,
        corrupt_lines=len(damaged),
        damaged=tuple(damaged[:NAMED]),
        log=seal,
        changed=tuple(_changed(run_dir, events, seal)[:NAMED]),
    )
    record = record.model_copy(update=_figures(record, begin, config, firsts))
    return record.model_copy(update={"verdict": judge(record)}).with_figures(figures(record))


def _isolation(kept: Iterable[Isolation]) -> Event:
    """How ranks were isolated, by the weakest."""
    ranks = weakest(kept)
    return {"ranks": ranks.model_dump()} if ranks else {}


def _said_by(first: RankLog) -> dict[str, Any]:
    """What a run's first rank alone says of it."""
    return {
        "dataset": identity_of(first.last.get("dataset")),
        "weights": identity_of(first.last.get("weights")),
        "validation_items": first.last.get("dataset", {}).get("validation_items"),
        "optimizer": first.last.get("optimizer", {}).get("name"),
    }


def _changed(run_dir: Path, events: Sequence[Event], seal: Seal | None) -> list[str]:
    """What shows that somebody else wrote into the session's log, or into a round's after its end."""
    if seal is None:
        return []
    ended = [event for event in events if event["event"] == "round_end" and "logs" in event]
    rounds = [what for event in ended for what in changed_since(run_dir / f"round{event['round']}", event["logs"])]
    return [*changes(run_dir / LOG_FILE, seal), *rounds]


def _rounds(
    run_dir: Path, events: Sequence[Event], nnodes: int, config: EffectiveConfig
) -> tuple[list[SeedRun], list[RankLog], list[Isolation], list[str]]:
    """Each seed's run, the logs of those runs' first ranks, how ranks were kept, and the damaged lines of any's log.

    The first of those logs is the one that the record quotes, and all runs are held to: of a run that broke off, which
    is held to nothing, only where all did.

    A run that was cut off has no end, and may have no rank 0: its other ranks say why, and it is a run all the same.
    """
    runs, kept, damaged = list[SeedRun](), list[Isolation](), list[str]()
    sound, broken = list[RankLog](), list[RankLog]()
    task: dict[str, Any] = {}
    for event in (event for event in events if event["event"] == "round_begin"):
        number = event["round"]
        end = next((e for e in events if e["event"] == "round_end" and e["round"] == number), None)
        run, ranks = collect_run(run_dir / f"round{number}", event, end, nnodes, config)
        task = task or _task(run, ranks)
        run = _of_task(run, ranks, task)
        (broken if run.failure else sound).extend(log for log in ranks[:1] if log.rank == 0)
        kept += [log.isolation for log in ranks if log.isolation]
        damaged += _damaged(f"round{number}", ranks)
        servers = []
        for node, home in enumerate(_further_servers(run), 1):
            own = {**(end or {}), **ALONE, **_times_of(end, node)}
            server, logs = collect_run(run_dir / f"round{number}" / home, event, own, nnodes, config)
            servers.append(_of_task(server, logs, task))
            kept += [log.isolation for log in logs if log.isolation]
            damaged += _damaged(f"round{number}/{home}", logs)
        runs.append(run.model_copy(update={"servers": tuple(servers), "begun": (end or {}).get("started")}))
    return runs, [*sound, *broken], kept, damaged


def _times_of(end: Event | None, server: int) -> Event:
    """When an independent server's agent began and had ended, by its own clock; nothing in older logs."""
    servers: Sequence[Event] = (end or {}).get("servers", ())
    return servers[server] if server < len(servers) else {}


def _task(run: SeedRun, ranks: Sequence[RankLog]) -> dict[str, Any]:
    """What a run's first rank says of that which all of a case's runs have in common; nothing of one that failed."""
    if run.failure is not None or not ranks or ranks[0].rank != 0:
        return {}
    last = ranks[0].last
    counted = {"parameters": last.get("model", {}).get("parameters"), "FLOPs": last.get("flops", {}).get("counted")}
    return {name.replace("_", " "): value for name, value in {**_said_by(ranks[0]), **counted}.items()}


def _of_task(run: SeedRun, ranks: Sequence[RankLog], task: dict[str, Any]) -> SeedRun:
    """The run, held to what the first one said: the record has that, and only a run that reached its target was
    examined."""
    own = _task(run, ranks)
    unlike = [name for name in own if task and own[name] != task[name]]
    if not unlike:
        return run
    what = f"its ranks say of its {', '.join(unlike)} something else than those of the first run"
    return run.model_copy(update={"checks": (*run.checks, Check(PLAN, False, None, 0.0, what))})


def _damaged(home: str, ranks: Iterable[RankLog]) -> Iterator[str]:
    return (f"{home}/noderank{log.node}/{what}" for log in ranks for what in log.damaged())


def _further_servers(run: SeedRun) -> list[str]:
    """The folders of a service's independent servers but the first, whose logs are the run's own."""
    count = len(run.instances.accuracies) if run.instances else 1
    return [Path(home_of(number, independent=True)).parent.name for number in range(1, count)]


def _adapted(firsts: Iterable[RankLog]) -> Iterator[str]:
    """What the vendor's code did its own way where it trained, whatever it said to the session."""
    for log in firsts:
        yield from log.last.get("adapted", {}).get("steps", ())


def _of_hosts(events: Iterable[Event]) -> Event:
    """The chip, the machine and the versions of the first host, where it is not the one that the session runs on."""
    described = [event["hosts"][0] for event in events if event["event"] == "round_end" and event.get("hosts")]
    return {key: described[0][key] for key in ("chip", "host", "versions") if key in described[0]} if described else {}


def _damaged_agents(run_dir: Path) -> Iterator[str]:
    homes = ("round*/noderank*/agent.jsonl", "round*/server*/noderank*/agent.jsonl")
    for path in sorted(path for home in homes for path in run_dir.glob(home)):
        for event in read_events(path, AGENT_EVENTS):
            if event["event"] == CORRUPT:
                yield f"{path.parent.relative_to(run_dir)}/{event['what']}"


def _figures(
    record: TrainingRecord, begin: Event, config: EffectiveConfig, firsts: Sequence[RankLog]
) -> dict[str, Any]:
    """Rates over the runs that were measured, and what follows from them.

    Older logs, in which no tokens were counted, say nothing of them, not even that there are none: there padding
    counts.
    """
    first = firsts[0] if firsts else RankLog(0)
    flops = Flops(declared=config.flops, counted=first.last.get("flops", {}).get("counted"))
    counted = begin.get("fed", False) or any("tokens" in log.last.get("train_end", ()) for log in firsts)
    runs = measured(record)
    rates = rates_over(runs)
    if not rates:
        return {"flops": flops, "utilisation": Utilisation(reason="nothing was measured")}
    times = [
        math.inf if run.seconds_to_target is None or is_short(record, run) else run.seconds_to_target
        for run in record.trainings
    ]
    whole = rates["raw"].value
    tokens = tokens_over(runs) if counted else config.parameters.get("max_seq_length")
    return {
        "flops": flops,
        "rates": rates,
        "utilisation": _utilisation(Chip.model_validate(begin["chip"]), flops, begin["devices"], whole),
        "seconds_to_target": _finite(olympic_mean(times)),
        "items_per_second_per_device": whole / begin["devices"],
        "tokens_per_second": None if tokens is None else whole * tokens,
    }


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _utilisation(chip: Chip, flops: Flops, devices: int, rate: float) -> Utilisation:
    """MFU: FLOPs of a sample's training step times samples per second, over all peaks.

    What is counted in a rank is its word: where it says more than the case declares, that is taken.
    """
    if chip.peak is None:
        return Utilisation(reason=chip.peak_missing)
    each = min(flops.counted or flops.declared, flops.declared)
    return Utilisation(mfu=each * rate / (chip.peak.flops_per_second * devices))
