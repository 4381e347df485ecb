"""The figures of a training at one scale: each is made here, and nowhere else.

Rates are items per second over all devices, memory bytes, energies joules.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from proofmark.launch.cluster.preflight import signed
from proofmark.literal import MISSING, number, percent, plural, some
from proofmark.record.common_figures import cost, fact, honesty, quality, troubles, utilisation
from proofmark.record.compared import compared_figures
from proofmark.record.figures import Figure, FigureKind, valued
from proofmark.record.parts import Monitoring
from proofmark.rules.aims import Aim, slug, worst
from proofmark.training.outcome.over_runs import measured, tokens_over
from proofmark.training.outcome.record import SeedRun, TrainingRecord
from proofmark.training.outcome.shortfall import is_short
from proofmark.training.outcome.stragglers import SECONDS, STEPS, host_name, slowest_host, slowest_rank, too_short

TOO_SHORT = f"too little was trained to compare by it: at least {SECONDS:g} s and {STEPS} steps"
"""Without the seconds that it took: reasons are not withheld."""

MOST_HOSTS = 8
"""Hosts that are named one by one."""

TO_TARGET = "seconds of training up to the evaluation that reached the target."
RATES = {
    "raw": ("whole", "p_whole", "items over all of the training time, evaluations included."),
    "no_eval": ("no eval", "p_train", "items over the training time without its evaluations, by its ranks' word."),
    "pure_compute": (
        "core",
        "p_core",
        "items over the time of compute alone, by the slowest rank's word, with the device waited for on both sides of "
        "each step.",
    ),
}
"""Label, FlagPerf's name and meaning of the rates, by their keys in a record."""


def figures(record: TrainingRecord) -> tuple[Figure, ...]:
    """All figures of a record; first the one that it is ranked by."""
    speeds = list(_speeds(record))
    beside = compared_figures(record.compared, speeds)
    return (*speeds, *beside, *_of_task(record), *_of_runs(record), *_processes(record), *_costs(record))


def _speeds(record: TrainingRecord) -> Iterator[Figure]:
    """Time to the target, rates and utilisation."""
    resumed = {"note": "resumed: no rankable time"} if record.resumed else {}
    converged = bool(record.runs) and not any(is_short(record, run) for run in record.runs)
    missed = "no evaluation says when" if converged else "not every run reached the target"
    reached = valued(record.seconds_to_target, missed if record.rates else "nothing was measured")
    took = {**reached, **(resumed if "value" in reached else {})}
    yield cost("seconds_to_target", "time to target", "s", headline=True, meaning=TO_TARGET, **took)
    per_second = f"{plural(record.item)}/s"
    for key, (label, also, meaning) in RATES.items():
        rate = record.rates.get(key)
        known = {**valued(rate.value, None), "spread": rate.stdev} if rate else {"reason": "nothing was measured"}
        named: dict[str, Any] = {"key": key, "label": label, "also": also, "meaning": meaning}
        yield Figure(**named, unit=per_second, kind=FigureKind.SPEED, headline=True, **known)
    yield from _tokens(record)
    yield utilisation(record)


def _tokens(record: TrainingRecord) -> Iterator[Figure]:
    """Figures of text. In logs of others, and in older ones that counted no tokens, padding counts too."""
    each = tokens_over(measured(record))
    who = ", as the ranks claim" if "tokens" in record.claimed else ""
    counted = f"{each:.4g} per {record.item}{who}, padding left out" if each is not None else None
    note = None if record.read_from else counted
    for key, label, tokens in (
        ("tokens_per_second", "tokens", record.tokens_per_second),
        ("tokens_per_second_per_device", "tokens per device", record.tokens_per_second_per_device),
    ):
        if tokens is not None:
            known = {**valued(tokens, None), "note": note}
            yield Figure(key=key, label=label, unit="tokens/s", kind=FigureKind.SPEED, **known)


def _of_task(record: TrainingRecord) -> Iterator[Figure]:
    """What was to be reached, and what was."""
    batch, each = record.global_batch_size, record.train_batch_size
    note = {"note": f"{each} per process"} if batch is not None and each is not None else {}
    yield fact("global_batch", "global batch", "1", **valued(batch, "not recorded"), **note)
    if record.adapted:
        yield fact("adapted", "adapted by the vendor", "text", value=", ".join(record.adapted))
    yield fact("metric", "metric", "text", value=record.metric)
    for name, aim in record.aims.items():
        yield from _of_value(record, name, aim)
    converged = sum(not is_short(record, run) for run in record.runs)
    yield fact("converged", "converged", "text", value=f"{converged} of {record.repeats}")


