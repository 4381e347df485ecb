"""TensorRT 10 and 11. Networks are strongly typed in both: the ONNX model's types decide, no builder flag does."""

from __future__ import annotations

from pathlib import Path

import onnx
import tensorrt as trt
import torch

from proofmark.vendor import EffectiveConfig, StepError
from vendors.nvidia import nvml
from vendors.nvidia.retype import TYPES, converted, has_quantization
from vendors.nvidia.staging import fill

PRECISIONS = ("fp32", "tf32", "fp16", "bf16", "int8")

DTYPES = {
    trt.DataType.FLOAT: torch.float32,
    trt.DataType.HALF: torch.float16,
    trt.DataType.BF16: torch.bfloat16,
    trt.DataType.INT64: torch.int64,
    trt.DataType.INT32: torch.int32,
    trt.DataType.INT8: torch.int8,
    trt.DataType.UINT8: torch.uint8,
    trt.DataType.BOOL: torch.bool,
}


class InferModel:
    """An engine with its buffers: allocated once for the largest batch, on one stream.

    Configuration key of its own: `cuda_graph` (false) records the launches of each batch size and replays them.
    """

    def __init__(self, config: EffectiveConfig, onnx_path: Path | None, model: torch.nn.Module | None) -> None:
        if config.effective_precision not in PRECISIONS:
            raise StepError(f"TensorRT cannot be asked for {config.effective_precision}")
        nvml.check_has(config.effective_precision)
        if not torch.cuda.is_available():
            raise StepError("torch finds no CUDA device: is this a CUDA build, and is a driver loaded?")
        self.logger = trt.Logger(trt.Logger.ERROR)
        self.engine = self._load(config, onnx_path)
        self.names = self._names(onnx_path, config.exist_compiler_path)
        self.inputs = [n for n in self.names if self.engine.get_tensor_mode(n) == trt.TensorIOMode.INPUT]
        self.outputs = [n for n in self.names if n not in self.inputs]
        self.largest = self._largest_batch()
        self.with_graph = bool(config.get("cuda_graph", False))
        self.stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        self.contexts: dict[int, trt.IExecutionContext] = {}
        self.graphs: dict[int, torch.cuda.CUDAGraph] = {}
        self.buffers: dict[str, torch.Tensor] = {}
        self.buffers = self._allocate(self._context(self.largest))

    def __call__(self, inputs: list[torch.Tensor]) -> tuple[list[torch.Tensor], float]:
        rows = len(inputs[0])
        if rows > self.largest:
            raise StepError(f"a batch of {rows} is more than the {self.largest} that the engine was built for")
        with torch.cuda.stream(self.stream):
            fill([self.buffers[name][:rows] for name in self.inputs], inputs)
            self._launch(rows)
            return [self.buffers[name][:rows].clone() for name in self.outputs], 0.0

    def _load(self, config: EffectiveConfig, onnx_path: Path | None) -> trt.ICudaEngine:
        if config.exist_compiler_path:
            source, plan = config.exist_compiler_path, Path(config.exist_compiler_path).read_bytes()
        elif onnx_path is not None:
            source, plan = str(onnx_path), build(config, onnx_path, self.logger)
        else:
            raise StepError("TensorRT needs an ONNX file or exist_compiler_path")
        engine = trt.Runtime(self.logger).deserialize_cuda_engine(plan)
        if engine is None:
            raise StepError(f"{source}: no engine for TensorRT {trt.__version__} on this device; build it again here")
        return engine

    def _names(self, onnx_path: Path | None, plan: str | None) -> list[str]:
        """Inputs and outputs in the order of the model's, which an engine need not have: a plan says it (`order_of`).

        Raises:
            StepError: it is another's, and there is a choice.
        """
        names = [self.engine.get_tensor_name(index) for index in range(self.engine.num_io_tensors)]
        if onnx_path is not None and not plan:
            return sorted(names, key=_names_in(onnx_path).index)
        order = self.engine.name.split(",")
        if sorted(order) == sorted(map(str, range(len(names)))):
            return [sorted(names)[int(place)] for place in order]
        if len(names) > 2:
            what = f"does not say in which order the model has {', '.join(sorted(names))}"
            raise StepError(f"{plan}: {what}: build it here, where --keep-artifacts leaves model.engine")
        return names

    def _largest_batch(self) -> int:
        name = self.inputs[0]
        fixed: int = self.engine.get_tensor_shape(name)[0]
        return fixed if fixed >= 0 else int(self.engine.get_tensor_profile_shape(name, 0)[2][0])

    def _context(self, rows: int) -> trt.IExecutionContext:
        """Each batch size has a context of its own: one that a graph was recorded from must not be changed."""
        if rows not in self.contexts:
            context = self.engine.create_execution_context()
            if context is None:
                raise StepError("TensorRT cannot create an execution context: is the device's memory full?")
            for name in self.inputs:
                shape = tuple(self.engine.get_tensor_shape(name))
                # an engine of a fixed batch works on all of its rows, whatever stands in the last of them
                if shape[0] < 0 and not context.set_input_shape(name, (rows, *shape[1:])):
                    raise StepError(f"TensorRT refuses {rows} rows of input {name}")
            for name, buffer in self.buffers.items():
                context.set_tensor_address(name, buffer.data_ptr())
            self.contexts[rows] = context
        return self.contexts[rows]

    def _allocate(self, context: trt.IExecutionContext) -> dict[str, torch.Tensor]:
        buffers = {}
        for name in self.names:
            shape, kind = tuple(context.get_tensor_shape(name)), self.engine.get_tensor_dtype(name)
            if kind not in DTYPES or any(size < 0 for size in shape):
                raise StepError(f"tensor {name} of the engine is {kind} {shape}; torch has no buffer for it")
            buffers[name] = torch.zeros(shape, dtype=DTYPES[kind], device="cuda")
            context.set_tensor_address(name, buffers[name].data_ptr())
        torch.cuda.synchronize()
        return buffers

    def _launch(self, rows: int) -> None:
        if rows in self.graphs:
            self.graphs[rows].replay()
            return
        self._enqueue(rows)
        if self.with_graph:  # recorded after a first launch, since TensorRT sets itself up in that one
            self.stream.synchronize()
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, stream=self.stream):
                self._enqueue(rows)
            self.graphs[rows] = graph

    def _enqueue(self, rows: int) -> None:
        if not self._context(rows).execute_async_v3(self.stream.cuda_stream):
            raise StepError("TensorRT could not launch the engine")


