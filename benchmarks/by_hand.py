"""The tightest hand-written loop, in a process of its own that begins anew, as the suite's engine does: where a
process's memory lies is chance, may make it a fifth faster than another, and lasts as long as it lives."""

from __future__ import annotations

import multiprocessing
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import torch

from proofmark.case import Loader
from proofmark.inference.case import InferenceCase, InferenceParameters
from proofmark.measuring.window import Compute
from proofmark.process.lifetime import die_with_parent
from proofmark.process.memory import keep_freed
from proofmark.rules.case_file import load_case_file
from proofmark.rules.config import EffectiveConfig, HostSettings, resolve
from proofmark.vendor.registry import FoundVendor, find_vendor

ROOT = Path(__file__).resolve().parents[1]

Times = tuple[float, float]
"""(whole, core) seconds of a pass."""

FRAMEWORK = ("cpu", None)
"""In the place of a vendor and its compiler."""

_made: tuple[InferenceCase, Loader, Compute] | None = None


def config_of(case: InferenceCase, compiler: str | None) -> EffectiveConfig:
    """That of the case on the processor."""
    path = ROOT / "suites" / "inference" / f"{type(case).__module__.rpartition('.test_')[2]}.yaml"
    case_file = load_case_file(path, "inference", "embedded", case.common_file, InferenceParameters)
    return resolve(case_file, "cpu", [], compiler, HostSettings()).config


def seeded_model(case: InferenceCase, config: EffectiveConfig) -> torch.nn.Module:
    """The same in every process."""
    torch.manual_seed(config.seed)
    return case.create_model(config).eval()


@contextmanager
def hand_written(
    kind: type[InferenceCase], vendor: str, compiler: str | None, onnx: Path
) -> Iterator[Callable[[], Times]]:
    """A pass of such a process, which lives as long as this does."""
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=spawn, initializer=_make, initargs=(kind, vendor, compiler, onnx)) as pool:
        yield lambda: pool.submit(_pass).result()


def _make(kind: type[InferenceCase], vendor: str, compiler: str | None, onnx: Path) -> None:
    global _made
    die_with_parent(signal.SIGKILL)()
    keep_freed()  # as what it is held against does
    case = kind()
    config = config_of(case, compiler)
    found, model = find_vendor(vendor, ROOT / "vendors"), seeded_model(case, config)
    device, loader = found.vendor.torch_device(), case.build_dataloader(config)
    if compiler is None:
        compute = _bare_torch(model.to(device), device)
    else:
        compute = found.infer_model(compiler)(config, *consumed(found, compiler, onnx, model))
    _made = (case, loader, compute) if device == "cpu" else (case, _Pinned(loader), _fetched(compute))


def _pass() -> Times:
    assert _made is not None
    return by_hand(*_made)


def consumed(
    found: FoundVendor, compiler: str, onnx: Path, model: torch.nn.Module
) -> tuple[Path | None, torch.nn.Module | None]:
    """What of a model a compiler takes: its ONNX file or itself."""
    return (None, model) if found.vendor.compilers[compiler].consumes == "model" else (onnx, None)


def _bare_torch(model: torch.nn.Module, device: str) -> Compute:
    @torch.inference_mode()
    def compute(inputs: list[torch.Tensor]) -> tuple[list[torch.Tensor], float]:
        return [model(*(tensor.to(device, non_blocking=True) for tensor in inputs))], 0.0

    return compute


def _fetched(compute: Compute) -> Compute:
    """With its answers on the host, for which it waits."""

    def fetched(inputs: list[torch.Tensor]) -> tuple[list[torch.Tensor], float]:
        outputs, foo_seconds = compute(inputs)
        return [output.cpu() for output in outputs], foo_seconds

    return fetched


class _Pinned:
    """A loader's batches, in memory that a device copies itself."""

    def __init__(self, loader: Loader) -> None:
        self.dataset, self._loader = loader.dataset, loader

    def __iter__(self) -> Iterator[tuple[list[torch.Tensor], torch.Tensor]]:
        for inputs, targets in self._loader:
            yield [tensor.pin_memory() for tensor in inputs], targets

    def __len__(self) -> int:
        return len(self._loader)


def by_hand(case: InferenceCase, loader: Loader, compute: Compute) -> Times:
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
