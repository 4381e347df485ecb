"""OpenVINO on the device that the vendor has chosen."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import openvino
import torch

from proofmark.vendor import EffectiveConfig, StepError

TYPES = {"fp32": "f32", "fp16": "f16", "bf16": "bf16"}
HINTS = ("LATENCY", "THROUGHPUT")
FIXED = "NPU"  # takes models of fixed shapes alone: its short batches are filled up


class InferModel:
    """A model compiled from ONNX, or loaded from a blob that an earlier run left or from an IR (.xml).

    Configuration keys of its own: `openvino_hint` (LATENCY: all cores work on the batch; THROUGHPUT: the batch is
    split over as many asynchronous requests as the device likes best), `openvino_streams`.
    LATENCY is the default: with one batch in flight it was mostly no slower in our measurements.
    """

    def __init__(self, config: EffectiveConfig, onnx_path: Path | None, model: torch.nn.Module | None) -> None:
        core = openvino.Core()
        device = config.host.device or "CPU"
        source = Path(config.exist_compiler_path) if config.exist_compiler_path else onnx_path
        try:
            if config.exist_compiler_path and source and source.suffix not in (".xml", ".onnx"):
                self.compiled = core.import_model(source.read_bytes(), device, _properties(config))
            else:
                network = core.read_model(source)
                if device.startswith(FIXED):
                    network.reshape({port: [config.batch_size, *port.partial_shape[1:]] for port in network.inputs})
                self.compiled = core.compile_model(network, device, _properties(config))
            if config.host.artifact_dir and not config.exist_compiler_path:
                (Path(config.host.artifact_dir) / "model.blob").write_bytes(self.compiled.export_model().getvalue())
        except (RuntimeError, OSError) as error:
            raise StepError(f"{source}: OpenVINO cannot load it on {device}: {_essence(error)}") from None
        taken = self.compiled.get_property("INFERENCE_PRECISION_HINT").to_string()
        if taken != TYPES[config.effective_precision]:
            raise StepError(f"{device} would run {taken} in place of {config.effective_precision}")
        self.rows = max(0, self.compiled.inputs[0].partial_shape[0].max_length)  # fixed: a batch is one request
        splits = not self.rows and _hint(config) == "THROUGHPUT"
        count = self.compiled.get_property("OPTIMAL_NUMBER_OF_INFER_REQUESTS") if splits else 1
        self.requests = [self.compiled.create_infer_request() for _ in range(count)]

    def __call__(self, inputs: list[torch.Tensor]) -> tuple[list[torch.Tensor], float]:
        asked = len(inputs[0])
        if asked < self.rows:
            inputs = [torch.cat([tensor, tensor[:1].expand(self.rows - asked, *tensor.shape[1:])]) for tensor in inputs]
        parts = zip(*(tensor.tensor_split(len(self.requests)) for tensor in inputs), strict=True)
        running = []
        for request, part in zip(self.requests, parts, strict=True):
            if len(part[0]):
                request.start_async([tensor.numpy() for tensor in part], share_inputs=True)
                running.append(request)
        for request in running:
            request.wait()
        answers = zip(*([tensor.data for tensor in request.output_tensors] for request in running), strict=True)
        return [torch.from_numpy(np.concatenate(rows)[:asked]) for rows in answers], 0.0


def _hint(config: EffectiveConfig) -> str:
    hint = config.get("openvino_hint", "LATENCY")
    if hint not in HINTS:
        raise StepError(f"openvino_hint is {hint!r}; expected {' or '.join(HINTS)}")
    return str(hint)


def _properties(config: EffectiveConfig) -> dict[str, Any]:
    if config.effective_precision not in TYPES:
        raise StepError(f"OpenVINO cannot be asked for {config.effective_precision}")
    properties = {"PERFORMANCE_HINT": _hint(config), "INFERENCE_PRECISION_HINT": TYPES[config.effective_precision]}
    streams = config.get("openvino_streams")
    if streams is not None:
        if type(streams) is not int or streams < 1:
            raise StepError(f"openvino_streams is {streams!r}; expected a whole number from 1")
        properties["NUM_STREAMS"] = str(streams)
    return properties


def _essence(error: Exception) -> str:
    """The last line of OpenVINO's message: those before name its own source files."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1] if lines else type(error).__name__
