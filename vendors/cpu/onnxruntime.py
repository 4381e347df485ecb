"""ONNX Runtime's CPU provider."""

from __future__ import annotations

import os
from pathlib import Path

import torch

from proofmark.vendor import EffectiveConfig, StepError

os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")  # read on import, which otherwise writes to ~/.cache/Microsoft
import onnxruntime


class InferModel:
    """A session over the ONNX file, or over an optimised model that an earlier run saved."""

    def __init__(self, config: EffectiveConfig, onnx_path: Path | None, model: torch.nn.Module | None) -> None:
        if config.effective_precision != "fp32":
            raise StepError(f"this compiler cannot run {config.effective_precision} on a CPU")
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        threads = os.environ.get("OMP_NUM_THREADS", "")  # its own pool does not look
        options.intra_op_num_threads = int(threads) if threads.isdecimal() else 0
        source = Path(config.exist_compiler_path) if config.exist_compiler_path else onnx_path
        if config.exist_compiler_path:
            options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        elif config.host.artifact_dir:
            options.optimized_model_filepath = str(Path(config.host.artifact_dir) / "model.optimized.onnx")
        try:
            self.session = onnxruntime.InferenceSession(str(source), options, providers=["CPUExecutionProvider"])
        except Exception as error:  # noqa: BLE001 (it has many types, none of them public)
            raise StepError(f"{source}: ONNX Runtime cannot load it: {str(error).splitlines()[0]}") from None
        self.names = [node.name for node in self.session.get_inputs()]

    def __call__(self, inputs: list[torch.Tensor]) -> tuple[list[torch.Tensor], float]:
        feed = {name: tensor.numpy() for name, tensor in zip(self.names, inputs, strict=True)}
        return [torch.from_numpy(output) for output in self.session.run(None, feed)], 0.0
