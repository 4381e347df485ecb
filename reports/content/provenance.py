"""Where a result comes from: its configuration with what was overridden, and its identities."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from proofmark.record.envelope import CaseRecord
from proofmark.record.parts import Identity
from proofmark.record.policy import default_policy
from proofmark.record.provenance import Chip, Host, Known
from proofmark.rules.legality import Override
from reports.content import text

MACHINE = {
    "kernel": "kernel",
    "governor": "CPU governor",
    "container": "session's container",
    "driver": "driver",
    "runtime": "runtime",
    "firmware": "firmware",
}
"""Facts of a machine, as the page calls them."""


@dataclass(frozen=True)
class ConfigRow:
    """A key of the effective configuration. `overrides`: what took its place, oldest first."""

    key: str
    value: str
    overrides: tuple[str, ...] = ()


def config_rows(record: CaseRecord) -> list[ConfigRow]:
    """The effective configuration, nested keys joined by dots, each with its overrides."""
    by_key: dict[str, list[str]] = {}
    for entry in record.overrides:
        by_key.setdefault(entry.key, []).append(f"{entry.kind}: {override_line(entry)}")
    return [ConfigRow(key, text.literal(value), tuple(by_key.get(key, ()))) for key, value in _flat(record.config)]


def override_line(entry: Override) -> str:
    """One line for an override: what was in force, what took its place, and who asked."""
    if entry.kind == "added":
        change = f"{text.literal(entry.new)}, a key that the case does not have ({entry.origin})"
        return f"{change}; did you mean '{entry.near}'?" if entry.near else change
    return f"{text.literal(entry.old)} -> {text.literal(entry.new)} ({entry.origin})"


def override_level(entry: Override) -> str:
    """INFO for a changed value, WARNING for a key that the case does not have."""
    return "WARNING" if entry.kind == "added" else "INFO"


def identity_rows(record: CaseRecord) -> list[tuple[str, str]]:
    """What was run on what, by whom: labels and texts."""
    return [
        ("dataset", _identity(record.dataset)),
        ("weights", "fresh" if record.fresh_weights else _identity(record.weights)),
        ("configuration SHA-256", record.config_hash),
        *([("policy", record.policy.title)] if record.policy != default_policy() else []),
        ("seed", text.MISSING if record.seed is None else str(record.seed)),
        ("chip", chip(record.chip)),
        ("host", _host(record.host)),
        ("started", text.instant(record.started)),
        *_made_with(record),
        ("isolation", _isolation(record)),
        ("versions", ", ".join(f"{name} {version}" for name, version in sorted(record.versions.items()))),
    ]


def _isolation(record: CaseRecord) -> str:
    """In a word what kept the vendor's code from the rest; and of each process what was not closed, and why."""
    gaps = [f"{name}: {'; '.join(each.gaps)}" for name, each in sorted(record.kept_apart.items()) if each.gaps]
    words = {"asked for": "network", "between ranks": "network between ranks"}
    kept = sorted(record.kept_apart.items())
    asked = [f"{name}: {words[each.network]}" for name, each in kept if each.network in words]
    return f"{record.isolated} ({'; '.join([*gaps, *asked])})" if gaps or asked else record.isolated


def _made_with(record: CaseRecord) -> list[tuple[str, str]]:
    """The suite, the vendor's package, and what each machine runs with."""
    rows = []
    if found := record.provenance:
        clean = {True: ", unchanged", False: ", with changes", None: ""}[found.clean]
        rows += [
            ("suite's commit", f"{known(found.commit)}{clean}"),
            ("vendor's package", known(found.vendor_version)),
            ("vendor's content", known(found.vendor_sha256, "SHA-256 ")),
        ]
        declared = {"vendor's variables": found.environment, "vendor's requirements": found.requirements}
        rows += [
            (label, ", ".join(f"{key}={value}" for key, value in each.items()))
            for label, each in declared.items()
            if each
        ]
    return rows + [(label, value) for label, value in machine_rows(record) if value]


def machine_rows(record: CaseRecord) -> list[tuple[str, str]]:
    """What the machines of a record run with; several hosts that agree are told once."""
    hosts = record.hosts
    rows = []
    for name, label in MACHINE.items():
        hosts_by_value: dict[str, list[str]] = {}
        for host in hosts:
            hosts_by_value.setdefault(known(getattr(host, name)), []).append(host.name)
        one = len(hosts_by_value) == 1
        rows.append(
            (label, "; ".join(what if one else f"{', '.join(who)}: {what}" for what, who in hosts_by_value.items()))
        )
    return rows


def known(fact: Known, prefix: str = "") -> str:
    """A fact, or why there is none."""
    if fact.value is None:
        return f"{text.MISSING} ({fact.reason or 'no reason recorded'})"
    return f"{prefix}{fact.value}"


def _host(host: Host | None) -> str:
    if host is None:
        return f"{text.MISSING} (not recorded)"
    cores = f"{host.cores} core{'' if host.cores == 1 else 's'}"
    return f"{host.name}: {host.processor}, {cores}, {text.gibibytes(host.memory_bytes)}, {host.system}"


def units_of(name: str, units: int) -> str:
    """A chip by name, of a processor with how many of its cores: no other is counted by units."""
    return f"{units} cores of {name}" if units > 1 else name


def chip(found: Chip) -> str:
    """The detected chip, its units and its dense peak with the source, or why there is no peak."""
    name = units_of(found.name, found.units)
    if found.peak is None:
        return f"{name}; peak {text.MISSING} ({found.peak_missing or 'no reason recorded'})"
    peak = found.peak
    achievable = f", {text.scaled(peak.achievable, 'FLOP/s')} achievable" if peak.achievable else ""
    return f"{name}; {peak.precision} peak {text.scaled(peak.flops_per_second, 'FLOP/s')}{achievable} ({peak.source})"


def _identity(identity: Identity | None) -> str:
    if identity is None:
        return f"{text.MISSING} (not identified)"
    items = f", {identity.items:,} items" if identity.items is not None else ""
    origin = f", from {identity.origin}" if identity.origin else ""
    return f"{identity.name}{items}{origin}; SHA-256 {identity.sha256}"


def _flat(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in values.items():
        if isinstance(value, dict) and value:
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value
