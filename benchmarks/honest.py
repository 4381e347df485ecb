"""`make honest RUNS=N`: how often the honesty checks accuse engines that are honest. The right answer is never.

Each engine that runs on this CPU is compiled anew for every ten runs, in a process of its own, one at a time. Every run
is the case's whole engine step, the honesty round among its timed rounds; each process ends with the audit. Rounds are
shorter than a profile's: they have fewer batches, of which it is the harder to tell that an engine is honest. None is
measured anew for being noisy: what a busy machine does to an honest engine must not look like cheating either.
"""

from __future__ import annotations

import argparse
import collections
import math
import multiprocessing
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path

from proofmark.inference.case import InferenceParameters
from proofmark.inference.engine.engines import Engines
from proofmark.inference.outcome.rounds import full_batches
from proofmark.inference.steps.pipeline import Pipeline
from proofmark.measuring.fresh_pace import excused, fresh_pace
from proofmark.record.events.log import Event, EventLog, read_events
from proofmark.record.parts import Check
from proofmark.rules.case_file import load_case_file
from proofmark.rules.config import HostSettings, resolve
from proofmark.rules.legality import OverrideLayer
from proofmark.vendor.registry import find_vendor
from suites.inference.test_bert import TestBert

ROOT = Path(__file__).resolve().parents[1]
ENGINES = (
    ("cpu", "onnxruntime", "fp32"),
    ("cpu", "eager", "fp32"),
    ("cpu", "eager", "bf16"),
    ("cpu", "inductor", "fp32"),
    ("intel", "openvino", "fp32"),
)
AT_ONCE = 10
"""Runs of one compilation."""

Engine = tuple[str, str, str]


def main() -> None:
    """Print one line per engine: runs, accusations, and the figure of each check that came nearest to its bound."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=200, help="runs of each engine (200)")
    parser.add_argument("--seconds", type=float, default=0.3, help="of compute that a round lasts at least (0.3)")
    parser.add_argument("--only", default="", metavar="TEXT", help="only vendor/compiler/precision that have it")
    arguments = parser.parse_args()
    for engine in ENGINES:
        if arguments.only in "/".join(engine):
            _accusations(engine, arguments.runs, arguments.seconds)


def _accusations(engine: Engine, runs: int, seconds: float) -> None:
    """Run an engine so often, and print what it was accused of."""
    accused: collections.Counter[str] = collections.Counter()
    name, disturbed = "/".join(engine), 0
    worst: dict[str, float] = {}
    begun = time.monotonic()
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=spawn, max_tasks_per_child=1) as pool:
        counts = [min(AT_ONCE, runs - start) for start in range(0, runs, AT_ONCE)]
        done = 0
        for count, (accusations, busy, figures) in zip(
            counts, pool.map(partial(_held, engine, seconds), counts), strict=True
        ):
            done += count
            print(f"{name}: {done} of {runs}, {time.monotonic() - begun:.0f} s", file=sys.stderr, flush=True)
            accused.update(accusations)
            disturbed += len(busy)
            for check, figure in figures:
                worst[check] = max(worst.get(check, 0.0), figure)
    found = f"{sum(accused.values())} accusations, {disturbed} times no result"
    print(f"{name}: {runs} runs, {found}, {time.monotonic() - begun:.0f} s", flush=True)
    for what, count in accused.items():
        print(f"  {count} times: {what}", flush=True)
    print("  highest: " + ", ".join(f"{check} {figure:.3g}" for check, figure in sorted(worst.items())), flush=True)


def _held(engine: Engine, seconds: float, runs: int) -> tuple[list[str], list[str], list[tuple[str, float]]]:
    """Accusations, what showed a busy machine, and the figures of all checks, of one compilation of an engine."""
    with tempfile.TemporaryDirectory() as folder:
        log = EventLog(Path(folder) / "events.jsonl")
        pipeline = _pipeline(engine, seconds, Path(folder), log)
        steps = ["data_and_model", "export", "compile", *["engine_inference"] * runs, "audit"]
        for step in steps:
            outcome = pipeline.run(step)
            if outcome["status"] != "done":
                raise RuntimeError(f"{'/'.join(engine)}: step {step}: {outcome['reason']}")
        pipeline.engines.close()
        log.close()
        accused, disturbed = _texts_of(log.path, "dishonest"), _texts_of(log.path, "disturbed")
        figures = list(_figures(log.path))
        for check, excuses in _fresh(log.path):
            accused += [] if check.passed else [f"{check.name}: {check.meaning}"]
            disturbed += excuses
            figures.append((check.name, check.figure or 0.0))
        return accused, disturbed, figures


def _pipeline(engine: Engine, seconds: float, folder: Path, log: EventLog) -> Pipeline:
    vendor, compiler, precision = engine
    found = find_vendor(vendor, ROOT / "vendors")
    case = TestBert()
    case_file = load_case_file(
        ROOT / "suites/inference/bert.yaml", "inference", "embedded", case.common_file, InferenceParameters
    )
    layer = OverrideLayer("benchmark", {"compiler": compiler, "precision": precision})
    host = HostSettings(cache_dir=str(ROOT / ".cache"))
    config = resolve(case_file, vendor, [layer], found.vendor.default_compiler, host).config
    held_once = {"min_seconds": seconds, "max_noise": math.inf}
    config = replace(config, configurations={**config.configurations, **held_once})
    engines = Engines((TestBert.__module__, TestBert.__qualname__), found, config, folder / "engine")
    return Pipeline(case, found, found.compiler(compiler)[1], config, folder, log, lambda **_: None, engines)


def _texts_of(path: Path, kind: str) -> list[str]:
    return [str(event["what"]) for event in read_events(path) if event["event"] == kind]


def _figures(path: Path) -> Iterator[tuple[str, float]]:
    for event in read_events(path):
        if event["event"] == "check" and event["figure"] is not None:
            yield event["name"], event["figure"]


def _fresh(path: Path) -> Iterator[tuple[Check, list[str]]]:
    """Of each run the check that the session makes of its rounds, and what excuses it."""
    rounds: list[Event] = []
    for event in read_events(path):
        if event["event"] == "repeated":
            rounds.clear()
        elif event["event"] == "round" and event["of"] == "engine":
            rounds.append(event)
        elif event["event"] == "memory" and rounds:  # that ends a run
            if (check := fresh_pace([full_batches(timed) for timed in rounds])) is not None:
                yield excused(check, max((timed.get("contention") or {}).get("others", 0.0) for timed in rounds))
            rounds.clear()


if __name__ == "__main__":
    main()
