"""Short questions to the driver. None of them initialises CUDA."""

from __future__ import annotations

import atexit
import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import Any, TypeVar

import pynvml

from proofmark.vendor import Device, Software, StepError, driver_files

Answer = TypeVar("Answer")

AMPERE, SINCE_AMPERE = (8, 0), frozenset({"tf32", "bf16"})
"""A compute capability, and the precisions that it brought."""

PCI_VENDOR = "0x10de"
"""NVIDIA's number on a PCI bus."""


@contextmanager
def session() -> Iterator[dict[int, Any]]:
    """Handles of the GPUs that answer, by their numbers in the order of the bus; none without a driver."""
    try:
        _begin()
    except pynvml.NVMLError:
        yield {}
        return
    indices = range(pynvml.nvmlDeviceGetCount())
    yield {index: handle for index in indices if (handle := _told(_handle, index)) is not None}


@cache
def _begin() -> None:
    """Once for a process: where nobody else uses the driver it is loaded anew each time, which takes seconds a GPU.

    Raises:
        pynvml.NVMLError: there is no driver; it may be asked for again.
    """
    pynvml.nvmlInit()
    atexit.register(pynvml.nvmlShutdown)


def _handle(index: int) -> Any:
    """Of a GPU that answers: one that has fallen off the bus may have a handle.

    Raises:
        pynvml.NVMLError: it doesn't.
    """
    handle = pynvml.nvmlDeviceGetHandleByIndex(index)
    with suppress(pynvml.NVMLError_NotSupported):
        pynvml.nvmlDeviceGetUUID(handle)
    return handle


def _told(ask: Callable[[Any], Answer], of: Any) -> Answer | None:
    """One GPU's answer, None where it gives none: the others are asked all the same."""
    with suppress(pynvml.NVMLError):
        return ask(of)
    return None


def devices() -> list[Device]:
    """The GPUs that CUDA_VISIBLE_DEVICES leaves, all if it is not set; none where the driver can't say, and without
    those that don't answer."""
    try:
        with session() as handles:
            return [
                Device(index, name, _told(pynvml.nvmlDeviceGetUUID, handle))
                for index, handle in _visible(handles)
                if (name := _told(_name, handle)) is not None
            ]
    except pynvml.NVMLError:
        return []


def _visible(handles: Mapping[int, Any]) -> list[tuple[int, Any]]:
    """Those that CUDA shows, with their numbers: by number or by UUID, of which the beginning is enough. From a word on
    that names none it shows none.

    None that is divided by MIG: a slice is not the chip, and its figures are not the chip's. Of one that is named CUDA
    shows a slice, so from such a word on there is none either.
    """
    if (chosen := os.environ.get("CUDA_VISIBLE_DEVICES")) is None:
        return [(index, handle) for index, handle in handles.items() if not _is_divided(handle)]
    named = [(index, handle, str(pynvml.nvmlDeviceGetUUID(handle))) for index, handle in handles.items()]
    shown: list[tuple[int, Any]] = []
    for word in map(str.strip, chosen.split(",")):
        meant = [
            (index, handle)
            for index, handle, uuid in named
            if word == str(index) or (word.startswith("GPU-") and uuid.startswith(word))
        ]
        if not meant or any(_is_divided(handle) for _, handle in meant):
            break
        shown += meant
    return shown


def _is_divided(handle: Any) -> bool:
    with suppress(pynvml.NVMLError):
        current, _ = pynvml.nvmlDeviceGetMigMode(handle)
        return bool(current == pynvml.NVML_DEVICE_MIG_ENABLE)
    return False


def sought() -> list[str]:
    """What a GPU needs to be found, each in a line with what is there."""
    return [*driver_files("/dev/nvidiactl", "/dev/nvidia[0-9]*"), _library(), _bus(), *_silent(), *_slices()]


def _silent() -> list[str]:
    """Those that the driver counts and can't reach."""
    found = []
    with suppress(pynvml.NVMLError), session():
        for index in range(pynvml.nvmlDeviceGetCount()):
            try:
                _handle(index)
            except pynvml.NVMLError as error:
                found.append(f"GPU {index}: does not answer ({error}): nvidia-smi and dmesg (Xid) may tell why")
    return found


