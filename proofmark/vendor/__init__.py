"""The vendor-facing contract. A vendor's package imports this package and nothing else of the referee.

A vendor is a package `vendors/<name>` or an installed package behind the entry point
`proofmark.vendors: <name>`, with an attribute `vendor`: an instance of a subclass of `Vendor`.
Each compiler is one module of that package, named as the compiler and holding a class `InferModel`.
"""

from proofmark.errors import StepError
from proofmark.rules.config import EffectiveConfig
from proofmark.vendor.adapter import TrainedCase, TrainingAdapter
from proofmark.vendor.contract import Analysis, Device, Software, Vendor, driver_files
from proofmark.vendor.engine import Compiler, InferFromModel, InferFromOnnx, InferModel
from proofmark.vendor.hardware.packages import ProcessorPackages
from proofmark.vendor.hardware.processor import physical_cores, processor_name
from proofmark.vendor.readings import Monitor, Reading

__all__ = [
    "Analysis",
    "Compiler",
    "Device",
    "EffectiveConfig",
    "InferFromModel",
    "InferFromOnnx",
    "InferModel",
    "Monitor",
    "ProcessorPackages",
    "Reading",
    "Software",
    "StepError",
    "TrainedCase",
    "TrainingAdapter",
    "Vendor",
    "driver_files",
    "physical_cores",
    "processor_name",
]
