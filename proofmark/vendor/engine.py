"""What a vendor's compiler module takes and makes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol

from proofmark.rules.config import EffectiveConfig

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class Compiler:
    """What a compiler module takes and can do.

    Attributes:
        precisions: those it declares support for. Any other is UNSUPPORTED, strictly: the run
            tries all the same, and an undeclared precision that works is an error.
        consumes: 'onnx' if it compiles the ONNX file, 'model' if it compiles the torch module.
        loads_compiled: whether it can start from `exist_compiler_path`.
        package: whose version the record names: a distribution, or what is imported.
    """

    precisions: frozenset[str]
    consumes: Literal["onnx", "model"]
    loads_compiled: bool = False
    package: str | None = None


class InferModel(Protocol):
    """A compiled model: one class of this name per compiler module, with the `__init__` for what that consumes."""

    def __call__(self, inputs: list[torch.Tensor]) -> tuple[list[torch.Tensor], float]:
        """Run one batch: CPU tensors in, (outputs, foo_time) out.

        It runs in a process of its own, which the referee asks over shared memory: there the inputs lie, the same pages
        again and again (a vendor may register them with its device's driver), and there the outputs are copied.

        The answer is a `tuple` of a `list` of `torch.Tensor`s and a `float`, exactly these types: a subclass, or a
        tensor with a method of its own, ends the run. Outputs are on the device or on the host, one row per sample;
        they may lie in the same memory at every call. They are copied before the clock is stopped: the way back from
        the device is part of `core`, as the way there is. `foo_time` is the part of the call, in seconds, that is not
        inference; it must be 0.0 in timed rounds.

        All places of a row are held against the framework's answer, those that the inputs pad too: an engine that
        leaves padding out is held to what the model answers there all the same. A mask may have holes: some inputs are
        cut from two rows.

        A class whose calls need such time says why, in a line of text that is its attribute `foo_time_reason`. Its
        figures are then shown with that time and without it, and the run is INSUFFICIENT: it has no rank. A class that
        reports such time and does not say why is dishonest.
        """


class InferFromModel(InferModel, Protocol):
    """An `InferModel` whose compiler consumes 'model': there always is one."""

    def __init__(self, config: EffectiveConfig, onnx_path: Path | None, model: torch.nn.Module) -> None:
        """Compile, or load `config.exist_compiler_path`. Untimed.

        Args:
            config: the frozen configuration.
            onnx_path: None.
            model: a copy of the framework's model in float32 on the CPU, the engine's own to change. In an image of the
                vendor's a program, as torch exports it at the tested precision, on `torch_device()`.
        """


class InferFromOnnx(InferModel, Protocol):
    """An `InferModel` whose compiler consumes 'onnx'."""

    def __init__(self, config: EffectiveConfig, onnx_path: Path | None, model: torch.nn.Module | None) -> None:
        """Compile, or load `config.exist_compiler_path`. Untimed.

        Args:
            config: the frozen configuration.
            onnx_path: the exported or given ONNX file; None where `config.exist_compiler_path` makes it unnecessary.
            model: a copy of the framework's model in float32 on the CPU; None with `no_validation`, and in an image of
                the vendor's.
        """