def _slices() -> list[str]:
    with suppress(pynvml.NVMLError), session() as handles:
        divided = [index for index, handle in handles.items() if _is_divided(handle)]
        return [
            f"GPU {n}: divided by MIG, so none of it is the chip; undo it by nvidia-smi -i {n} -mig 0" for n in divided
        ]
    return []


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
    """The CUDA runtime that torch computes with: its package, or what torch's own version says it was built for.

    There may be those of other compilers too.
    """
    with suppress(PackageNotFoundError):
        wanted = " ".join(requires("torch") or ()).lower()
        if "cuda-toolkit" in wanted:  # wants the runtime in its place since torch 2.11
            with suppress(PackageNotFoundError):
                wanted += " ".join(requires("cuda-toolkit") or ()).lower()
        for package in re.findall(r"nvidia-cuda-runtime(?:-cu\d+)?", wanted):
            with suppress(PackageNotFoundError):
                return f"CUDA {version(package)}"
        built = re.search(r"\+cu(\d+)(\d)$", version("torch"))
        return f"CUDA {built[1]}.{built[2]}" if built else None
    return None


def _of_all(ask: Callable[[Any], Any], handles: Mapping[int, Any]) -> list[str]:
    """The different answers of the GPUs; none of one that doesn't know the question."""
    answers = (_told(ask, handle) for handle in handles.values())
    known = (answer for answer in answers if answer is not None)
    # pynvml decodes all but the GSP's
    return list(dict.fromkeys(each.decode() if isinstance(each, bytes) else str(each) for each in known))


def capability() -> tuple[int, int] | None:
    """The compute capability of the first GPU that may be used, None if there is none to ask. No run uses others than
    its like."""
    try:
        with session() as handles:
            shown = _visible(handles)
            found = _told(pynvml.nvmlDeviceGetCudaComputeCapability, shown[0][1]) if shown else None
    except pynvml.NVMLError:
        return None
    return None if found is None else (found[0], found[1])


def is_before_ampere() -> bool:
    """Whether the first GPU that may be used is; none is where there is none to ask."""
    return (capability() or AMPERE) < AMPERE


def check_has(precision: str) -> None:
    """Hold a compiler to what the GPU computes in: on older ones it takes another precision, and says nothing.

    Raises:
        StepError: the GPU doesn't.
    """
    if precision in SINCE_AMPERE and is_before_ampere():
        raise StepError(f"this GPU has no {precision}, which came with compute capability {AMPERE[0]}.{AMPERE[1]}")


def processes(handle: Any) -> list[Any]:
    """Those that compute on a GPU, by their names with a number: of a driver that lacks the newest question, as some
    before 510 and stand-ins for one, pynvml's plain name raises what is no NVMLError.

    Raises:
        pynvml.NVMLError: the GPU doesn't tell.
    """
    try:
        return list(pynvml.nvmlDeviceGetComputeRunningProcesses_v3(handle))
    except pynvml.NVMLError_FunctionNotFound:
        return list(pynvml.nvmlDeviceGetComputeRunningProcesses_v2(handle))


def used_by(pid: int) -> int | None:
    """Bytes of device memory that a process holds; None where the driver doesn't tell, as in most containers."""
    try:
        with session() as handles:
            on = [_told(processes, handle) or [] for handle in handles.values()]
    except pynvml.NVMLError:
        return None
    held = [process.usedGpuMemory for processes in on for process in processes if process.pid == pid]
    known = [int(memory) for memory in held if memory is not None]
    return sum(known) if known else None


def _name(handle: Any) -> str:
    """The product's name, with its memory where the name leaves that open (A100 came with 40 and with 80 GB)."""
    name = str(pynvml.nvmlDeviceGetName(handle))
    if re.search(r"\d\s?GB\b", name):
        return name
    try:
        return f"{name} ({pynvml.nvmlDeviceGetMemoryInfo(handle).total / 2**30:.0f} GiB)"
    except pynvml.NVMLError_NotSupported:  # it has none of its own, as a GB10
        return name
