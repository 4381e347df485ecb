"""The vendor-facing contract. A vendor's package imports this module and nothing else of the harness.

A vendor is a package `vendors/<name>` or an installed package behind the entry point
`proofmark.vendors: <name>`, with an attribute `vendor`: an instance of a subclass of `Vendor`.
Each compiler is one module of that package, named as the compiler and holding a class `InferModel`.
"""

from __future__ import annotations

import glob
import os
import stat
import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

from harness.chips import find_chip, load_chips
from harness.config import EffectiveConfig
from harness.errors import StepError
from harness.machine import microcode, processor_name, usable_cores

if TYPE_CHECKING:
    import torch

    from harness.training.case import TrainingCase

GIB = 1024**3

__all__ = [
    "Analysis",
    "Compiler",
    "Device",
    "EffectiveConfig",
    "InferFromModel",
    "InferFromOnnx",
    "InferModel",
    "Monitor",
    "Reading",
    "Software",
    "StepError",
    "TrainingAdapter",
    "Vendor",
    "driver_files",
    "processor_name",
    "usable_cores",
]


@dataclass(frozen=True)
class Compiler:
    """What a compiler module takes and can do.

    Attributes:
        precisions: those it declares support for. Any other is UNSUPPORTED, strictly: the run
            tries all the same, and an undeclared precision that works is an error.
        consumes: 'onnx' if it compiles the ONNX file, 'model' if it compiles the torch module.
        loads_compiled: whether it can start from `exist_compiler_path`.
        package: the distribution whose version the record names.
    """

    precisions: frozenset[str]
    consumes: Literal["onnx", "model"]
    loads_compiled: bool = False
    package: str | None = None


@dataclass(frozen=True)
class Device:
    """One device that a run may use: `index` as the visible-devices variable counts."""

    index: int
    name: str


@dataclass(frozen=True)
class Reading:
    """One device at one moment. None is a sensor that can't be read: never 0 in its place.

    Attributes:
        device: its index.
        temperature_c: degrees Celsius.
        power_w: watts.
        energy_j: joules since some moment, from a cumulative counter.
        memory_used_bytes: used on the device, by whomever.
        memory_total_bytes: what the device has.
        utilization: share of time in which it computed, 0 to 1.
        clock_mhz: of its compute units.
        throttled: why it runs slower than it could (heat, power, ...); empty if it doesn't.
        processes: ids of the processes that use it, as this host counts them.
        error: why the device could not be read, in a sentence; the others are read all the same.
    """

    device: int
    temperature_c: float | None = None
    power_w: float | None = None
    energy_j: float | None = None
    memory_used_bytes: int | None = None
    memory_total_bytes: int | None = None
    utilization: float | None = None
    clock_mhz: float | None = None
    throttled: tuple[str, ...] | None = None
    processes: tuple[int, ...] | None = None
    error: str | None = None


@dataclass(frozen=True)
class Software:
    """What the devices run with, as a reader would write it. None is what can't be read.

    Attributes:
        driver: its version.
        runtime: with its name and version, as in 'CUDA 12.8'.
        firmware: of the devices.
        reason: why there is no more.
    """

    driver: str | None = None
    runtime: str | None = None
    firmware: str | None = None
    reason: str = "the vendor's adapter does not tell"


class Analysis(NamedTuple):
    """What the FlagPerf inference specification asks of `analysis_log`. Peaks in FLOP/s; None is unknown."""

    max_memory_gib: float | None
    total_memory_gib: float | None
    fp32_peak: float | None
    fp16_peak: float | None


class Monitor(Protocol):
    """Reads a vendor's devices. Lives in a process of its own, which samples it once a second."""

    def sample(self) -> list[Reading]:
        """One reading of each device, with an `error` in that of one that does not answer.

        What it raises is recorded; the next sample is tried all the same.
        """

    def close(self) -> None:
        """Let go of the devices."""


class InferModel(Protocol):
    """A compiled model: one class of this name per compiler module, with the `__init__` for what that consumes."""

    def __call__(self, inputs: list[torch.Tensor]) -> tuple[list[torch.Tensor], float]:
        """Run one batch: CPU tensors in, (outputs, foo_time) out.

        The answer is a `tuple` of a `list` of `torch.Tensor`s and a `float`, exactly these types: a subclass, or a
        tensor with a method of its own, ends the run. Outputs are new tensors at every call, on the device or on
        the host, one row per sample. The referee copies them to the host before it stops the clock: the way back from
        the device is part of `core`, as the way there is. `foo_time` is the part of the call, in seconds, that is not
        inference; it must be 0.0 in timed rounds.
        """


