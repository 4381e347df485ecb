"""`make repeat RUNS=N`: whether a printed throughput is what happened, on a quiet machine and on a busy one.

Each inference case is run N times (10), a training case N times (3): with the machine to itself, and beside another
process that keeps a core busy. The core throughput of every PASS must lie within 5 % of the median of the quiet ones;
what lies elsewhere must say AMBIGUOUS or ERROR. Of the quiet runs at most one in twenty may say AMBIGUOUS.

Before each session the machine's own speed is measured with a fixed computation on all cores; and of an inference case,
before and after, that of a hand-written loop over the same model, compiled as the suite has it. Where these alone move
by more than those 5 %, as on a virtual machine whose host puts two of its processors on one core, or whose neighbours
fill its cache, no suite could do better, and the table says so.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.by_hand import Times, config_of, hand_written, seeded_model
from proofmark.errors import UsageError
from proofmark.inference.case import InferenceCase
from proofmark.inference.outcome.record import RunRecord
from proofmark.inference.steps.export import export_onnx
from proofmark.process.lifetime import die_with_parent
from proofmark.training.outcome.record import TrainingRecord
from suites.inference.test_bert import TestBert
from suites.inference.test_resnet50 import TestResNet50
from suites.inference.test_vit import TestVit

if TYPE_CHECKING:
    import torch

ROOT = Path(__file__).resolve().parents[1]
CASES: dict[str, type[InferenceCase]] = {"resnet50": TestResNet50, "bert": TestBert, "vit": TestVit}
VENDOR, COMPILER = "cpu", "onnxruntime"
"""What a session without options has."""
TRAINING = ("bert", "1x1")
WITHIN = 0.05
HONEST = {"PASS", "AMBIGUOUS", "ERROR"}
SPIN = "while True: pass"
SLICE, SLICES, SIZE = 0.05, 10, 192
"""Seconds of a look at the machine's speed, how many looks, and the edge of the matrices."""

BY_HAND = 1.0
"""Seconds of the hand-written loop's compute, before and after a session."""

Hand = Callable[[], float]
"""Has such a loop run: items per second."""


@dataclass(frozen=True)
class Result:
    """One session of one case: its verdict, and the core throughput that it printed or would have.

    Attributes:
        pace: of the machine, products per second right before.
        hand: items per second of the hand-written loop, right before and right after; None of a training.
    """

    case: str
    busy: bool
    kind: str
    core: float | None
    pace: float
    hand: tuple[float, float] | None = None


def main() -> None:
    """Print a line per session, then what follows; exit code 1 where a printed figure was wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=10, help="sessions of each inference case, quiet and busy (10)")
    parser.add_argument("--trainings", type=int, default=3, help="sessions of the training case, quiet and busy (3)")
    arguments = parser.parse_args()
    results: list[Result] = []
    with _loops_by_hand() as loops:
        for busy in (False, True):
            with _another_process(busy):
                for number in range(max(arguments.runs, arguments.trainings)):
                    results += [_inference(case, busy, loops[case]) for case in CASES if number < arguments.runs]
                    results += [_training(busy)] if number < arguments.trainings else []
    raise SystemExit(_judge(results))


@contextlib.contextmanager
def _loops_by_hand() -> Iterator[Mapping[str, Hand]]:
    """One for each case, in a process of its own that computes only when asked."""
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as open_ones:
        loops: dict[str, Hand] = {}
        for name, kind in CASES.items():
            case, onnx = kind(), Path(folder) / f"{name}.onnx"
            config = config_of(case, COMPILER)
            first = next(iter(case.build_dataloader(config)))[0]
            export_onnx(seeded_model(case, config), first, onnx, case.input_names, case.output_names)
            one_pass = open_ones.enter_context(hand_written(kind, VENDOR, COMPILER, onnx))
            items = len(case.build_dataloader(config).dataset)
            loops[name] = functools.partial(_rate, one_pass, items)
        yield loops


def _rate(one_pass: Callable[[], Times], items: int) -> float:
    one_pass()  # cores and caches are still another's
    seconds, passes = 0.0, 0
    while seconds < BY_HAND:
        seconds += one_pass()[1]
        passes += 1
    return passes * items / seconds


@contextlib.contextmanager
def _another_process(busy: bool) -> Iterator[None]:
    """A process that keeps one core busy, or none."""
    if not busy:
        yield
        return
    with subprocess.Popen([sys.executable, "-c", SPIN], preexec_fn=die_with_parent(signal.SIGKILL)) as process:
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


def _inference(case: str, busy: bool, loop: Hand) -> Result:
    pace, before = _pace(), loop()
    with _session("suites/inference", case) as folder:
        hand = before, loop()
        try:
            record = RunRecord.load(folder / "inference" / case / "record.json")
        except UsageError as error:
            return _shown(Result(case, busy, f"no record: {error}", None, pace, hand))
        measured = record.measured()
        kind = str(record.verdict.kind) if record.verdict else "no verdict"
        return _shown(Result(case, busy, kind, measured.core.value if measured else None, pace, hand))


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
    hand = f", by hand {result.hand[0]:.4g} before, {result.hand[1]:.4g} after" if result.hand else ""
    pace = f"{core}   {result.kind:10} the machine's own speed: {result.pace:.0f}{hand}"
    print(f"{result.case:18} {'busy' if result.busy else 'quiet':6} {pace}", flush=True)
    return result


def _judge(results: list[Result]) -> int:
    """The table of what was printed against the median of the quiet passes; 1 where a figure lies beside it."""
    wrong = 0
    titles = "  core of PASS       by hand, over the quiet medians"
    print(f"\n{'case':18} {'':6} {'PASS':>5} {'AMBIGUOUS':>10} {'other':>6} {titles}")
    for case in dict.fromkeys(result.case for result in results):
        quiet = [result for result in results if result.case == case and not result.busy]
        middle = _median(r.core for r in quiet if r.kind == "PASS" and r.core)
        middle_by_hand = _median(hand for r in quiet for hand in r.hand or ())
        for busy in (False, True):
            these = [result for result in results if result.case == case and result.busy == busy]
            ratios = [r.core / middle for r in these if r.kind == "PASS" and r.core and middle]
            by_hand = [hand / middle_by_hand for r in these for hand in r.hand or () if middle_by_hand]
            count = [sum(r.kind == kind for r in these) for kind in ("PASS", "AMBIGUOUS")]
            wrong += sum(abs(ratio - 1) > WITHIN for ratio in ratios) + sum(r.kind not in HONEST for r in these)
            row = f"{count[0]:5} {count[1]:10} {len(these) - sum(count):6}   {_range(ratios):18} {_range(by_hand)}"
            print(f"{case:18} {'busy' if busy else 'quiet':6} {row}")
    paces = [result.pace for result in results if not result.busy]
    print(f"the machine's own speed before the quiet runs: {min(paces) / max(paces):.3f} to 1 of its best")
    kinds = [result.kind for result in results if not result.busy]
    share = kinds.count("AMBIGUOUS") / len(kinds) if kinds else 0.0
    print(f"quiet runs that were AMBIGUOUS: {share:.1%} of {len(kinds)}; figures that were wrong: {wrong}")
    return 1 if wrong or share > 1 / 20 else 0


def _median(values: Iterable[float]) -> float | None:
    found = [*values]
    return statistics.median(found) if found else None


def _range(ratios: list[float]) -> str:
    return f"{min(ratios):.3f} to {max(ratios):.3f}" if ratios else "none"


if __name__ == "__main__":
    main()
