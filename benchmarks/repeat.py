"""`make repeat RUNS=N`: whether a printed throughput is what happened, on a quiet machine and on a busy one.

Each inference case is run N times (10), a training case N times (3): with the machine to itself, and beside another
process that keeps a core busy. The core throughput of every PASS must lie within 5 % of the median of the quiet ones;
what lies elsewhere must say AMBIGUOUS or ERROR. Of the quiet runs at most one in twenty may say AMBIGUOUS.

Before each session the machine's own speed is measured with a fixed computation on all cores, and that of a
hand-written loop over the same model, compiled as the suite has it. After it the loop is measured as the session was:
as many rounds of as many seconds, which must not scatter by more, anew as often where they do. A virtual machine may
have several speeds: its host moves its processors to where they share a cache or don't, two of them to one core, or
another's to the other half of one. A figure is not wrong that lies between where the loop was before and after, again
within 5 %; and on a machine where loops by hand are unsteady too, one in twenty is counted beyond as many as those.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import multiprocessing
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.by_hand import Times, config_of, hand_written, seeded_model
from benchmarks.repeated import Hand, Loops, Result, judge, shown
from benchmarks.training import by_hand as train_by_hand
from benchmarks.training import config_of as config_of_training
from proofmark.errors import UsageError
from proofmark.inference.case import InferenceCase
from proofmark.inference.outcome.record import RunRecord
from proofmark.inference.steps.export import export_onnx
from proofmark.inference.timing.measure import REPETITIONS
from proofmark.process.lifetime import die_with_parent
from proofmark.process.memory import keep_freed
from proofmark.training.logs.pace import PARTS
from proofmark.training.outcome.record import TrainingRecord
from suites.inference.test_bert import TestBert
from suites.inference.test_resnet50 import TestResNet50
from suites.inference.test_vit import TestVit
from suites.training.test_bert import TestBert as TestBertTraining

if TYPE_CHECKING:
    import torch

ROOT = Path(__file__).resolve().parents[1]
CASES: dict[str, type[InferenceCase]] = {"resnet50": TestResNet50, "bert": TestBert, "vit": TestVit}
VENDOR, COMPILER = "cpu", "onnxruntime"
"""What a session without options has."""
TRAINING = ("bert", "1x1")
TRAINED = f"training {TRAINING[0]}"
SPIN = "while True: pass"
SLICE, SLICES, SIZE = 0.05, 10, 192
"""Seconds of a look at the machine's speed, how many looks, and the edge of the matrices."""

BY_HAND, STEPS = 1.0, 40
"""Seconds of the hand-written loop's compute before a session; and steps that one that trains has at least."""


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
                    results += [_training(busy, loops[TRAINED])] if number < arguments.trainings else []
    raise SystemExit(judge(results))


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
        loops[TRAINED] = open_ones.enter_context(_trained_by_hand())
        yield loops


@contextlib.contextmanager
def _trained_by_hand() -> Iterator[Hand]:
    """The training case's steps, in a process that trains only when asked."""
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=spawn, initializer=_begin) as pool:
        yield lambda seconds: pool.submit(_steps_by_hand, seconds).result()


def _begin() -> None:
    die_with_parent(signal.SIGKILL)()
    keep_freed()  # as a rank does


def _steps_by_hand(seconds: float) -> float:
    """More steps each time, until they take so long."""
    case, steps = TestBertTraining(), STEPS
    while True:
        config = config_of_training(case, steps)
        took = train_by_hand(case, config, steps)
        if took >= seconds:
            return float(steps * config.global_batch_size / took)
        steps = 1 + int(steps * 1.1 * seconds / took)


def _rate(one_pass: Callable[[], Times], items: int, least: float) -> float:
    one_pass()  # cores and caches are still another's
    seconds, passes = 0.0, 0
    while seconds < least:
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
    pace, before = _pace(), loop(BY_HAND)
    with _session("suites/inference", case) as folder:
        try:
            record = RunRecord.load(folder / "inference" / case / "record.json")
        except UsageError as error:
            return shown(Result(case, busy, f"no record: {error}", None, pace, before, Loops((), steady=True)))
    config, measured = record.config, record.measured()
    after = Loops.timed(loop, config["repeat"], config["min_seconds"], REPETITIONS)
    kind = str(record.verdict.kind) if record.verdict else "no verdict"
    return shown(Result(case, busy, kind, measured.core.value if measured else None, pace, before, after))


def _training(busy: bool, loop: Hand) -> Result:
    case, scale = TRAINING
    pace, before = _pace(), loop(BY_HAND)
    with _session("suites/training", f"{case} and {scale}") as folder:
        try:
            record = TrainingRecord.load(folder / "training" / case / scale / "record.json")
        except UsageError as error:
            return shown(Result(TRAINED, busy, f"no record: {error}", None, pace, before, Loops((), steady=True)))
    core = record.rates.get("pure_compute")
    part = max(run.samples or 0 for run in record.runs) / core.value / PARTS if core else BY_HAND
    kind = str(record.verdict.kind) if record.verdict else "no verdict"
    after = Loops.timed(loop, PARTS, part, repetitions=0)
    return shown(Result(TRAINED, busy, kind, core.value if core else None, pace, before, after))


@contextlib.contextmanager
def _session(suite: str, selected: str) -> Iterator[Path]:
    """Run a session to its end; its folder."""
    with tempfile.TemporaryDirectory() as results:
        command = [sys.executable, "-m", "pytest", suite, "-k", selected, "-q", "--results-dir", results]
        subprocess.run(command, cwd=ROOT, check=False, capture_output=True)
        yield Path(results) / "latest"


if __name__ == "__main__":
    main()
