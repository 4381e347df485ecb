"""A training record as people read it: the fields of FlagPerf's finished_info, and the verdict."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from proofmark.launch.cluster.preflight import signed
from proofmark.record.parts import Verdict, VerdictKind
from proofmark.training.record import SeedRun, TrainingRecord
from reports import labels, text
from reports.stragglers import host_name, slowest_host, slowest_rank, too_short
from reports.watch import counted
from reports.withholding import public, withheld, without_speeds

MOST_HOSTS = 8
"""Hosts that a summary names one by one."""


@dataclass(frozen=True)
class TrainingView:
    """What reports show of a training record."""

    record: TrainingRecord
    _whole: TrainingRecord = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Show what cannot be seen, and no speed that is withheld."""
        record: TrainingRecord = text.all_visible(self.record)
        object.__setattr__(self, "_whole", record)
        object.__setattr__(self, "record", without_speeds(record) if withheld(self.verdict) else record)

    @property
    def name(self) -> str:
        """Case and scale."""
        return f"{self.record.case} {self.record.scale}"

    @property
    def verdict(self) -> Verdict:
        """The verdict; a record without one is an error."""
        return self.record.verdict or Verdict(kind=VerdictKind.ERROR, reasons=("the record has no verdict",))

    @property
    def items(self) -> str:
        """What is counted, in the plural."""
        return f"{self.record.item}s"

    @property
    def withheld(self) -> str | None:
        """Why no speed is shown, or None."""
        return withheld(self.verdict)

    @property
    def seconds(self) -> str:
        """All of the case."""
        seconds = self.record.seconds
        return self.withheld or (text.MISSING if seconds is None else f"{text.number(seconds)} s")

    def rate(self, name: str) -> str:
        """Items per second over all devices, with its spread over the runs."""
        spread = self.record.rates.get(name)
        if self.withheld:
            return self.withheld
        if spread is None:
            return f"{text.MISSING} (nothing was measured)"
        deviation = f" ± {text.number(spread.stdev)}" if spread.stdev is not None else ""
        return f"{text.number(spread.value)}{deviation} {self.items}/s"

    @property
    def mfu(self) -> str:
        """Share of the chips' peak, over all of training."""
        found = self.record.utilisation
        if self.withheld:
            return self.withheld
        return f"{found.mfu:.1%}" if found.mfu is not None else f"{text.MISSING} ({found.reason})"

    @property
    def to_target(self) -> str:
        """Time to the target, or why there is none."""
        seconds = self.record.seconds_to_target
        if self.withheld or seconds is None:
            return self.withheld or text.MISSING
        return f"{text.number(seconds)} s{' (resumed: no rankable time)' if self.record.resumed else ''}"

    @property
    def processes(self) -> str:
        """Nodes and processes of each."""
        record = self.record
        return f"{record.nnodes} x {record.nproc} processes" if record.world else f"{text.MISSING} (not recorded)"

    @property
    def global_batch(self) -> str:
        """Samples of a step, and those of a process at once."""
        record = self.record
        if record.global_batch_size is None:
            return f"{text.MISSING} (not recorded)"
        return f"{record.global_batch_size} ({record.train_batch_size} per process)"

    @property
    def target(self) -> str:
        """The metric and what it has to reach."""
        record = self.record
        if record.target is None:
            return f"{record.metric} {text.MISSING} (not recorded)"
        return f"{record.metric} {'≥' if record.better == 'higher' else '≤'} {record.target:g}"

    def launched(self) -> Iterator[tuple[str, str]]:
        """Hosts that are not the session's own machine, and what they ran in."""
        hosts = next((run.launched for run in self.record.runs if run.launched), ())
        if not hosts:
            return
        run = next(run for run in self.record.runs if run.launched)
        told = [
            f"node {node}: {host.name}{_own_name(run, node, host.name)} (clock {signed(host.skew)} s)"
            for node, host in enumerate(hosts[:MOST_HOSTS])
        ]
        more = f" and {len(hosts) - MOST_HOSTS} more" if len(hosts) > MOST_HOSTS else ""
        yield "hosts", ", ".join(told) + more
        used = [host.container for host in hosts if host.container]
        for ran in dict.fromkeys(f"{c.engine}: {c.image} {c.id[:19]}{', privileged' * c.privileged}" for c in used):
            yield "container", ran
        if any(run.caches_cleared for run in self.record.runs):
            yield "caches", "cleared on every host before each run"

    def fields(self) -> Iterator[tuple[str, str]]:
        """Every line of the summary."""
        record = self.record
        yield "vendor", record.vendor
        yield "chip", record.chip.name
        yield "scale", self.processes
        yield from self.launched()
        yield "precision", record.precision
        yield "global batch", self.global_batch
        if record.adapted:
            yield "adapted by the vendor", ", ".join(record.adapted)
        yield "target", self.target
        for run in record.runs:
            yield seed(run), self.outcome(run)
        for run in (run for run in record.runs if run.confirmation is not None):
            yield f"{seed(run)}, the case's own model", self.confirmed(run)
        yield "honesty", self.honesty
        yield labels.TO_TARGET.name, self.to_target
        for name, label in labels.RATES.items():
            yield label.full, self.rate(name)
        if record.tokens_per_second is not None and not self.withheld:
            yield "tokens/s", text.number(record.tokens_per_second)
        yield labels.MFU.name, self.mfu
        if (record.world or 1) > 1:
            yield "communication", self.communication
            yield from self.slowest()
        yield "energy", self.energy
        failures = [told for run in record.runs if run.monitoring for told in run.monitoring.failures]
        yield from (("monitor", told) for told in dict.fromkeys(failures))
        yield "memory, host peak", self.memory

    @property
    def honesty(self) -> str:
        """How many checks of all runs passed, and the names of those that did not."""
        checks = [check for run in self.record.runs for check in run.checks]
        return str(counted(checks)) if checks else f"{text.MISSING} (no check was run)"

    def confirmed(self, run: SeedRun) -> str:
        """The metric of a run's last weights in the case's own model, and what it took to evaluate them there."""
        found = run.confirmation
        if found is None:
            return text.MISSING
        score = f"{self.record.metric} {found.metric:.5f}" if found.metric is not None else f"no {self.record.metric}"
        return f"{score}; {self.withheld or f'{text.number(found.seconds)} s beside training'}"

    @property
    def communication(self) -> str:
        """The share of compute that went to the other ranks: the least of any rank, and the most."""
        if self.withheld:
            return self.withheld
        told = [rank.communication for run in self.record.runs for rank in run.ranks if rank.communication]
        shares = [each.share for each in told if each.share is not None]
        if not shares:
            return f"{text.MISSING} ({next((each.reason for each in told), 'no rank told of it')})"
        steps = max(each.steps for each in told)
        low, high = (text.percent(share) for share in (min(shares), max(shares)))
        spread = low if low == high else f"{low} to {high}"
        return f"{spread} of a rank's compute, measured on {steps} step{'s' if steps > 1 else ''} of a run"

    def slowest(self) -> Iterator[tuple[str, str]]:
        """Of each run the rank and the host that the others wait for most, where that can be told."""
        for run in self.record.runs:
            of_seed = f", {seed(run)}" if self.record.repeats > 1 else ""
            found = {"slowest rank": slowest_rank(run), "slowest host": slowest_host(run)}
            short = too_short([run])
            told = f"{text.MISSING} ({short})" if short else None
            yield from ((f"{what}{of_seed}", told or str(who)) for what, who in found.items() if who is not None)

    @property
    def energy(self) -> str:
        """Joules while training: over all runs and nodes, and per item, the mean over the runs; how they were read."""
        seen = [run.monitoring for run in self.record.runs if run.monitoring is not None]
        read = [(each.energy_per_item, each.energy_method) for each in seen if each.energy_per_item is not None]
        if self.withheld:
            return self.withheld
        if not read:
            return f"{text.MISSING} (nothing read the power)"
        mean = sum(joules for joules, _ in read) / len(read)
        joules = [each.energy_joules for each in seen if each.energy_joules is not None]
        whole = f"{text.number(sum(joules))} J, " if len(joules) == len(self.record.runs) else ""
        return f"{whole}{text.number(mean)} J/{self.record.item} ({read[0][1]})"

    def outcome(self, run: SeedRun) -> str:
        """How one run ended."""
        score = f"{self.record.metric} {run.metric:.5f}" if run.metric is not None else f"no {self.record.metric}"
        end = "converged" if run.converged else "not converged" if run.converged is False else "broke off"
        times = [
            ("e2e", run.e2e_seconds),
            ("init", run.init_seconds),
            ("train", run.train_seconds),
            ("compute", run.pure_compute_seconds),
        ]
        told = ", ".join(f"{name} {text.number(seconds)} s" for name, seconds in times if seconds is not None)
        told = told or f"times {self.withheld or 'not recorded'}"
        samples = text.MISSING if run.samples is None else run.samples
        return f"{end}, {score}, {samples} {self.items}; {told}"

    @property
    def memory(self) -> str:
        """The largest rank's, GiB."""
        peaks = [rank.host_peak_bytes for run in self.record.runs for rank in run.ranks if rank.host_peak_bytes]
        return f"{max(peaks) / 2**30:.2f} GiB" if peaks else f"{text.MISSING} (no rank came to its end)"

    def public(self) -> dict[str, Any]:
        """The record as plain JSON values, without speeds where they are withheld."""
        return public(self._whole, self.verdict)


