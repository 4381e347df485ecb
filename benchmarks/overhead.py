"""`make overhead`: the suite's loop against the tightest hand-written one, in interleaved pairs.

Both run the same ONNX file by the same compiler over the same loader: by hand in a process of its own, the suite's
engine in one behind the wall, as in a run. A ratio is the hand-written loop's time over the suite's: 1 is as good as by
hand, 0.98 is 2 % slower. Printed: the median over several pairs of processes, each the median of its passes, and its
quartiles: two processes that do the same may be a fifth apart for as long as they live. Of each, the second of two
passes counts: in the first, cores and caches are still the other's.

What two processes have by chance is no cost of the suite's, and moves these ratios by a per cent. So a compiler's
engine says by its own clock how long it computes, and `of its own` is the same ratio with that in the place of what
the hand-written loop computes; loading and evaluation are still that one's. It leaves out what the suite would slow
down within the computing itself: the first two ratios have that too.

Then what a call of next to no work takes there and here, at batch 1 and with 256 images of 224x224, and what a pass
takes beyond its calls.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import torch

from benchmarks.by_hand import FRAMEWORK, ROOT, Times, by_hand, config_of, consumed, hand_written, seeded_model
from proofmark.case import Loader
from proofmark.errors import UsageError
from proofmark.inference.engine.engines import Engines
from proofmark.inference.steps.export import export_onnx
from proofmark.inference.timing.loop import timed_round
from proofmark.measuring.window import Compute, run_window
from proofmark.metric import Mean
from proofmark.monitoring.monitor import MonitorProcess
from proofmark.monitoring.watch import Watch
from proofmark.process.memory import keep_freed
from proofmark.record.events.log import EventLog
from proofmark.rules.config import EffectiveConfig
from proofmark.vendor.registry import FoundVendor, find_vendor
from suites.inference.test_resnet50 import TestResNet50

PAIRS, MONITOR_PAIRS = 21, 31

PROCESSES, PASSES = 4, 3
"""Pairs of processes, and pairs of passes of each."""

ENGINES = (("cpu", "onnxruntime"), ("intel", "openvino"), FRAMEWORK)

TIMES_ITSELF = """
import time as _time


def _timed(self, inputs, _compute=InferModel.__call__, _clock=_time.perf_counter):
    begun = _clock()
    outputs, _ = _compute(self, inputs)
    return outputs, _clock() - begun


InferModel.__call__ = _timed
InferModel.foo_time_reason = "none: what it computes for, by its own clock"
"""
"""What follows a compiler's own code, in a copy of it."""


def main() -> None:
    """Print one line per ratio."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.overhead", description=__doc__)
    parser.add_argument("--engine", metavar="VENDOR/COMPILER", help="this one alone, or VENDOR/framework")
    parser.add_argument("--processes", type=int, default=PROCESSES, help="pairs of processes (%(default)s)")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    wanted = parser.parse_args()
    if not wanted.here:
        raise SystemExit(_in_a_copy(sys.argv[1:]))
    keep_freed()  # as what it is held against does
    case = TestResNet50()
    config = config_of(case, "onnxruntime")
    loader, model = case.build_dataloader(config), seeded_model(case, config)
    found = find_vendor("cpu", ROOT / "vendors")
    with tempfile.TemporaryDirectory() as folder:
        onnx = Path(folder) / "model.onnx"
        export_onnx(model, next(iter(loader))[0], onnx, case.input_names, case.output_names)
        if wanted.engine:
            try:
                _compare(*_named(wanted.engine), case, loader, onnx, wanted.processes)
            except UsageError as error:
                parser.error(str(error))
            return
        for vendor, compiler in ENGINES:
            _compare(vendor, compiler, case, loader, onnx, wanted.processes)
        _called(found, config, Path(folder))
        _monitored(case, loader, found.infer_model("onnxruntime")(config, onnx, None), Path(folder))
    _added_per_batch(case, loader)


def _named(engine: str) -> tuple[str, str | None]:
    """A vendor and its compiler, None for the framework.

    Raises:
        UsageError: there is no such one.
    """
    vendor, _, compiler = engine.partition("/")
    known = [*find_vendor(vendor, ROOT / "vendors").vendor.compilers, "framework"]
    if compiler not in known:
        raise UsageError(f"--engine: expected {vendor}/ and one of {', '.join(known)}, found {engine!r}")
    return vendor, None if compiler == "framework" else compiler


def _in_a_copy(arguments: list[str]) -> int:
    """Run this in a copy of the repository, whose engines time themselves."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "proofmark"
        left_out = shutil.ignore_patterns(".*", "__pycache__", "results", "shared")
        shutil.copytree(ROOT, copy, symlinks=True, ignore=left_out)
        for vendor, compiler in ENGINES:
            if compiler is not None:
                with (copy / "vendors" / vendor / f"{compiler}.py").open("a") as file:
                    file.write(TIMES_ITSELF)
        return subprocess.run([sys.executable, "-m", "benchmarks.overhead", "--here", *arguments], cwd=copy).returncode


