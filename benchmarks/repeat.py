"""`make repeat RUNS=N`: whether a printed throughput is what happened, on a quiet machine and on a busy one.

Each inference case is run N times (10), a training case N times (3): with the machine to itself, and beside another
process that keeps a core busy. The core throughput of every PASS must lie within 5 % of the median of the quiet ones;
what lies elsewhere must say AMBIGUOUS or ERROR. Of the quiet runs at most one in twenty may say AMBIGUOUS.

Before each session the machine's own speed is measured with a fixed computation on all cores. Where that alone moves by
more than those 5 %, as on a virtual machine whose host puts two of its processors on one core, no suite could do
better, and the table says so.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from proofmark.errors import UsageError
from proofmark.inference.outcome.record import RunRecord
from proofmark.training.outcome.record import TrainingRecord

if TYPE_CHECKING:
    import torch

ROOT = Path(__file__).resolve().parents[1]
CASES = ("resnet50", "bert", "vit")
TRAINING = ("bert", "1x1")
WITHIN = 0.05
HONEST = {"PASS", "AMBIGUOUS", "ERROR"}
SPIN = "while True: pass"
SLICE, SLICES, SIZE = 0.05, 10, 192
"""Seconds of a look at the machine's speed, how many looks, and the edge of the matrices."""


@dataclass(frozen=True)
class Result:
    """One session of one case: its verdict, and the core throughput that it printed or would have."""

    case: str
    busy: bool
    kind: str
    core: float | None
    pace: float


def main() -> None:
    """Print a line per session, then what follows; exit code 1 where a printed figure was wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=10, help="sessions of each inference case, quiet and busy (10)")
    parser.add_argument("--trainings", type=int, default=3, help="sessions of the training case, quiet and busy (3)")
    arguments = parser.parse_args()
    results: list[Result] = []
    for busy in (False, True):
        with _another_process(busy):
            for number in range(max(arguments.runs, arguments.trainings)):
                results += [_inference(case, busy) for case in CASES if number < arguments.runs]
                results += [_training(busy)] if number < arguments.trainings else []
    raise SystemExit(_judge(results))


@contextlib.contextmanager
def _another_process(busy: bool) -> Iterator[None]:
    """A process that keeps one core busy, or none."""
    if not busy:
        yield
        return
    with subprocess.Popen([sys.executable, "-c", SPIN]) as process:
        try:
            yield
        finally:
            process.kill()


def _pace() -> float:
    """The machine's own speed: products of two matrices per second on all cores at once, the median look."""
    import torch

    cores = len(os.sched_getaffinity(0))
    looks = []
    with ThreadPoolExecutor(cores) as pool:
        for _ in range(SLICES):
            looks.append(sum(pool.map(_products, [torch.rand(SIZE, SIZE)] * cores)))
    return statistics.median(looks)


def _products(matrix: torch.Tensor) -> float:
    import torch

    torch.set_num_threads(1)
    begun, count = time.perf_counter(), 0
    while time.perf_counter() < begun + SLICE:
        torch.mm(matrix, matrix)
        count += 1
    return count / (time.perf_counter() - begun)


def _inference(case: str, busy: bool) -> Result:
    pace = _pace()
    with _session("suites/inference", case) as folder:
        try:
            record = RunRecord.load(folder / "inference" / case / "record.json")
        except UsageError as error:
            return _shown(Result(case, busy, f"no record: {error}", None, pace))
        measured = record.measured()
        kind = str(record.verdict.kind) if record.verdict else "no verdict"
        return _shown(Result(case, busy, kind, measured.core.value if measured else None, pace))


def _training(busy: bool) -> Result:
    case, scale = TRAINING
    pace = _pace()
    with _session("suites/training", f"{case} and {scale}") as folder:
        try:
            record = TrainingRecord.load(folder / "training" / case / scale / "record.json")
        except UsageError as error:
            return _shown(Result(f"training {case}", busy, f"no record: {error}", None, pace))
        core = record.rates.get("pure_compute")
        kind = str(record.verdict.kind) if record.verdict else "no verdict"
        return _shown(Result(f"training {case}", busy, kind, core.value if core else None, pace))


@contextlib.contextmanager
def _session(suite: str, selected: str) -> Iterator[Path]:
    """Run a session to its end; its folder."""
    with tempfile.TemporaryDirectory() as results:
        command = [sys.executable, "-m", "pytest", suite, "-k", selected, "-q", "--results-dir", results]
        subprocess.run(command, cwd=ROOT, check=False, capture_output=True)
        yield Path(results) / "latest"


def _shown(result: Result) -> Result:
    core = f"{result.core:10.4g}" if result.core is not None else f"{'-':>10}"
    pace = f"{core}   {result.kind:10} the machine's own speed: {result.pace:.0f}"
    print(f"{result.case:18} {'busy' if result.busy else 'quiet':6} {pace}", flush=True)
    return result


def _judge(results: list[Result]) -> int:
    """The table of what was printed against the median of the quiet passes; 1 where a figure lies beside it."""
    wrong = 0
    print(f"\n{'case':18} {'':6} {'PASS':>5} {'AMBIGUOUS':>10} {'other':>6}   core of PASS over the quiet median")
    for case in dict.fromkeys(result.case for result in results):
        passed = [r.core for r in results if r.case == case and r.kind == "PASS" and not r.busy and r.core]
        middle = statistics.median(passed) if passed else None
        for busy in (False, True):
            these = [result for result in results if result.case == case and result.busy == busy]
            ratios = [r.core / middle for r in these if r.kind == "PASS" and r.core and middle]
            count = [sum(r.kind == kind for r in these) for kind in ("PASS", "AMBIGUOUS")]
            wrong += sum(abs(ratio - 1) > WITHIN for ratio in ratios) + sum(r.kind not in HONEST for r in these)
            shown = f"{min(ratios):.3f} to {max(ratios):.3f}" if ratios else "none"
            row = f"{count[0]:5} {count[1]:10} {len(these) - sum(count):6}   {shown}"
            print(f"{case:18} {'busy' if busy else 'quiet':6} {row}")
    paces = [result.pace for result in results if not result.busy]
    print(f"the machine's own speed before the quiet runs: {min(paces) / max(paces):.3f} to 1 of its best")
    quiet = [result.kind for result in results if not result.busy]
    share = quiet.count("AMBIGUOUS") / len(quiet) if quiet else 0.0
    print(f"quiet runs that were AMBIGUOUS: {share:.1%} of {len(quiet)}; figures that were wrong: {wrong}")
    return 1 if wrong or share > 1 / 20 else 0


if __name__ == "__main__":
    main()
