"""Run records made up after a real one: vendors, chips and commits, trends with steps, failures among them.

Those of `synthetic` follow from no logs. Those of `write_verified` are made of logs that were made up, event by event,
as a session makes its own, and lie in folders with a manifest: their verification finds nothing.
"""

from __future__ import annotations

import copy
import json
import random
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from proofmark.record.integrity.chain import LINK, digest_of
from proofmark.record.integrity.manifest import write_manifest
from proofmark.record.load import load_record
from proofmark.record.parts import FIRST, Seal
from proofmark.suite import Suite

VENDORS = {"alpha": ("A100X", "A200X"), "beta": ("B7",), "gamma": ("G1", "G2"), "delta": ("D-90",), "epsilon": ("E3",)}
CASES = 4
BEGUN = 1_750_000_000.0
FAILURES = {
    "FAIL_ACCURACY": "the engine's accuracy 0.9500 is below 99 % of the framework's 0.9825",
    "FAIL_HONESTY": "no cached answers: a repeat takes it 7.31 times less than a new input",
    "AMBIGUOUS": "the rounds of the engine scatter by 9.1 %, more than 5 %",
    "ERROR": "the case's process ended with signal 11 in step compile",
}


def synthetic(seed: dict[str, Any], count: int, cases: int = CASES) -> Iterator[dict[str, Any]]:
    """`count` records of the seed's shape, oldest first, the same each time."""
    chance = random.Random(2026)
    for number in range(count):
        record = copy.deepcopy(seed)
        vendor = chance.choice(sorted(VENDORS))
        chip = chance.choice(VENDORS[vendor])
        commit = number * 200 // count
        record["case"] = f"{seed['case']}_{chance.randrange(cases)}"
        record["vendor"], record["chip"]["name"] = vendor, chip
        record["precision"] = chance.choice(("fp16", "fp32"))
        record["profile"] = "embedded" if chance.random() < 0.1 else "standard"
        record["started"] = BEGUN + 3600.0 * number
        _provenance(record, commit)
        _pace(record, chance, vendor, commit)
        record["config"]["batch_size"] = 64 if commit > 120 else 32
        record["config_hash"] = f"{record['config']['batch_size']:064x}"
        if chance.random() < 0.12:
            kind = chance.choice(sorted(FAILURES))
            record["verdict"] = {"kind": kind, "reasons": [FAILURES[kind]], "expected": False}
        else:
            record["verdict"] = {"kind": "PASS", "reasons": [], "expected": False}
        yield record


def _provenance(record: dict[str, Any], commit: int) -> None:
    sha = f"{commit * 2654435761 % 2**32:08x}" * 5
    unknown = {"value": None, "reason": "not recorded"}
    record["provenance"] = {
        "commit": {"value": sha, "reason": None},
        "clean": True,
        "vendor_version": unknown,
        "vendor_sha256": unknown,
    }


def _pace(record: dict[str, Any], chance: random.Random, vendor: str, commit: int) -> None:
    """Speeds of a vendor, 8 % slower from some commit on, with noise of half a percent."""
    vendor_pace = 1.0 + 0.35 * sorted(VENDORS).index(vendor)
    slower = 0.92 if commit > 90 + 10 * sorted(VENDORS).index(vendor) else 1.0
    factor = vendor_pace * slower * (2.0 if record["precision"] == "fp16" else 1.0) * chance.gauss(1.0, 0.005)
    for figure in record["figures"]:
        value = figure.get("value")
        if figure["kind"] == "speed" and isinstance(value, float) and figure["unit"] != "share":
            figure["value"] = value * factor


def write_synthetic(seed: Path, folder: Path, count: int, cases: int = CASES) -> None:
    """A folder for each of `count` records made up after the one in `seed`, as sessions leave them.

    Raises:
        OSError: the seed can't be read, or they can't be written.
    """
    for number, record in enumerate(synthetic(json.loads(seed.read_text(encoding="utf-8")), count, cases)):
        run = folder / f"session-{number:05}" / record["suite"] / record["case"]
        run.mkdir(parents=True, exist_ok=True)
        (run / "record.json").write_text(json.dumps(record, indent=1), encoding="utf-8")


def write_verified(seed: Path, folder: Path, suite: Suite, numbers: Sequence[int], count: int) -> None:
    """The sessions of these `numbers`, of `count`, made up after a run: `seed` is its record, beside its logs.

    Raises:
        OSError: the run can't be read, or they can't be written.
        ProofmarkError: the file is no record.
    """
    record, run = load_record(seed, {suite.name: suite}.get), seed.parent
    unsealed = record.model_copy(update={"compared": None, "kept": ()})
    events = [json.loads(line) for line in (run / "events.jsonl").read_text(encoding="utf-8").splitlines()]
    for number in numbers:
        session = folder / f"session-{number:05}"
        made = session / record.run_name
        made.mkdir(parents=True)
        for log in run.glob("*.jsonl"):
            shutil.copy(log, made)
        head, lines = FIRST, list[str]()
        for event in _made_up(events, number, count):
            event[LINK] = head
            head = digest_of(event)
            lines.append(json.dumps(event, separators=(",", ":")))
        (made / "events.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
        collected = suite.collect(made, unsealed.model_copy(update={"log": Seal(events=len(lines), head=head)}))
        assert collected is not None, f"suite {suite.name} makes no record of logs"
        collected.save(made / "record.json")
        write_manifest(session)


def _made_up(events: Sequence[dict[str, Any]], number: int, count: int) -> Iterator[dict[str, Any]]:
    """A run's events, had it been another vendor's: all that was timed takes its share of the time."""
    chance, commit = random.Random(number), number * 200 // count
    vendor = chance.choice(sorted(VENDORS))
    pace = chance.gauss(1.0, 0.005) / (1.0 + 0.35 * sorted(VENDORS).index(vendor))
    begun = events[0]["clock"]
    for event in events:
        event = _longer(event, pace) | {"clock": begun + round((event["clock"] - begun) / pace)}
        if event["event"] == "run_begin":
            event = _of_a_vendor(event, vendor, chance.choice(VENDORS[vendor]))
            event["time"] = BEGUN + 3600.0 * number
            event["provenance"]["commit"] = {"value": f"{commit * 2654435761 % 2**32:08x}" * 5, "reason": None}
        yield event


def _longer(event: dict[str, Any], pace: float) -> dict[str, Any]:
    times = {name: value for name, value in event.items() if name.endswith("_ns")}
    scaled = {
        name: [round(each / pace) for each in value] if isinstance(value, list) else round(value / pace)
        for name, value in times.items()
    }
    return event | scaled | ({"seconds": event["seconds"] / pace} if event["event"] == "loader" else {})


def _of_a_vendor(begin: dict[str, Any], vendor: str, chip: str) -> dict[str, Any]:
    made = copy.deepcopy(begin)
    for override in made["config"]["overrides"]:
        override["origin"] = override["origin"].replace(f"vendor {made['config']['vendor']}", f"vendor {vendor}")
    made["config"]["vendor"], made["chip"]["name"] = vendor, chip
    return made
