"""What a result was made with, on the page."""

from __future__ import annotations

from proofmark.record.provenance import Chip, Host, Known, Launched, Peak, Provenance
from reports.content.provenance import chip, identity_rows
from tests.training_records import make_run, make_training

HOST = Host(
    name="alpha",
    system="Linux",
    processor="p",
    cores=2,
    memory_bytes=1 << 30,
    kernel=Known(value="Linux 6.8"),
    governor=Known(reason="no cpufreq"),
    driver=Known(value="570.86"),
)
MADE = Provenance(
    commit=Known(value="abc123"),
    clean=False,
    vendor_version=Known(reason="not an installed package"),
    vendor_sha256=Known(value="00ff"),
)


def test_every_fact_or_why_there_is_none(make_record):
    rows = dict(identity_rows(make_record(host=HOST, provenance=MADE)))
    assert rows["suite's commit"] == "abc123, with changes"
    assert rows["vendor's package"] == "\N{EN DASH} (not an installed package)"
    assert rows["vendor's content"] == "SHA-256 00ff"
    assert (rows["kernel"], rows["driver"]) == ("Linux 6.8", "570.86")
    assert rows["CPU governor"] == "\N{EN DASH} (no cpufreq)" and "not recorded" in rows["firmware"]
    clean = MADE.model_copy(update={"clean": True})
    assert dict(identity_rows(make_record(provenance=clean)))["suite's commit"] == "abc123, unchanged"


def test_a_processors_units_are_its_cores_and_not_so_many_processors():
    peak = Peak(precision="fp32", flops_per_second=2e12, achievable=None, source="measured")
    shown = chip(Chip(name="Acme 2000", units=2, peak=peak))
    assert shown == "2 cores of Acme 2000; fp32 peak 2.000 TFLOP/s (measured)"


def test_a_record_without_them(make_record):
    rows = dict(identity_rows(make_record()))
    assert "suite's commit" not in rows and "not recorded" in rows["driver"]


def test_hosts_of_a_training_are_told_apart_where_they_differ():
    other = HOST.model_copy(update={"name": "beta", "driver": Known(value="565.1")})
    launched = tuple(Launched(name=host.name, skew=0.0, round_trip=0.0, host=host) for host in (HOST, other))
    rows = dict(identity_rows(make_training(make_run(launched=launched))))
    assert rows["driver"] == "alpha: 570.86; beta: 565.1" and rows["kernel"] == "Linux 6.8"
