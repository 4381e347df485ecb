"""The CPU that everybody has: the reference vendor."""

from __future__ import annotations

import os
from pathlib import Path

from harness.vendor import Compiler, Device, Vendor


class Cpu(Vendor):
    """Runs in the memory that it computes in, so there is nothing to wait for."""

    compilers = {
        "onnxruntime": Compiler(frozenset({"fp32"}), consumes="onnx", loads_compiled=True, package="onnxruntime"),
        "inductor": Compiler(frozenset({"fp32", "bf16"}), consumes="model", package="torch"),
        "eager": Compiler(frozenset({"fp32", "bf16"}), consumes="model", package="torch"),
    }
    default_compiler = "onnxruntime"
    framework_precisions = frozenset({"fp32", "bf16"})

    def devices(self) -> list[Device]:
        return [Device(0, self.chip())]

    def synchronize(self) -> None:
        pass

    def chip(self) -> str:
        fields: dict[str, str] = {}
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            key, _, value = line.partition(":")
            fields.setdefault(key.strip(), value.strip())
        name = fields.get("model name", "unknown CPU")
        if "cpu family" in fields:
            name += f" (family {fields['cpu family']} model {fields['model']})"
        return name

    def chip_units(self) -> int:
        return len(os.sched_getaffinity(0))


vendor = Cpu()