def _own_name(run: SeedRun, node: int, name: str) -> str:
    """What a host calls itself, if that is another name."""
    own = host_name(run, node)
    return f" = {own}" if node < len(run.nodes) and own != name else ""


def seed(run: SeedRun) -> str:
    """What a run is called."""
    return f"seed {text.MISSING if run.seed is None else run.seed}"


def properties(record: TrainingRecord) -> list[tuple[str, str]]:
    """Names and values for JUnit, the same names for every training record. Rates are items per second."""
    view = TrainingView(record)
    shown = {} if view.withheld else record.rates
    reason = view.withheld or "null: nothing was measured"
    rates = [(name, f"{shown[name].value:.6g}" if name in shown else reason) for name in labels.RATES]
    metrics = [run.metric for run in record.runs if run.metric is not None]
    return [
        ("verdict", str(view.verdict.kind)),
        ("reasons", "; ".join(view.verdict.reasons)),
        ("suite", record.suite),
        ("case", record.case),
        ("scale", record.scale),
        ("profile", record.profile),
        ("vendor", record.vendor),
        ("chip", record.chip.name),
        ("precision", record.precision),
        ("item", record.item),
        ("metric", record.metric),
        ("target", "null: not recorded" if record.target is None else f"{record.target:g}"),
        ("final_metric", ", ".join(f"{metric:.6g}" for metric in metrics) or "null: no evaluation"),
        ("honesty", view.honesty),
        ("converged", f"{sum(bool(run.converged) for run in record.runs)} of {record.repeats}"),
        *rates,
        ("seconds_to_target", view.to_target),
        ("mfu", view.mfu),
        ("config_hash", record.config_hash),
    ]