def _of_value(record: TrainingRecord, name: str, aim: Aim) -> Iterator[Figure]:
    """What a value of the metric was to come to, and the worst that any run reached; the headline goes by no name."""
    headline = name == record.metric
    suffix, of = ("", "") if headline else (f"_{slug(name)}", f", {name}")
    if headline or aim.target is not None:
        sign = {"note": "at least" if aim.better == "higher" else "at most"} if aim.target is not None else {}
        yield quality(f"target{suffix}", f"target{of}", name, **valued(aim.target, "not recorded"), **sign)
    found = [run.metric if headline else run.metrics.get(name) for run in record.trainings]
    known = [value for value in found if value is not None]
    reached = valued(worst(known, aim.better) if known else None, "no evaluation")
    held = {"target": aim.target, "lower_is_better": aim.better == "lower", "headline": True}
    yield quality(f"final_metric{suffix}", f"reached{of}", name, **reached, **held)


def _of_runs(record: TrainingRecord) -> Iterator[Figure]:
    """How each run ended, and what it took; whether it was honest."""
    for index, run in enumerate(record.runs, 1):
        whose = called(record.runs, run)
        score = f"{record.metric} {run.metric:.5f}" if run.metric is not None else f"no {record.metric}"
        end = "broke off" if run.converged is None else "not converged" if is_short(record, run) else "converged"
        others = _named(run.metrics)
        samples = "an unknown number of" if run.samples is None else run.samples
        outcome = f"{end}, {', '.join([score, *others])}, {samples} {plural(record.item)}"
        yield Figure(key=f"run_{index}", label=whose, unit="text", kind=FigureKind.QUALITY, value=outcome)
        names = {"e2e": "e2e_seconds", "init": "init_seconds", "train": "train_seconds"}
        names["compute"] = "pure_compute_seconds"
        known = [f"{name} {number(s)} s" for name, key in names.items() if (s := getattr(run, key)) is not None]
        times = {"value": ", ".join(known)} if known else {"reason": "not recorded"}
        if known and run.resumed_from is not None:
            times["note"] = "e2e and init since it was resumed, the others with those before"
        yield cost(f"run_{index}_times", f"{whose}, times", "text", **times)
        if (found := run.confirmation) is not None:
            own = {**valued(found.metric, f"no {record.metric}"), **_beside(found.others)}
            yield quality(f"run_{index}_confirmed", f"{whose}, the case's own model", record.metric, **own)
            took = valued(found.seconds, None)
            yield cost(f"run_{index}_confirmation_seconds", f"{whose}, evaluating it there", "s", **took)
        yield from _examined(record, run, index)
        if run.standing:
            yield fact(f"run_{index}_standing", f"{whose}, rests on", "text", value=_rests_on(run))
        if (several := run.instances) is not None:
            rates, scores = (", ".join(map(number, each)) for each in (several.throughputs, several.accuracies))
            mean = {"value": rates, "note": f"average {number(several.throughput)}"}
            yield _speed_text(f"run_{index}_throughputs", f"{whose}, throughput_list", **mean)
            mean = {"value": scores, "note": f"average {number(several.accuracy)}"}
            yield quality(f"run_{index}_accuracies", f"{whose}, accuracy_list", "text", **mean)
    yield honesty([check for run in record.trainings for check in run.checks], "none is recorded")


def _named(values: Mapping[str, float | None]) -> list[str]:
    return [f"{name} {MISSING if value is None else f'{value:.5f}'}" for name, value in values.items()]


def _beside(others: Mapping[str, float | None]) -> dict[str, str]:
    """A headline's note of the values beside it."""
    return {"note": ", ".join(_named(others))} if others else {}


def _rests_on(run: SeedRun) -> str:
    """What of a run was verified, and what is only claimed."""
    sure, said = (
        ", ".join(each.what for each in run.standing if each.verified is verified) for verified in (True, False)
    )
    return f"verified: {sure or 'nothing'}; claimed by the ranks: {said or 'nothing'}"


def _examined(record: TrainingRecord, run: SeedRun, index: int) -> Iterator[Figure]:
    """What its weights have outside the ranks, beside what those claimed."""
    found = run.examination
    if found is None or run.converged is False:  # of a miss recorded steps alone are looked at
        return
    missing = found.reason or "they do not fit the case's own model"
    claimed = "" if found.claimed is None else f"claimed {number(found.claimed)}; "
    others = "".join(f"; {other}" for other in _named({name: each.metric for name, each in found.others.items()}))
    note = {} if found.metric is None else {"note": f"{claimed}{found.samples} of {found.of} samples{others}"}
    whose, value = called(record.runs, run), valued(found.metric, missing)
    yield quality(f"run_{index}_examined", f"{whose}, outside the ranks", record.metric, **value, **note)
    if found.seconds is not None:
        took = valued(found.seconds, None)
        yield cost(f"run_{index}_examination_seconds", f"{whose}, evaluating that", "s", **took)


