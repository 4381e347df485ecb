"""CPUs, GPUs and NPUs that OpenVINO runs on."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from harness.vendor import Compiler, Device, Monitor, Vendor, processor_name, usable_cores
from vendors.intel.monitor import PackageEnergy

# on import openvino sends a message and writes to ~/intel; without this package it keeps to a stub of its own
sys.modules.setdefault("openvino_telemetry", None)  # type: ignore[arg-type]


class Intel(Vendor):
    """One kind of device at a time: the CPU, unless the environment's OPENVINO_DEVICE says GPU, GPU.1, NPU, ...

    The kind is the machine's matter, not the task's, and the chip is described where no configuration is: hence
    a variable. The configuration `openvino_device` may repeat it, not contradict it.
    """

    default_compiler = "openvino"
    framework_precisions = frozenset({"fp32", "bf16"})

    def __init__(self) -> None:
        lower = ({"bf16"} if _computes_bf16() else set()) if self.kind() == "CPU" else {"fp16"}
        self.compilers = {
            "openvino": Compiler(frozenset({"fp32"} | lower), consumes="onnx", loads_compiled=True, package="openvino")
        }

    @staticmethod
    def kind() -> str:
        """OpenVINO's name of the device in use."""
        return os.environ.get("OPENVINO_DEVICE") or "CPU"

    def devices(self) -> list[Device]:
        if self.kind() == "CPU":
            return [Device(0, processor_name())]
        try:
            import openvino

            core = openvino.Core()
            names = [name for name in core.available_devices if self.kind() in (name, name.split(".")[0])]
            return [Device(index, core.get_property(name, "FULL_DEVICE_NAME")) for index, name in enumerate(names)]
        except (ImportError, RuntimeError):  # a plugin without its driver: then the kind is not there
            return []

    def synchronize(self) -> None:
        """Nothing to wait for: a call returns when its answer is there."""

    def chip(self) -> str:
        devices = self.devices()
        return devices[0].name if devices else f"no OpenVINO device {self.kind()}"

    def chip_units(self) -> int:
        return usable_cores() if self.kind() == "CPU" else 1

    def monitor(self) -> Monitor | None:
        return PackageEnergy.found() if self.kind() == "CPU" else None


def _computes_bf16() -> bool:
    """By the instructions that OpenVINO itself looks for; without them it would emulate or fall back."""
    try:
        flags = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return False
    return "avx512_bf16" in flags or "amx_bf16" in flags


vendor = Intel()
