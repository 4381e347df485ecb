"""`make repeat RUNS=N`: whether a printed throughput is what happened, on a quiet machine and on a busy one.

Each inference case is run N times (10), a training case N times (3): with the machine to itself, and beside another
process that keeps a core busy. The core throughput of every PASS must lie within 5 % of the median of the quiet ones;
what lies elsewhere must say AMBIGUOUS or ERROR. Of the quiet runs at most one in twenty may say AMBIGUOUS.

Before each session the machine's own speed is measured with a fixed computation on all cores; and before and after,
that of a hand-written loop over the same model, compiled as the suite has it. A virtual machine may have two
speeds: its host moves its processors to where they share a cache or don't, or two of them to one core. A figure is not
wrong that lies where the hand-written loop was right before or after, again within 5 %, nor is a run AMBIGUOUS in vain
that began or ended with the loop elsewhere; the table counts both by themselves.
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
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.by_hand import Times, config_of, hand_written, seeded_model
from benchmarks.training import by_hand as train_by_hand
from benchmarks.training import config_of as config_of_training
from proofmark.errors import UsageError
from proofmark.inference.case import InferenceCase
from proofmark.inference.outcome.record import RunRecord
from proofmark.inference.steps.export import export_onnx
from proofmark.process.lifetime import die_with_parent
from proofmark.process.memory import keep_freed
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
WITHIN = 0.05
HONEST = {"PASS", "AMBIGUOUS", "ERROR"}
SPIN = "while True: pass"
SLICE, SLICES, SIZE = 0.05, 10, 192
"""Seconds of a look at the machine's speed, how many looks, and the edge of the matrices."""

BY_HAND, STEPS = 1.0, 40
"""Seconds of the hand-written loop's compute, before and after a session; and steps of one that trains."""

Hand = Callable[[], float]
"""Has such a loop run: items per second."""


@dataclass(frozen=True)
class Result:
    """One session of one case: its verdict, and the core throughput that it printed or would have.

    Attributes:
        pace: of the machine, products per second right before.
        hand: items per second of the hand-written loop, right before and right after.
    """

    case: str
    busy: bool
    kind: str
    core: float | None
    pace: float
    hand: tuple[float, float]


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
        loops[TRAINED] = open_ones.enter_context(_trained_by_hand())
        yield loops


@contextlib.contextmanager
def _trained_by_hand() -> Iterator[Hand]:
    """The training case's steps, in a process that trains only when asked."""
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=spawn, initializer=_begin) as pool:
        yield lambda: pool.submit(_steps_by_hand).result()


def _begin() -> None:
    die_with_parent(signal.SIGKILL)()
    keep_freed()  # as a rank does


def _steps_by_hand() -> float:
    case = TestBertTraining()
    config = config_of_training(case, STEPS)
    samples: int = STEPS * config.global_batch_size
    return samples / train_by_hand(case, config, STEPS)


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


def _training(busy: bool, loop: Hand) -> Result:
    case, scale = TRAINING
    pace, before = _pace(), loop()
    with _session("suites/training", f"{case} and {scale}") as folder:
        hand = before, loop()
        try:
            record = TrainingRecord.load(folder / "training" / case / scale / "record.json")
        except UsageError as error:
            return _shown(Result(TRAINED, busy, f"no record: {error}", None, pace, hand))
        core = record.rates.get("pure_compute")
        kind = str(record.verdict.kind) if record.verdict else "no verdict"
        return _shown(Result(TRAINED, busy, kind, core.value if core else None, pace, hand))


@contextlib.contextmanager
def _session(suite: str, selected: str) -> Iterator[Path]:
    """Run a session to its end; its folder."""
    with tempfile.TemporaryDirectory() as results:
        command = [sys.executable, "-m", "pytest", suite, "-k", selected, "-q", "--results-dir", results]
        subprocess.run(command, cwd=ROOT, check=False, capture_output=True)
        yield Path(results) / "latest"