def _processes(record: TrainingRecord) -> Iterator[Figure]:
    """On which hosts it ran, and who waited for whom."""
    each = {"note": f"{record.nnodes} x {record.nproc}"} if record.world else {}
    yield fact("processes", "processes", "1", **valued(record.world, "not recorded"), **each)
    run = next((run for run in record.runs if run.launched), None)
    if run is not None:
        yield fact("hosts", "hosts", "text", value=_hosts(run))
        used = [host.container for host in run.launched if host.container]
        images = dict.fromkeys(container.text for container in used)
        yield from (fact(f"container_{n}", "container", "text", value=ran) for n, ran in enumerate(images, 1))
        if any(each.caches_cleared for each in record.runs):
            yield fact("caches", "caches", "text", value="cleared on every host before each run")
    if (record.world or 1) > 1:
        yield _speed_text("communication", "communication", **_communication(record))
        yield from _slowest(record)


def _hosts(run: SeedRun) -> str:
    """Hosts that are not the session's own machine."""
    listed = [
        f"node {node}: {host.name}{_own_name(run, node, host.name)}{_clock(host.skew)}"
        for node, host in enumerate(run.launched)
    ]
    return some(listed, MOST_HOSTS)


def _clock(skew: float | None) -> str:
    """How far a host's clock is ahead, where that was measured."""
    return "" if skew is None else f" (clock {signed(skew)} s)"


def _own_name(run: SeedRun, node: int, name: str) -> str:
    """What a host calls itself, if that is another name."""
    own = host_name(run, node)
    return f" = {own}" if node < len(run.nodes) and own != name else ""


def _communication(record: TrainingRecord) -> dict[str, Any]:
    """The share of compute that went to the other ranks: the least of any rank, and the most."""
    each = [rank.communication for run in record.runs for rank in run.ranks if rank.communication]
    shares = [found.share for found in each if found.share is not None]
    if not shares:
        return {"reason": next((found.reason for found in each if found.reason), "no rank told of it")}
    steps = max(found.steps for found in each)
    low, high = (percent(share) for share in (min(shares), max(shares)))
    spread = low if low == high else f"{low} to {high}"
    return {"value": f"{spread} of a rank's compute, measured on {steps} step{'s' if steps > 1 else ''} of a run"}


def _slowest(record: TrainingRecord) -> Iterator[Figure]:
    """For each run the rank and the host that the others wait for most, where that can be told."""
    for index, run in enumerate(record.runs, 1):
        of_seed = f", {called(record.runs, run)}" if record.repeats > 1 else ""
        for what, who in {"rank": slowest_rank(run), "host": slowest_host(run)}.items():
            known = {"reason": TOO_SHORT} if too_short([run]) else {"value": str(who)}
            if who is not None:
                yield _speed_text(f"run_{index}_slowest_{what}", f"slowest {what}{of_seed}", **known)


def _speed_text(key: str, label: str, **more: Any) -> Figure:
    return Figure(key=key, label=label, unit="text", kind=FigureKind.SPEED, **more)


def _costs(record: TrainingRecord) -> Iterator[Figure]:
    """Energy while training over all runs and nodes, and by the items of those that were measured; memory; all of the
    time."""
    seen = [run.monitoring for run in record.trainings]
    counted = [run.monitoring for run in measured(record)]  # another's items are its ranks' word
    whole, missing = _energy(seen)
    yield cost("energy_joules", "energy: training", "J", **valued(whole, missing))
    joules, missing = _energy(counted)
    items = sum(m.energy_joules / m.energy_per_item for m in counted if m and m.energy_joules and m.energy_per_item)
    method = next((m.energy_method for m in counted if m and m.energy_per_item), None)
    how = {"note": method} if joules and method else {}
    each = joules / items if joules else None
    yield cost("energy_per_item", "energy: per item", f"J/{record.item}", **valued(each, missing), **how)
    yield from troubles(seen)
    peaks = [rank.host_peak_bytes for run in record.trainings for rank in run.ranks if rank.host_peak_bytes]
    most = max(peaks, default=None)
    yield fact("memory_host_bytes", "memory, host peak", "B", **valued(most, "no rank came to its end"))
    yield cost("e2e_seconds", "in all", "s", **valued(record.seconds, "not recorded"))


def _energy(seen: Sequence[Monitoring | None]) -> tuple[float | None, str]:
    """Joules of runs, where they were read in each; and why there are none."""
    read = [m.energy_joules for m in seen if m and m.energy_joules and m.energy_per_item]
    missing = "not read in every run" if read else "nothing read the power"
    return (sum(read) if read and len(read) == len(seen) else None), missing


def called(runs: Sequence[SeedRun], run: SeedRun) -> str:
    """What one of several runs is called: by its seed, or by its number where it has none or another has the same."""
    if run.seed is not None and [each.seed for each in runs].count(run.seed) == 1:
        return f"seed {run.seed}"
    return f"run {next(number for number, each in enumerate(runs, 1) if each is run)}"
