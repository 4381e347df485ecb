"""ONNX Runtime's CUDA provider, inputs and outputs bound to device memory."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

import torch

from proofmark.vendor import EffectiveConfig, StepError
from vendors.nvidia import nvml
from vendors.nvidia.retype import converted

os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")  # read on import, which otherwise writes to ~/.cache/Microsoft
import onnxruntime

PROVIDER = "CUDAExecutionProvider"

DTYPES = {
    "tensor(float)": torch.float32,
    "tensor(float16)": torch.float16,
    "tensor(int64)": torch.int64,
    "tensor(int32)": torch.int32,
    "tensor(bool)": torch.bool,
}
NUMPY = {
    torch.float32: "float32",
    torch.float16: "float16",
    torch.int64: "int64",
    torch.int32: "int32",
    torch.bool: "bool",
}


class InferModel:
    """A session on torch's stream. That the provider fell back to the CPU is an error, not a slow result."""

    def __init__(self, config: EffectiveConfig, onnx_path: Path | None, model: torch.nn.Module | None) -> None:
        precision = config.effective_precision
        if precision not in ("fp32", "tf32", "fp16"):
            raise StepError(f"ONNX Runtime's CUDA provider cannot be asked for {precision}")
        nvml.check_has(precision)
        if onnx_path is None:
            raise StepError("ONNX Runtime needs an ONNX file")
        if PROVIDER not in onnxruntime.get_available_providers():
            raise StepError(f"this ONNX Runtime has no {PROVIDER}: install onnxruntime-gpu in place of onnxruntime")
        if not torch.cuda.is_available():
            raise StepError("torch finds no CUDA device: is this a CUDA build, and is a driver loaded?")
        self.stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        source = converted(onnx_path, precision).SerializeToString() if precision == "fp16" else str(onnx_path)
        settings = {"use_tf32": int(precision == "tf32"), "user_compute_stream": str(self.stream.cuda_stream)}
        with suppress(AttributeError):  # older ones have none, and find what torch has loaded
            onnxruntime.preload_dlls()
        try:
            self.session = onnxruntime.InferenceSession(source, providers=[(PROVIDER, settings)])
        except Exception as error:  # noqa: BLE001 (it has many types, none of them public)
            raise StepError(f"{onnx_path}: ONNX Runtime cannot load it: {str(error).splitlines()[0]}") from None
        if self.session.get_providers()[0] != PROVIDER:
            what = f"{PROVIDER} is installed but could not be started; its reason is in worker.log"
            raise StepError(f"{what}. Torch is built for CUDA {torch.version.cuda}: is this ONNX Runtime too?")
        self.inputs, self.outputs = self.session.get_inputs(), self.session.get_outputs()
        for node in [*self.inputs, *self.outputs]:
            if node.type not in DTYPES or not all(isinstance(size, int) for size in node.shape[1:]):
                raise StepError(f"{onnx_path}: {node.name} is {node.type} {node.shape}; only the batch may be dynamic")

    @torch.inference_mode()
    def __call__(self, inputs: list[torch.Tensor]) -> tuple[list[torch.Tensor], float]:
        with torch.cuda.stream(self.stream):
            moved = [  # converted there: on the host torch would do it by all of its cores
                tensor.to("cuda", non_blocking=True).to(DTYPES[node.type])
                for node, tensor in zip(self.inputs, inputs, strict=True)
            ]
            shapes = [(len(inputs[0]), *node.shape[1:]) for node in self.outputs]
            answers = [
                torch.empty(shape, dtype=DTYPES[node.type], device="cuda")
                for node, shape in zip(self.outputs, shapes, strict=True)
            ]
            binding = self.session.io_binding()
            for bind, nodes, tensors in (
                (binding.bind_input, self.inputs, moved),
                (binding.bind_output, self.outputs, answers),
            ):
                for node, tensor in zip(nodes, tensors, strict=True):
                    bind(node.name, "cuda", 0, NUMPY[tensor.dtype], tuple(tensor.shape), tensor.data_ptr())
            self.session.run_with_iobinding(binding)
        return answers, 0.0
