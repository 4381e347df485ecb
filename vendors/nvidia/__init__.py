"""GPUs that CUDA runs on."""

from __future__ import annotations

import os
import sys
from contextlib import suppress

from proofmark.vendor import Compiler, Device, Monitor, Software, StepError, Vendor
from vendors.nvidia import nvml
from vendors.nvidia.monitor import NvmlMonitor

BESIDE_TORCH = frozenset({"tensorrt", "onnxruntime"})
"""Modules that allocate device memory of which torch knows nothing: the driver alone has the figure of a process that
imported one."""

OUT_OF_MEMORY, REFUSALS = 2, frozenset({1, 304, 801})
"""By what codes CUDA says that memory of the host's can't be page-locked: for want of it; or however much is free
(invalid value, operating system, not supported), as in confidential computing and in sandboxes."""


class Nvidia(Vendor):
    """Devices are found through NVML, so that looking for them initialises no CUDA context."""

    distributed_backend = "nccl"
    training_scales = ("1x1", "1x8", "2x8")
    default_compiler = "tensorrt"
    visible_devices_variable = "CUDA_VISIBLE_DEVICES"
    container_options = ("--gpus", "all")

    def __init__(self) -> None:
        self._pageable = False
        # CUDA counts devices by speed unless told otherwise, NVML by bus: an index has to mean the same in both
        os.environ["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"
        floating = frozenset({"fp32", "fp16"} if nvml.is_before_ampere() else {"fp32", "fp16", *nvml.SINCE_AMPERE})
        self.framework_precisions = self.training_precisions = floating
        self.compilers = {
            "tensorrt": Compiler(floating | {"int8"}, consumes="onnx", loads_compiled=True, package="tensorrt"),
            "torchtrt": Compiler(floating, consumes="model", package="torch-tensorrt"),
            "inductor": Compiler(floating, consumes="model", package="torch"),
            "onnxruntime": Compiler(floating - {"bf16"}, consumes="onnx", package="onnxruntime-gpu"),
        }

    def devices(self) -> list[Device]:
        return nvml.devices()

    def devices_sought(self) -> list[str]:
        return nvml.sought()

    def software(self) -> Software:
        return nvml.software()

    def synchronize(self) -> None:
        import torch

        torch.cuda.synchronize()

    def register_memory(self, address: int, size: int) -> None:
        """Page-lock it. Copies from memory that isn't are as right, and slower: where CUDA locks none, an engine's
        output says so once."""
        import torch

        if self._pageable:
            return
        runtime = torch.cuda.cudart()  # type: ignore[no-untyped-call]
        if not int(error := runtime.cudaHostRegister(address, size, 0)):
            return
        reason = runtime.cudaGetErrorString(error)
        if int(error) not in REFUSALS:
            do = "; free memory of the host" if int(error) == OUT_OF_MEMORY else ""
            raise StepError(f"CUDA can't page-lock {size / 2**20:.4g} MiB for batches: {reason}{do}")
        self._pageable = True
        print(f"CUDA page-locks no memory here ({reason}): batches are copied slower", file=sys.stderr, flush=True)
        with suppress(RuntimeError):  # CUDA remembers what failed, and torch would blame the next kernel for it
            torch.ones(1, device="cuda")

    def torch_device(self) -> str:
        return "cuda"

    def chip(self) -> str:
        devices = self.devices()
        return devices[0].name if devices else "no CUDA device"

    def monitor(self) -> Monitor | None:
        return NvmlMonitor()

    def memory(self) -> tuple[int | None, int | None]:
        import torch

        if not torch.cuda.is_available():
            return None, None
        used, own, total = nvml.used_by(os.getpid()), torch.cuda.max_memory_reserved(), torch.cuda.mem_get_info()[1]
        if used is None and sys.modules.keys() & BESIDE_TORCH:
            return None, total
        return max(own, used or 0), total


vendor = Nvidia()
