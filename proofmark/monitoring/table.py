"""What a run's monitors read, as tables for other programs."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path

from proofmark.atomic_file import written_atomically
from proofmark.vendor.monitor_log import Sample, read_samples

HOST = ("time", "cpu", "memory", "package_energy_j")
DEVICE = (
    "device",
    "utilization",
    "power_w",
    "energy_j",
    "temperature_c",
    "memory_used_bytes",
    "memory_total_bytes",
    "clock_mhz",
)
"""Numbers all, in the units of `Sample` and `Reading`; what could not be read is empty."""


PLACES = ("", "noderank*/", "round*/noderank*/", "round*/*/noderank*/")
"""Where in a run's folder monitors' logs lie: what lies elsewhere under their name is others'."""


def write_tables(run_dir: Path) -> None:
    """Write `monitor.csv` beside each `monitor.jsonl` of a run, on whichever node: a row for each sample and device.

    Raises:
        OSError: no space, no permission.
    """
    for log in sorted(path for place in PLACES for path in run_dir.glob(f"{place}monitor.jsonl")):
        if log.is_file() and not log.is_symlink():
            _write(log.with_suffix(".csv"), read_samples(log)[0])


def _write(path: Path, samples: list[Sample]) -> None:
    with written_atomically(path, durable=False) as stream:  # a row at a time: there may be millions
        table = csv.writer(stream, lineterminator="\n")
        table.writerow((*HOST, *DEVICE))
        for sample in samples:
            table.writerows(_rows(sample))


def _rows(sample: Sample) -> Iterator[list[object]]:
    """One for each device, one where there is none; none of the log's first line, which is no sample."""
    if sample.isolation is not None:
        return
    host = [getattr(sample, name) for name in HOST]
    for device in sample.devices or (None,):
        yield [*host, *(getattr(device, name, None) for name in DEVICE)]