class InferFromModel(InferModel, Protocol):
    """An `InferModel` whose compiler consumes 'model': there always is one."""

    def __init__(self, config: EffectiveConfig, onnx_path: Path | None, model: torch.nn.Module) -> None:
        """Compile, or load `config.exist_compiler_path`. Untimed.

        Args:
            config: the frozen configuration.
            onnx_path: None.
            model: a copy of the framework's model in float32 on the CPU, the engine's own to change.
        """


class InferFromOnnx(InferModel, Protocol):
    """An `InferModel` whose compiler consumes 'onnx'."""

    def __init__(self, config: EffectiveConfig, onnx_path: Path | None, model: torch.nn.Module | None) -> None:
        """Compile, or load `config.exist_compiler_path`. Untimed.

        Args:
            config: the frozen configuration.
            onnx_path: the exported or given ONNX file; None where `config.exist_compiler_path` makes it unnecessary.
            model: a copy of the framework's model in float32 on the CPU; None with `no_validation`.
        """


class TrainingAdapter:
    """The steps of training that a vendor may do otherwise. None must be; what is adapted stands in the record."""

    def convert_model(self, model: torch.nn.Module, config: EffectiveConfig) -> torch.nn.Module:
        """The fresh model with parts replaced by the vendor's own.

        Its state dict keeps the case's names (behind wrappers such as `module.`; `_extra_state` may be added), shapes,
        values, and dtypes, or at precision fp16 and bf16 that one; all stays trainable that was; and in eval mode it
        computes what the case's model does. The referee looks, and evaluates the weights in the case's own model.
        """
        return model

    def create_optimizer(
        self, case: TrainingCase, model: torch.nn.Module, config: EffectiveConfig
    ) -> torch.optim.Optimizer:
        """The case's optimizer, or one that does the same."""
        return case.create_optimizer(model, config)

    def autocast(self, config: EffectiveConfig, device: torch.device) -> AbstractContextManager[Any]:
        """The context of a forward pass: torch's autocast at precision fp16 and bf16."""
        import torch

        dtype = {"fp16": torch.float16, "bf16": torch.bfloat16}.get(config.precision)
        return torch.autocast(device.type, dtype=dtype) if dtype else nullcontext()

    def train_step(
        self, case: TrainingCase, model: torch.nn.Module, inputs: list[torch.Tensor], targets: torch.Tensor
    ) -> torch.Tensor:
        """One forward pass to the mean loss over a batch, by default the case's."""
        return case.train_step(model, inputs, targets)

    def backward(self, loss: torch.Tensor) -> None:
        """One backward pass."""
        loss.backward()  # type: ignore[no-untyped-call]


_OWN = {
    step: vars(TrainingAdapter)[step]
    for step in ("convert_model", "create_optimizer", "autocast", "train_step", "backward")
}
"""The harness's own way of each step, as it was before any vendor's code ran."""

ADAPTABLE = tuple(_OWN)


def adapted_steps(adapter: TrainingAdapter) -> list[str]:
    """Names of the steps of training that a vendor does otherwise, in whatever way it has put its own there."""
    return [step for step in ADAPTABLE if getattr(getattr(adapter, step, None), "__func__", None) is not _OWN[step]]


def driver_files(*patterns: str) -> list[str]:
    """For `Vendor.devices_sought`: of each pattern such as /dev/acme*, which files are there, and who may use them."""
    lines = []
    for pattern in patterns:
        found = sorted(glob.glob(pattern))
        lines += [f"{pattern}: not there"] if not found else [f"{path}: {_access(Path(path))}" for path in found[:8]]
    return lines


def _access(path: Path) -> str:
    if os.access(path, os.R_OK | os.W_OK):
        return "there, this user may use it"
    try:
        status = path.stat()
    except OSError as error:
        return f"there, but cannot be looked at: {error.strerror}"
    mode = f"{stat.filemode(status.st_mode)} of user {status.st_uid} and group {status.st_gid}"
    return f"there, but user {os.getuid()} may not read and write it: {mode}"


