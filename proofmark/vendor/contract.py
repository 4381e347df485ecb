"""How one vendor's devices are found, waited for and described."""

from __future__ import annotations

import glob
import os
import stat
import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from proofmark.errors import StepError, named
from proofmark.vendor.adapter import TrainingAdapter
from proofmark.vendor.engine import Compiler
from proofmark.vendor.hardware.processor import microcode, processor_name
from proofmark.vendor.readings import Monitor

GIB = 1024**3

GLOO = "gloo"
"""The back end that needs TCP alone: others' ranks share memory, and hand one another descriptors."""


@dataclass(frozen=True)
class Device:
    """One device that a run may use: `index` as the visible-devices variable counts.

    `name` is its chip's, the same of devices that are alike: no run uses those of several chips, since its record names
    one, and that one's peak. Those that one entry of `chips.yaml` knows are one chip.

    `identity` is what a driver calls it in every job and container, as by a UUID: `index` may count those alone that a
    job was given. By it sessions on one device know of each other; None leaves them the index.
    """

    index: int
    name: str
    identity: str | None = None


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


def driver_files(*patterns: str) -> list[str]:
    """For `Vendor.devices_sought`: of each pattern such as /dev/acme*, which files are there, and who may use them."""
    lines = []
    for pattern in patterns:
        found = sorted(glob.glob(pattern))
        lines += [f"{pattern}: not there"] if not found else [f"{path}: {_access(Path(path))}" for path in found[:8]]
    return lines


def lacks_torch(vendor: Vendor, device: str) -> str | None:
    """Why torch can't compute on a vendor's devices, None if it can.

    Args:
        vendor: whose.
        device: what its `torch_device()` said, which is what is computed on: asked again, it might say something else.
    """
    if device.split(":")[0] != "cpu" or vendor.runs_on_processor:
        return None
    return (
        "torch_device() says 'cpu', and the figure would be the processor's under the chip's name (a vendor whose "
        "device is the processor says runs_on_processor)"
    )


def memory_of(vendor: Vendor) -> tuple[int | None, int | None]:
    """What its `memory()` says. Where that fails nothing is known, and this process's output says why: no measurement
    or training is lost over a reading."""
    try:
        used, total = vendor.memory()
    except Exception as error:  # noqa: BLE001 (a vendor may raise anything)
        print(f"no reading of the device's memory: memory() failed: {named(error)}", file=sys.stderr, flush=True)
        return None, None
    return used, total


def _folder_of(vendor: Vendor) -> Path:
    """That of the package which has it as `vendor`: its class may lie deeper."""
    names = type(vendor).__module__.split(".")
    around = [sys.modules[".".join(names[:count])] for count in range(1, len(names) + 1)]
    package = next((each for each in around if getattr(each, "vendor", None) is vendor), around[-1])
    return Path(package.__file__ or "").parent


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
    """The compiler that `compiler: default` selects."""

    framework_precisions: frozenset[str] = frozenset({"fp32"})
    """Precisions at which the framework itself runs on `torch_device`. Asked for another with `compiler: null`, nothing
    is measured: UNSUPPORTED."""

    training_precisions: frozenset[str] = frozenset({"fp32"})
    """Precisions at which the vendor's devices train. Asked for another, nothing is trained: UNSUPPORTED."""

    visible_devices_variable: str | None = None
    """The environment variable that limits a process to some devices, such as CUDA_VISIBLE_DEVICES.

    Its name has VISIBLE, DEVICE, AFFINITY or MODULE in it: what it holds is given to all of a case's processes. That is
    each device by itself, by commas: a range, which some runtimes take, is refused.
    Where its user has not set it, a case gets one of `devices()`, and a training's ranks have all of them. Without one
    no case can be given any but the first, so that they run one after the other.
    """

    distributed_backend: str = GLOO
    """torch.distributed's back end for the vendor's devices; on a processor it is gloo."""

    training_scales: tuple[str, ...] = ("1x1",)
    """Scales, nodes x processes, at which every training case is offered; files under `configs/training` add others."""

    runs_on_processor: bool = False
    """Whether the devices are this machine's processor: then nothing is loaded or evaluated during a computation."""

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
        visible-devices variable and containers are reported for every vendor.
        """
        return []

    @abstractmethod
    def synchronize(self) -> None:
        """Return when all work given to the device is done. Called after each call of an engine, under the clock.

        An engine's is called in the engine's process.
        """

    def register_memory(self, address: int, size: int) -> None:  # noqa: B027 (most vendors need none)
        """Take note of host memory of `size` bytes in which batches come and answers go, so that the device copies it
        itself: page-locked, where it has to be for that. By default nothing is done.

        Called in an engine's process for each piece of it, large or small, when that is made and not under the clock
        but for an answer larger than all before. The memory stays as long as the process does, so nothing undoes this.

        Raises:
            StepError: the device can't, as its driver says.
        """

    def torch_device(self) -> str:
        """The torch device for framework validation and training.

        If it is the processor and `runs_on_processor` is not set, nothing is trained or ranked on it: that would be
        the processor's figure under the chip's name. The framework is validated there all the same.
        """
        return "cpu"

    def training_adapter(self) -> TrainingAdapter:
        """The vendor's way to train, where it differs."""
        return TrainingAdapter()

    @abstractmethod
    def chip(self) -> str:
        """The detected chip's name, as precise as can be read; `chips.yaml` is searched for it."""

    def chip_units(self) -> int:
        """The number of units by which a peak in `chips.yaml` is multiplied: cores of a CPU, otherwise 1."""
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
        """Re-read what the monitor wrote: memory, and the detected chip's peaks, fp32 (tf32 where it has one) and fp16.

        Args:
            path: a `monitor.jsonl` in a run's folder.

        Raises:
            UsageError: the file is missing, or it is not a log of Proofmark's monitor.
        """
        from proofmark.vendor.hardware.chips import find_chip, load_chips  # not there in a vendor's image
        from proofmark.vendor.monitor_log import memory_seen

        used, total = memory_seen(Path(path))
        entry = find_chip(self.chip(), load_chips(_folder_of(self) / "chips.yaml"))
        peaks = {name: peak.flops * self.chip_units() for name, peak in entry.peaks.items()} if entry else {}
        return Analysis(
            used / GIB if used is not None else None,
            total / GIB if total is not None else None,
            peaks.get("tf32") or peaks.get("fp32"),
            peaks.get("fp16"),
        )

    def memory(self) -> tuple[int | None, int | None]:
        """(peak bytes used by this process on the device, total bytes); None where not readable.

        Raises:
            Exception: anything; the process's output tells it, and nothing is known.
        """
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
