"""CPUs, GPUs and NPUs that OpenVINO runs on."""

from __future__ import annotations

import sys
from pathlib import Path

from proofmark.vendor import Compiler, Device, Monitor, StepError, Vendor, driver_files, physical_cores, processor_name
from vendors.intel.monitor import PackageEnergy

# on import openvino sends a message and writes to ~/intel; without this package it keeps to a stub of its own
sys.modules.setdefault("openvino_telemetry", None)  # type: ignore[arg-type]

DRIVER_FILES = {"GPU": ("/dev/dri/renderD*",), "NPU": ("/dev/accel/accel*",)}
"""Of each kind of device, what the kernel offers it as."""


class Intel(Vendor):
    """One kind of device at a time: the CPU, unless --device says GPU, GPU.1, NPU, ..."""

    default_compiler = "openvino"
    framework_precisions = training_precisions = frozenset({"fp32", "bf16"})

    def __init__(self) -> None:
        self._take("CPU")

    def _take(self, kind: str) -> None:
        self.kind = kind
        self.runs_on_processor = kind == "CPU"
        here = {"bf16"} if kind == "CPU" and _computes_bf16() else {"fp16"} if kind != "CPU" else set()
        computes = frozenset(here if kind.startswith("NPU") else {"fp32"} | here)  # an NPU has no float32
        self.compilers = {"openvino": Compiler(computes, consumes="onnx", loads_compiled=True, package="openvino")}

    def select(self, device: str) -> None:
        """Any device of this machine. Meta devices such as AUTO are refused: nobody could say what was measured."""
        if device != "CPU":
            try:
                import openvino
            except ImportError as error:
                raise StepError(f"OpenVINO cannot be imported: {error}") from None
            here: list[str] = openvino.Core().available_devices
            if not any(_is_of(name, device) for name in here):
                what = f"no such device here; available: {', '.join(here) or 'none'}"
                raise StepError("; ".join([what, *driver_files(*DRIVER_FILES.get(device.split(".")[0], ()))]))
        self._take(device)

    def devices(self) -> list[Device]:
        """Those of the kind, numbered among all but the CPU: another one's number would be another's lock."""
        if self.kind == "CPU":
            return [Device(0, processor_name())]
        import openvino

        core = openvino.Core()
        names = [name for name in core.available_devices if name != "CPU"]
        own = [(index, name) for index, name in enumerate(names) if _is_of(name, self.kind)]
        return [Device(index, core.get_property(name, "FULL_DEVICE_NAME")) for index, name in own]

    def synchronize(self) -> None:
        """Nothing to wait for: a call returns when its answer is there."""

    def chip(self) -> str:
        devices = self.devices()
        return devices[0].name if devices else f"no OpenVINO device {self.kind}"

    def chip_units(self) -> int:
        return physical_cores() if self.kind == "CPU" else 1

    def monitor(self) -> Monitor | None:
        return PackageEnergy.found() if self.kind == "CPU" else None


def _is_of(name: str, kind: str) -> bool:
    return kind in (name, name.split(".")[0])


def _computes_bf16() -> bool:
    """By the instructions that OpenVINO itself looks for; without them it would emulate or fall back."""
    try:
        flags = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return False
    return "avx512_bf16" in flags or "amx_bf16" in flags


vendor = Intel()