def _shown(result: Result) -> Result:
    core = f"{result.core:10.4g}" if result.core is not None else f"{'-':>10}"
    hand = f"by hand {result.hand[0]:.4g} before, {result.hand[1]:.4g} after"
    pace = f"{core}   {result.kind:10} the machine's own speed: {result.pace:.0f}, {hand}"
    print(f"{result.case:18} {'busy' if result.busy else 'quiet':6} {pace}", flush=True)
    return result


@dataclass(frozen=True)
class Medians:
    """Of a case's quiet runs: the core throughput of those that passed, and the hand-written loop's."""

    core: float | None
    hand: float

    @classmethod
    def of(cls, quiet: Sequence[Result]) -> Medians:
        """They are there before anything is judged by them."""
        passed = [result.core for result in quiet if result.kind == "PASS" and result.core]
        hands = [hand for result in quiet for hand in result.hand]
        return cls(statistics.median(passed) if passed else None, statistics.median(hands))

    def core_of(self, result: Result) -> float | None:
        """Its core throughput over the median, if it passed."""
        return result.core / self.core if result.kind == "PASS" and result.core and self.core else None

    def is_beside(self, result: Result) -> bool:
        """Whether it passed with a figure that is not the median's."""
        ratio = self.core_of(result)
        return ratio is not None and abs(ratio - 1) > WITHIN

    def moved(self, result: Result) -> bool:
        """Whether the loop was elsewhere, before or after it."""
        return any(abs(hand / self.hand - 1) > WITHIN for hand in result.hand)

    def is_explained(self, result: Result) -> bool:
        """Whether such a figure lies where the loop was."""
        ratio, hands = self.core_of(result), [hand / self.hand for hand in result.hand]
        return ratio is not None and min(hands) * (1 - WITHIN) <= ratio <= max(hands) * (1 + WITHIN)


def _judge(results: list[Result]) -> int:
    """The table of what was printed against the median of the quiet passes; 1 where a figure lies beside it."""
    wrong = in_vain = 0
    titles = f"{'core of PASS':18} {'by hand, over medians':22} {'beside':>6} {'of these with the loop':>22}"
    print(f"\n{'case':18} {'':6} {'PASS':>5} {'AMBIGUOUS':>10} {'other':>6}   {titles}")
    for case in dict.fromkeys(result.case for result in results):
        medians = Medians.of([result for result in results if result.case == case and not result.busy])
        for busy in (False, True):
            these = [result for result in results if result.case == case and result.busy == busy]
            count = [sum(r.kind == kind for r in these) for kind in ("PASS", "AMBIGUOUS")]
            beside = [result for result in these if medians.is_beside(result)]
            explained = sum(map(medians.is_explained, beside))
            wrong += len(beside) - explained + sum(r.kind not in HONEST for r in these)
            in_vain += sum(r.kind == "AMBIGUOUS" and not busy and not medians.moved(r) for r in these)
            cores = [ratio for r in these if (ratio := medians.core_of(r)) is not None]
            hands = [hand / medians.hand for r in these for hand in r.hand]
            row = f"{count[0]:5} {count[1]:10} {len(these) - sum(count):6}   {_range(cores):18} {_range(hands):22}"
            print(f"{case:18} {'busy' if busy else 'quiet':6} {row} {len(beside):6} {explained:22}")
    quiet = [result for result in results if not result.busy]
    paces = [result.pace for result in quiet]
    print(f"the machine's own speed before the quiet runs: {min(paces) / max(paces):.3f} to 1 of its best")
    ambiguous, share = sum(r.kind == "AMBIGUOUS" for r in quiet), in_vain / len(quiet)
    print(f"quiet runs that were AMBIGUOUS: {ambiguous} of {len(quiet)}, {share:.1%} beside a loop that had not moved")
    print(f"figures that were wrong: {wrong}")
    return 1 if wrong or share > 1 / 20 else 0


def _range(ratios: list[float]) -> str:
    return f"{min(ratios):.3f} to {max(ratios):.3f}" if ratios else "none"


if __name__ == "__main__":
    main()