@contextmanager
def _apart(found: FoundVendor, config: EffectiveConfig, folder: Path) -> Iterator[Engines]:
    """Engines in processes of their own."""
    kind = TestResNet50
    engines = Engines((kind.__module__, kind.__name__), found, config, folder / "engines")
    try:
        yield engines
    finally:
        engines.close()


def by_suite(case: TestResNet50, loader: Loader, compute: Compute) -> Times:
    """The same by the suite's loop, its events included."""
    return _with_own(case, loader, compute)[:2]


def _with_own(case: TestResNet50, loader: Loader, compute: Compute) -> tuple[float, float, float]:
    """And for how many of these seconds its engine says that it computed."""
    with tempfile.TemporaryDirectory() as folder:
        log = EventLog(Path(folder) / "events.jsonl")
        result = timed_round(loader, compute, lambda: None, Mean(case.evaluator), beside=False)
        log.write("round", batch_ns=result.batch_ns)
        log.close()
    return result.whole_ns / 1e9, result.core_ns / 1e9, result.foo_seconds


def _compare(vendor: str, compiler: str | None, case: TestResNet50, loader: Loader, onnx: Path, processes: int) -> None:
    found, config = find_vendor(vendor, ROOT / "vendors"), config_of(case, compiler)
    ratios: list[list[float]] = []
    for _ in range(processes):
        with (
            hand_written(TestResNet50, vendor, compiler, onnx) as hand,
            tempfile.TemporaryDirectory() as folder,
            _apart(found, config, Path(folder)) as engines,
        ):
            model = seeded_model(case, config)
            if compiler is None:
                there = engines.framework("fp32", model)
            else:
                there = engines.compiled(*consumed(found, compiler, onnx, model))
            ratios.append(_ratios(hand, partial(_with_own, case, loader, there)))
    name = f"{vendor}/{compiler or 'framework'}"
    times_itself = (vendor, compiler) in ENGINES and compiler is not None
    for index, figure in enumerate(
        ("whole", "core", "whole, of its own", "core, of its own")[: 4 if times_itself else 2]
    ):
        print(f"{name:18} {figure:17} {quartiles([ratio[index] for ratio in ratios])}", flush=True)


def _ratios(hand: Callable[[], Times], suite: Callable[[], tuple[float, float, float]]) -> list[float]:
    """Of a pair of processes, whole and core, and the same with the engine's own computing: the medians over its
    passes."""
    ratios: list[tuple[float, ...]] = []
    for number in range(PASSES + 1):
        if number % 2:
            (_, own), (_, its) = (hand(), hand()), (suite(), suite())
        else:
            (_, its), (_, own) = (suite(), suite()), (hand(), hand())
        whole, core, computed = its
        beside = own[0] - own[1]
        ratios.append((own[0] / whole, own[1] / core, (computed + beside) / whole, computed / core))
    return [statistics.median(column) for column in zip(*ratios[1:], strict=True)]


class _Mean(torch.nn.Module):
    """Next to no work: reads its input once."""

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return images.mean((2, 3))


