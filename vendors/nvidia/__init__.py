"""GPUs that CUDA runs on."""

from __future__ import annotations

import os
import sys

from proofmark.vendor import Compiler, Device, Monitor, Software, StepError, Vendor
from vendors.nvidia import nvml
from vendors.nvidia.monitor import NvmlMonitor

AMPERE = (8, 0)
"""The compute capability that brought tf32 and bf16."""


BESIDE_TORCH = frozenset({"tensorrt", "onnxruntime"})
"""Modules that allocate device memory of which torch knows nothing: the driver alone has the figure of a process that
imported one."""


class Nvidia(Vendor):
    """Devices are found through NVML, so that looking for them initialises no CUDA context."""

    distributed_backend = "nccl"
    training_scales = ("1x1", "1x8", "2x8")
    default_compiler = "tensorrt"
    visible_devices_variable = "CUDA_VISIBLE_DEVICES"
    container_options = ("--gpus", "all")

    def __init__(self) -> None:
        # CUDA counts devices by speed unless told otherwise, NVML by bus: an index has to mean the same in both
        os.environ["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"
        floating = frozenset({"fp32", "fp16"})
        if (nvml.capability() or AMPERE) >= AMPERE:
            floating |= {"tf32", "bf16"}
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
        import torch

        runtime = torch.cuda.cudart()  # type: ignore[no-untyped-call]
        if int(error := runtime.cudaHostRegister(address, size, 0)):
            reason = runtime.cudaGetErrorString(error)
            raise StepError(
                f"CUDA can't page-lock {size / 2**20:.4g} MiB for batches: {reason}; free memory of the host"
            )

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
