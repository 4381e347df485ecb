"""The CPU that everybody has: the reference vendor."""

from __future__ import annotations

from proofmark.vendor import Compiler, Device, Vendor, physical_cores, processor_name


class Cpu(Vendor):
    """Runs in the memory that it computes in, so there is nothing to wait for."""

    compilers = {
        "onnxruntime": Compiler(frozenset({"fp32"}), consumes="onnx", loads_compiled=True, package="onnxruntime"),
        "inductor": Compiler(frozenset({"fp32", "bf16"}), consumes="model", package="torch"),
        "eager": Compiler(frozenset({"fp32", "bf16"}), consumes="model", package="torch"),
    }
    training_scales = ("1x1", "1x2")
    default_compiler = "onnxruntime"
    runs_on_processor = True
    framework_precisions = frozenset({"fp32", "bf16"})
    training_precisions = frozenset({"fp32", "fp16", "bf16"})

    def devices(self) -> list[Device]:
        return [Device(0, self.chip())]

    def synchronize(self) -> None:
        pass

    def chip(self) -> str:
        return processor_name()

    def chip_units(self) -> int:
        return physical_cores()


vendor = Cpu()