def _called(found: FoundVendor, config: EffectiveConfig, folder: Path) -> None:
    """A call in a process of its own against one here: microseconds more at batch 1, and the ratio of large ones."""
    for batch, size, calls in ((1, 32, 200), (256, 224, 4)):
        onnx, inputs = folder / f"mean{size}.onnx", [torch.rand(batch, 3, size, size)]
        export_onnx(_Mean(), inputs, onnx, ("images",), ("means",))
        here = found.infer_model("onnxruntime")(config, onnx, None)
        with _apart(found, config, folder) as engines:
            there = engines.compiled(onnx, None)
            pairs = [(_microseconds(here, inputs, calls), _microseconds(there, inputs, calls)) for _ in range(PAIRS)]
        name = f"{batch} of {size}x{size}"
        print(f"{name:18} {'us':6} {quartiles([apart - own for own, apart in pairs])}", flush=True)
        print(f"{name:18} {'core':6} {quartiles([own / apart for own, apart in pairs])}", flush=True)


def _microseconds(compute: Compute, inputs: list[torch.Tensor], calls: int) -> float:
    """Of the median call."""
    return statistics.median(run_window(compute, inputs, lambda: None).nanoseconds for _ in range(calls)) / 1e3


class _Prepared:
    """Batches that cost nothing to load."""

    def __init__(self, loader: Loader, count: int) -> None:
        self.dataset = loader.dataset
        self._batches = [next(iter(loader))] * count

    def __iter__(self) -> Iterator[tuple[list[torch.Tensor], torch.Tensor]]:
        return iter(self._batches)

    def __len__(self) -> int:
        return len(self._batches)


def _monitored(case: TestResNet50, loader: Loader, engine: Compute, folder: Path) -> None:
    """The core of rounds beside a monitor against rounds while it is stopped; and what it takes of a core."""
    monitor = MonitorProcess(Watch("cpu", str(ROOT / "vendors"), 0, None, str(folder / "monitor.jsonl"), 1.0))
    time.sleep(2)
    begun, used = time.perf_counter(), _on_processor(monitor.pid)
    rounds = [by_suite(case, loader, engine)[1] for _ in range(PAIRS)]
    share = (_on_processor(monitor.pid) - used) / (time.perf_counter() - begun) * 100
    ratios = []
    for number in range(MONITOR_PAIRS):
        times = {}
        for running in (True, False) if number % 2 else (False, True):
            os.kill(monitor.pid, signal.SIGCONT if running else signal.SIGSTOP)
            times[running] = by_suite(case, loader, engine)[1]
        ratios.append(times[False] / times[True])
    os.kill(monitor.pid, signal.SIGCONT)
    monitor.stop()
    print(f"{'monitor at 1 Hz':18} {'core':6} {quartiles(ratios)}", flush=True)
    print(f"{'monitor at 1 Hz':18} {'% core':6} {share:8.4f}   (over {len(rounds)} rounds)", flush=True)


def _on_processor(pid: int) -> float:
    """Seconds that a process has run, exactly: the tick of the usual counters is as long as a sample takes."""
    return sum(int(path.read_text().split()[0]) for path in Path(f"/proc/{pid}/task").glob("*/schedstat")) / 1e9


def _added_per_batch(case: TestResNet50, loader: Loader) -> None:
    """What a pass takes beyond its compute windows, per batch, where loading is free and a device takes a while: all of
    it, and how much more that is than the hand-written loop's, which evaluates too."""
    prepared = _Prepared(loader, 300)
    rows = len(next(iter(loader))[1])

    def device(batch: list[torch.Tensor]) -> tuple[list[torch.Tensor], float]:
        time.sleep(1e-3)
        return [torch.empty(rows, 10)], 0.0

    def added(whole: float, core: float) -> float:
        return (whole - core) / len(prepared) * 1e6

    pairs = []
    for _ in range(PAIRS):
        own, its = added(*by_hand(case, prepared, device)), added(*by_suite(case, prepared, device))
        pairs.append((own, its))
    print(f"{'added per batch':18} {'us':6} {quartiles([its for _, its in pairs])}")
    print(f"{'  than by hand':18} {'us':6} {quartiles([its - own for own, its in pairs])}")


def quartiles(values: list[float]) -> str:
    """The median and its quartiles, as text."""
    low, middle, high = statistics.quantiles(values, n=4)
    return f"{middle:8.4f}   (quartiles {low:.4f} to {high:.4f}, {len(values)} values)"


if __name__ == "__main__":
    main()
