"""A vendor whose compilers misbehave, each in its own way."""

from __future__ import annotations

import os

from proofmark.vendor import Compiler, Device, StepError, TrainingAdapter, Vendor, driver_files

from . import monitors, training, trouble

_TAKES_MODEL = Compiler(frozenset({"fp32"}), consumes="model")


class Fake(Vendor):
    """Runs on the CPU."""

    compilers = {
        "honest": _TAKES_MODEL,
        "foo_time": _TAKES_MODEL,
        "declares": _TAKES_MODEL,
        "reuses": _TAKES_MODEL,
        "shapes": _TAKES_MODEL,
        "nan": _TAKES_MODEL,
        "random": _TAKES_MODEL,
        "short": _TAKES_MODEL,
        "slow": _TAKES_MODEL,
        "onnx": Compiler(frozenset({"fp32"}), consumes="onnx", loads_compiled=True),
    }
    default_compiler = "honest"
    runs_on_processor = True
    visible_devices_variable = "FAKE_VISIBLE_DEVICES"

    selected = "fake chip"

    def select(self, device: str) -> None:
        if device not in ("fake chip", "other chip"):
            raise StepError("expected 'fake chip' or 'other chip'")
        self.selected = device

    def devices(self) -> list[Device]:
        return [Device(index, self.chip()) for index in range(int(os.environ.get("FAKE_DEVICES", "1")))]

    def devices_sought(self) -> list[str]:
        return driver_files("/dev/fake*")

    def synchronize(self) -> None:
        """Its device is the processor."""

    def chip(self) -> str:
        return self.selected

    def chip_units(self) -> int:
        trouble.at("vendor", "units")  # asked in its introduction and nowhere else
        return 1

    def torch_device(self) -> str:
        return "cpu"

    def training_adapter(self) -> TrainingAdapter:
        return training.chosen()

    def monitor(self) -> monitors.Monitor | None:
        return monitors.chosen()


vendor = Fake()