def build(config: EffectiveConfig, onnx_path: Path, logger: trt.ILogger) -> bytes:
    """Build an engine for 1 to batch_size rows and leave its plan in the artifact directory.

    Raises:
        StepError: TensorRT can't parse or build it, or int8 is asked of a model without Q/DQ nodes.
    """
    builder = trt.Builder(logger)
    network = builder.create_network(1 << int(trt.NetworkDefinitionCreationFlag.STRONGLY_TYPED))
    parser = trt.OnnxParser(network, logger)
    if not _parse(parser, onnx_path, config.effective_precision):
        reasons = "; ".join(parser.get_error(index).desc() for index in range(parser.num_errors))
        raise StepError(f"{onnx_path}: TensorRT {trt.__version__} cannot parse it: {reasons}")
    network.name = order_of(onnx_path)
    options = builder.create_builder_config()
    # on unless cleared; it rounds what float32 networks multiply
    (options.set_flag if config.effective_precision == "tf32" else options.clear_flag)(trt.BuilderFlag.TF32)
    profile = builder.create_optimization_profile()
    for index in range(network.num_inputs):
        tensor = network.get_input(index)
        shape = tuple(tensor.shape)
        if any(size < 0 for size in shape[1:]):
            raise StepError(f"{onnx_path}: input {tensor.name} has shape {shape}; only the batch may be dynamic")
        if shape[0] < 0:
            least, most = trt.Dims((1, *shape[1:])), trt.Dims((config.batch_size, *shape[1:]))
            profile.set_shape(tensor.name, min=least, opt=most, max=most)
    options.add_optimization_profile(profile)
    plan = builder.build_serialized_network(network, options)
    if plan is None:
        raise StepError(f"{onnx_path}: TensorRT {trt.__version__} cannot build an engine; its reason is in worker.log")
    if config.host.artifact_dir:
        (Path(config.host.artifact_dir) / "model.engine").write_bytes(plan)
    return bytes(plan)


def order_of(onnx_path: Path) -> str:
    """In which order a model has its inputs and outputs, each as its place among their sorted names: a network's name
    may have 128 characters."""
    names = _names_in(onnx_path)
    order = ",".join(str(sorted(names).index(name)) for name in names)
    return order if len(order) <= 128 else ""


def _names_in(onnx_path: Path) -> list[str]:
    """A model's inputs and outputs; older files count weights among the inputs."""
    graph = onnx.load(onnx_path, load_external_data=False).graph
    weights = {tensor.name for tensor in graph.initializer}
    return [value.name for value in (*graph.input, *graph.output) if value.name not in weights]


def _parse(parser: trt.OnnxParser, path: Path, precision: str) -> bool:
    if precision in TYPES:
        return parser.parse(converted(path, precision).SerializeToString())
    if precision == "int8" and not has_quantization(onnx.load(path, load_external_data=False)):
        raise StepError(f"{path}: int8 needs a model with QuantizeLinear and DequantizeLinear nodes; it has none")
    return parser.parse_from_file(str(path))