class Vendor(ABC):
    """How one vendor's devices are found, waited for and described."""

    compilers: Mapping[str, Compiler] = {}
    """Compiler modules of the package, by name."""

    default_compiler: str
    """The one that `compiler: default` means."""

    framework_precisions: frozenset[str] = frozenset({"fp32"})
    """Precisions at which the framework itself runs on `torch_device`."""

    training_precisions: frozenset[str] = frozenset({"fp32"})
    """Precisions at which the vendor's devices train. Asked for another, nothing is trained: UNSUPPORTED."""

    visible_devices_variable: str | None = None
    """The environment variable that limits a process to some devices, such as CUDA_VISIBLE_DEVICES."""

    distributed_backend: str = "gloo"
    """torch.distributed's back end for the vendor's devices."""

    training_scales: tuple[str, ...] = ("1x1",)
    """Scales, nodes x processes, at which every training case is offered; files under `configs/training` add others."""

    runs_on_processor: bool = False
    """Whether the devices are this machine's processor: nothing is then loaded or evaluated beside a computation."""

    container_options: tuple[str, ...] = ()
    """Options that give a container access to the devices."""

    def select(self, device: str) -> None:
        """Take --device: which of the vendor's devices the run is about, by the vendor's own name for them.

        Called before anything else, in every process of a run; not called where nothing was asked.

        Raises:
            StepError: there is no such device, or there is nothing to select.
        """
        raise StepError("the vendor has one kind of device, so --device has nothing to select")

    @abstractmethod
    def devices(self) -> list[Device]:
        """The devices of this machine, empty if there are none. Must not initialise a device."""

    def devices_sought(self) -> list[str]:
        """What `devices()` looked for and what is there, a line each, for a person who expected a device.

        Asked where there is none: driver files (`driver_files` describes them), the driver's library, permissions. The
        visible-devices variable and containers are told for every vendor.
        """
        return []

    @abstractmethod
    def synchronize(self) -> None:
        """Return when all work given to the device is done. Called after each call of an engine, under the clock."""

    def torch_device(self) -> str:
        """The torch device for framework validation and training."""
        return "cpu"

    def training_adapter(self) -> TrainingAdapter:
        """The vendor's way to train, where it differs."""
        return TrainingAdapter()

    @abstractmethod
    def chip(self) -> str:
        """The detected chip's name, as precise as can be read; `chips.yaml` is searched for it."""

    def chip_units(self) -> int:
        """By how many units a peak in `chips.yaml` is multiplied: cores of a CPU, otherwise 1."""
        return 1

    def software(self) -> Software:
        """Versions of driver, runtime and firmware. Asked once a session, and on each host: must be quick.

        By default nothing is known but a processor's microcode, for a vendor that runs on it.
        """
        if not self.runs_on_processor:
            return Software()
        return Software(firmware=microcode(), reason="a processor has none, or the kernel does not tell")

    def monitor(self) -> Monitor | None:
        """What reads the devices while a case runs, or None if nothing can. Called in the monitor's process.

        Raises:
            Exception: anything; it is recorded as the reason why there are no readings.
        """
        return None

    def analysis_log(self, path: Path | str) -> Analysis:
        """Re-read what the monitor wrote: memory used and total, fp32 (or tf32) and fp16 peak of the detected chip.

        Args:
            path: a `monitor.jsonl` in a run's folder.

        Raises:
            UsageError: the file is missing, or it is no log of Proofmark's monitor.
        """
        from harness.monitoring import memory_seen

        used, total = memory_seen(Path(path))
        chips = Path(sys.modules[type(self).__module__].__file__ or "").with_name("chips.yaml")
        entry = find_chip(self.chip(), load_chips(chips))
        peaks = {name: peak.flops * self.chip_units() for name, peak in entry.peaks.items()} if entry else {}
        return Analysis(
            used / GIB if used is not None else None,
            total / GIB if total is not None else None,
            peaks.get("tf32") or peaks.get("fp32"),
            peaks.get("fp16"),
        )

    def memory(self) -> tuple[int | None, int | None]:
        """(peak bytes used by this process on the device, total bytes); None where not readable."""
        return None, None


class Processor(Vendor):
    """This machine's processor, through torch alone: what trains the embedded profile's weights."""

    default_compiler = "eager"
    runs_on_processor = True

    def devices(self) -> list[Device]:
        """One: the processor."""
        return [Device(0, processor_name())]

    def synchronize(self) -> None:
        """Nothing runs beside the caller."""

    def chip(self) -> str:
        """The processor's name."""
        return processor_name()
