"""`make overhead`: the suite's loop against the tightest hand-written one, in interleaved pairs.

Both run the same session or model over the same loader in the same process. A ratio is the hand-written loop's
time over the suite's: 1 is as good as by hand, 0.98 is 2 % slower. Printed: the median over pairs and its quartiles.
"""

from __future__ import annotations

import os
import signal
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import torch

from proofmark.case import Loader
from proofmark.inference.case import InferenceParameters
from proofmark.inference.steps.export import export_onnx
from proofmark.inference.timing.loop import timed_round
from proofmark.measuring.precision import framework_compute
from proofmark.measuring.window import Compute
from proofmark.metric import Mean
from proofmark.monitoring.monitor import MonitorProcess
from proofmark.record.events import EventLog
from proofmark.rules.case_file import load_case_file
from proofmark.rules.config import EffectiveConfig, HostSettings, resolve
from proofmark.vendor.registry import find_vendor
from suites.inference.test_resnet50 import TestResNet50

ROOT = Path(__file__).resolve().parents[1]
PAIRS, MONITOR_PAIRS = 15, 51

Times = tuple[float, float]
"""(whole, core) seconds of a pass."""


def main() -> None:
    """Print one line per ratio."""
    case = TestResNet50()
    config = _config(case)
    loader = case.build_dataloader(config)
    torch.manual_seed(config.seed)
    model = case.create_model(config).eval()
    found = find_vendor("cpu", ROOT / "vendors")
    with tempfile.TemporaryDirectory() as folder:
        onnx = Path(folder) / "model.onnx"
        export_onnx(model, next(iter(loader))[0], onnx, case.input_names, case.output_names)
        engine = found.infer_model("onnxruntime")(config, onnx, None)
        _compare("cpu/onnxruntime", case, loader, engine, engine)
        other = find_vendor("intel", ROOT / "vendors").infer_model("openvino")(config, onnx, None)
        _compare("intel/openvino", case, loader, other, other)
        _monitored(case, loader, engine, Path(folder))
    bare = _bare_torch(model)
    _compare("framework", case, loader, framework_compute(model, "cpu", "fp32"), bare)
    _added_per_batch(case, loader)


def _config(case: TestResNet50) -> EffectiveConfig:
    folder = ROOT / "suites" / "inference"
    case_file = load_case_file(folder / "resnet50.yaml", "inference", "embedded", case.common_file, InferenceParameters)
    return resolve(case_file, "cpu", [], "onnxruntime", HostSettings()).config


def _bare_torch(model: torch.nn.Module) -> Compute:
    @torch.inference_mode()
    def compute(inputs: list[torch.Tensor]) -> tuple[list[torch.Tensor], float]:
        return [model(*inputs)], 0.0

    return compute


def by_hand(case: TestResNet50, loader: Loader, compute: Compute) -> Times:
    """Load, compute, evaluate, one after the other, and nothing else; torch's threads as the suite sets them."""
    core = correct = 0.0
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    begun = time.perf_counter()
    for inputs, targets in loader:
        torch.set_num_threads(threads)
        start = time.perf_counter()
        outputs, _ = compute(inputs)
        core += time.perf_counter() - start
        torch.set_num_threads(1)
        correct += case.evaluator(outputs, targets)[0]
    whole = time.perf_counter() - begun
    torch.set_num_threads(threads)
    return whole, core


def by_suite(case: TestResNet50, loader: Loader, compute: Compute) -> Times:
    """The same by the suite's loop, its events included."""
    with tempfile.TemporaryDirectory() as folder:
        log = EventLog(Path(folder) / "events.jsonl")
        result = timed_round(loader, compute, lambda: None, Mean(case.evaluator), beside=False)
        log.write("round", batch_ns=result.batch_ns)
        log.close()
    return result.whole_ns / 1e9, result.core_ns / 1e9


def _compare(name: str, case: TestResNet50, loader: Loader, suite: Compute, hand: Compute) -> None:
    for compute in (suite, hand):
        by_hand(case, loader, compute)
    pairs: list[tuple[Times, Times]] = []
    for number in range(PAIRS):
        first_suite = number % 2 == 0
        one = by_suite(case, loader, suite) if first_suite else by_hand(case, loader, hand)
        two = by_hand(case, loader, hand) if first_suite else by_suite(case, loader, suite)
        pairs.append((two, one) if first_suite else (one, two))
    for index, figure in enumerate(("whole", "core")):
        print(f"{name:18} {figure:6} {quartiles([hand[index] / suite[index] for hand, suite in pairs])}", flush=True)


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
    monitor = MonitorProcess("cpu", ROOT / "vendors", 0, None, folder / "monitor.jsonl", 1.0)
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
    """What a pass takes beyond its compute windows, per batch, where loading is free and a device takes a while."""
    prepared = _Prepared(loader, 300)
    rows = len(next(iter(loader))[1])

    def device(batch: list[torch.Tensor]) -> tuple[list[torch.Tensor], float]:
        time.sleep(1e-3)
        return [torch.empty(rows, 10)], 0.0

    def added() -> float:
        whole, core = by_suite(case, prepared, device)
        return (whole - core) / len(prepared) * 1e6

    print(f"{'added per batch':18} {'us':6} {quartiles([added() for _ in range(PAIRS)])}")


def quartiles(values: list[float]) -> str:
    """The median and its quartiles, as text."""
    low, middle, high = statistics.quantiles(values, n=4)
    return f"{middle:8.4f}   (quartiles {low:.4f} to {high:.4f}, {len(values)} values)"


if __name__ == "__main__":
    main()
