"""Short questions to the driver, each in an NVML session of its own. None of them initialises CUDA."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib.metadata import PackageNotFoundError, distributions, version
from pathlib import Path
from typing import Any

import pynvml

from proofmark.vendor import Device, Software, driver_files

PCI_VENDOR = "0x10de"
"""NVIDIA's number on a PCI bus."""


@contextmanager
def session() -> Iterator[list[Any]]:
    """Handles of all GPUs in the order of the bus; none without a driver."""
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        yield []
        return
    try:
        yield [pynvml.nvmlDeviceGetHandleByIndex(index) for index in range(pynvml.nvmlDeviceGetCount())]
    finally:
        pynvml.nvmlShutdown()


def devices() -> list[Device]:
    """The GPUs that CUDA_VISIBLE_DEVICES leaves, all if it is not set; none where the driver can't say."""
    try:
        with session() as handles:
            found = [(index, _name(handle), pynvml.nvmlDeviceGetUUID(handle)) for index, handle in enumerate(handles)]
    except pynvml.NVMLError:
        return []
    chosen = os.environ.get("CUDA_VISIBLE_DEVICES")
    if chosen is None:
        return [Device(index, name) for index, name, _ in found]
    wanted = [word.strip() for word in chosen.split(",")]
    visible = [(word, device) for word in wanted if word for device in found if word in (str(device[0]), device[2])]
    return [Device(device[0], device[1]) for _, device in visible]


def sought() -> list[str]:
    """What a GPU needs to be found, each in a line with what is there."""
    return [*driver_files("/dev/nvidiactl", "/dev/nvidia[0-9]*"), _library(), _bus()]


def _library() -> str:
    name = "the driver's library libnvidia-ml.so.1 (NVML)"
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        return f"{name}: {error}"
    try:
        return f"{name}: driver {pynvml.nvmlSystemGetDriverVersion()}, {pynvml.nvmlDeviceGetCount()} GPUs"
    except pynvml.NVMLError as error:
        return f"{name}: found, but the driver does not answer: {error}"
    finally:
        pynvml.nvmlShutdown()


def _bus() -> str:
    makers = Path("/sys/bus/pci/devices").glob("*/vendor")
    count = 0
    for maker in makers:
        with suppress(OSError):
            count += maker.read_text(encoding="ascii").strip() == PCI_VENDOR
    return f"PCI devices of maker {PCI_VENDOR}: {count or 'none'}"


def software() -> Software:
    """The driver's version, the CUDA runtime's, and what is in the GPUs: their VBIOS, and the GSP's firmware."""
    try:
        with session() as handles:
            if not handles:
                return Software(runtime=cuda_runtime(), reason="no driver answers")
            firmware = [f"VBIOS {name}" for name in _of_all(pynvml.nvmlDeviceGetVbiosVersion, handles)]
            firmware += [f"GSP {name}" for name in _of_all(pynvml.nvmlDeviceGetGspFirmwareVersion, handles)]
            driver = str(pynvml.nvmlSystemGetDriverVersion())
    except pynvml.NVMLError as error:
        return Software(runtime=cuda_runtime(), reason=f"the driver does not tell: {error}")
    return Software(driver, cuda_runtime(), ", ".join(firmware) or None, "the driver or torch does not tell")


def cuda_runtime() -> str | None:
    """The CUDA runtime that torch computes with: its package, or what torch's own version says it was built for."""
    for distribution in distributions():
        name = (distribution.name or "").lower()
        if name == "nvidia-cuda-runtime" or name.startswith("nvidia-cuda-runtime-cu"):
            return f"CUDA {distribution.version}"
    with suppress(PackageNotFoundError):
        built = re.search(r"\+cu(\d+)(\d)$", version("torch"))
        return f"CUDA {built[1]}.{built[2]}" if built else None
    return None


def _of_all(ask: Callable[[Any], Any], handles: list[Any]) -> list[str]:
    """The different answers of the GPUs; none of one that doesn't know the question."""
    answers = []
    for handle in handles:
        with suppress(pynvml.NVMLError):
            answers.append(str(ask(handle)))
    return list(dict.fromkeys(answers))


def capability() -> tuple[int, int] | None:
    """The lowest compute capability of this machine's GPUs, None if there is none to ask."""
    try:
        with session() as handles:
            return min((tuple(pynvml.nvmlDeviceGetCudaComputeCapability(h)) for h in handles), default=None)
    except pynvml.NVMLError:
        return None


def used_by(pid: int) -> int | None:
    """Bytes of device memory that a process holds; None where the driver doesn't tell, as in most containers."""
    try:
        with session() as handles:
            held = [p for h in handles for p in pynvml.nvmlDeviceGetComputeRunningProcesses(h) if p.pid == pid]
    except pynvml.NVMLError:
        return None
    known = [int(process.usedGpuMemory) for process in held if process.usedGpuMemory is not None]
    return sum(known) if known else None


def _name(handle: Any) -> str:
    """The product's name, with its memory where the name leaves that open (A100 came with 40 and with 80 GB)."""
    name = str(pynvml.nvmlDeviceGetName(handle))
    if re.search(r"\d\s?GB\b", name):
        return name
    return f"{name} ({pynvml.nvmlDeviceGetMemoryInfo(handle).total / 2**30:.0f} GiB)"
