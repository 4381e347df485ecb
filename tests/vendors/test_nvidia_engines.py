"""inductor, torchtrt and onnxruntime of vendor nvidia over a played CUDA: what they ask of torch and of the runtime."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
import torch

from proofmark.vendor import StepError
from tests.vendors.conftest import WEIGHT, config_of
from tests.vendors.played_tensorrt import Played, play_cuda
from vendors.nvidia import inductor, nvml, torchtrt
from vendors.nvidia import onnxruntime as provider


class Tiny(torch.nn.Linear):
    """A model whose device is played, too."""

    def __init__(self) -> None:
        super().__init__(4, 3, bias=False)
        self.weight = torch.nn.Parameter(torch.from_numpy(WEIGHT.T.copy()))

    def to(self, device: Any, dtype: torch.dtype) -> Tiny:  # type: ignore[override]
        assert device == "cuda"
        return super().to(dtype)  # type: ignore[return-value]


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What torch.compile was asked; it returns a model that answers in the same memory at every call."""
    asked: list[dict[str, Any]] = []

    def play_compile(model: torch.nn.Module, **options: Any) -> Callable[..., torch.Tensor]:
        asked.append(options)
        static = torch.full((8, 3), 0.0)

        def call(x: torch.Tensor) -> torch.Tensor:
            static[: len(x)] = model(x).float()
            return static[: len(x)]

        return call

    play_cuda(Played(), monkeypatch)
    monkeypatch.setattr(torch, "compile", play_compile)
    monkeypatch.setitem(sys.modules, "torch_tensorrt", ModuleType("torch_tensorrt"))
    precision, tf32 = torch.get_float32_matmul_precision(), torch.backends.cudnn.allow_tf32
    yield asked  # type: ignore[misc]
    torch.set_float32_matmul_precision(precision)
    torch.backends.cudnn.allow_tf32 = tf32


@pytest.mark.parametrize("compiler", [inductor, torchtrt])
def test_answers_outlive_the_next_call_and_the_model_is_left_alone(
    compiled: list[dict[str, Any]], compiler: ModuleType
) -> None:
    model = Tiny()
    engine = compiler.InferModel(config_of(precision="bf16"), None, model)
    assert model.weight.dtype == torch.float32
    batches = [torch.randn(rows, 4) for rows in (8, 8, 3)]
    answers = [engine([batch])[0][0] for batch in batches]
    for batch, answer in zip(batches, answers, strict=True):
        assert torch.allclose(answer, batch @ torch.from_numpy(WEIGHT), atol=0.1)
    assert len({answer.data_ptr() for answer in answers}) == 3


def test_inductor_takes_a_mode_and_float32_means_float32(compiled: list[dict[str, Any]]) -> None:
    inductor.InferModel(config_of(), None, Tiny())
    assert compiled[-1] == {"mode": "max-autotune", "dynamic": False}
    assert torch.get_float32_matmul_precision() == "highest" and not torch.backends.cudnn.allow_tf32
    inductor.InferModel(config_of(precision="tf32", inductor_mode="reduce-overhead"), None, Tiny())
    assert compiled[-1] == {"mode": "reduce-overhead", "dynamic": False}
    assert torch.get_float32_matmul_precision() == "high" and torch.backends.cudnn.allow_tf32
    with pytest.raises(StepError, match="inductor_mode is 'fast'; expected one of default, "):
        inductor.InferModel(config_of(inductor_mode="fast"), None, Tiny())
    with pytest.raises(StepError, match="cannot run int8: it knows fp32, tf32, fp16, bf16"):
        inductor.InferModel(config_of(precision="int8"), None, Tiny())
    with pytest.raises(StepError, match="needs the framework's model"):
        inductor.InferModel(config_of(), None, None)


def test_torchtrt_keeps_types_and_falls_back_on_nothing(
    compiled: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    torchtrt.InferModel(config_of(), None, Tiny())
    options = compiled[-1]["options"]
    assert compiled[-1]["backend"] == "tensorrt"
    assert options["use_explicit_typing"] and options["disable_tf32"] and options["pass_through_build_failures"]
    monkeypatch.setitem(sys.modules, "torch_tensorrt", None)
    with pytest.raises(StepError, match="torch_tensorrt cannot be imported"):
        torchtrt.InferModel(config_of(), None, Tiny())


@pytest.mark.parametrize("precision", ["tf32", "bf16"])
@pytest.mark.parametrize("compiler", [inductor, torchtrt])
def test_what_came_with_newer_gpus_is_refused_on_older_ones(
    compiled: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch, compiler: ModuleType, precision: str
) -> None:
    """There torch takes float32 for tf32 and emulates bf16: it would run, and not be what was asked for."""
    monkeypatch.setattr(nvml, "capability", lambda: (7, 5))
    with pytest.raises(StepError, match=f"this GPU has no {precision}, which came with compute capability 8.0"):
        compiler.InferModel(config_of(precision=precision), None, Tiny())
    assert not compiled
    compiler.InferModel(config_of(precision="fp16"), None, Tiny())


class Session:
    """ONNX Runtime's CUDA session, played: it multiplies where the bound addresses say."""

    active = (provider.PROVIDER, "CPUExecutionProvider")
    asked: list[Any]

    def __init__(self, source: str | bytes, providers: list[Any]) -> None:
        Session.asked = [source, providers]
        self.bound: dict[str, np.ndarray] = {}

    def get_providers(self) -> tuple[str, ...]:
        return self.active

    def get_inputs(self) -> list[Any]:
        return [SimpleNamespace(name="x", type="tensor(float)", shape=["batch", 4])]

    def get_outputs(self) -> list[Any]:
        return [SimpleNamespace(name="y", type="tensor(float)", shape=["batch", 3])]

    def io_binding(self) -> Any:
        def bind(name: str, device: str, index: int, kind: str, shape: tuple[int, ...], address: int) -> None:
            assert (device, index, kind) == ("cuda", 0, "float32")
            floats = (ctypes.c_float * int(np.prod(shape))).from_address(address)
            self.bound[name] = np.ctypeslib.as_array(floats).reshape(shape)

        return SimpleNamespace(bind_input=bind, bind_output=bind)

    def run_with_iobinding(self, binding: Any) -> None:
        self.bound["y"][:] = self.bound["x"] @ WEIGHT


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch) -> type[Session]:
    play_cuda(Played(), monkeypatch)
    monkeypatch.setattr(onnxruntime, "get_available_providers", lambda: [provider.PROVIDER])
    monkeypatch.setattr(onnxruntime, "InferenceSession", Session)
    return Session


def test_onnxruntime_binds_device_memory_on_its_stream(session: type[Session], onnx_path: Path) -> None:
    engine = provider.InferModel(config_of(), onnx_path, None)
    assert session.asked == [str(onnx_path), [(provider.PROVIDER, {"use_tf32": 0, "user_compute_stream": "77"})]]
    batches = [torch.randn(rows, 4) for rows in (8, 8, 3)]
    answers = [engine([batch])[0][0] for batch in batches]
    for batch, answer in zip(batches, answers, strict=True):
        assert torch.allclose(answer, batch @ torch.from_numpy(WEIGHT), atol=1e-5)
    assert len({answer.data_ptr() for answer in answers}) == 3


def test_onnxruntime_gets_the_types_that_are_asked_for(session: type[Session], onnx_path: Path) -> None:
    provider.InferModel(config_of(precision="tf32"), onnx_path, None)
    assert session.asked[1][0][1]["use_tf32"] == 1
    provider.InferModel(config_of(precision="fp16"), onnx_path, None)
    kinds = {tensor.data_type for tensor in onnx.load_from_string(session.asked[0]).graph.initializer}
    assert kinds == {onnx.TensorProto.FLOAT16}
    with pytest.raises(StepError, match="cannot be asked for bf16"):
        provider.InferModel(config_of(precision="bf16"), onnx_path, None)


def test_onnxruntime_is_asked_for_no_tf32_on_gpus_without(
    session: type[Session], onnx_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nvml, "capability", lambda: (7, 0))
    with pytest.raises(StepError, match="this GPU has no tf32"):
        provider.InferModel(config_of(precision="tf32"), onnx_path, None)
    provider.InferModel(config_of(precision="fp16"), onnx_path, None)


def test_onnxruntime_gets_the_types_that_the_model_has(
    session: type[Session], onnx_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A user's file may have others than the framework's; they are converted on the device."""
    bound: list[tuple[str, str]] = []
    nodes = [SimpleNamespace(name=name, type=f"tensor({name})", shape=["batch", 4]) for name in ("float16", "bool")]

    def bind(name: str, device: str, index: int, kind: str, *where: Any) -> None:
        bound.append((name, kind))

    binding = SimpleNamespace(bind_input=bind, bind_output=lambda *given: None)
    monkeypatch.setattr(Session, "get_inputs", lambda self: nodes)
    monkeypatch.setattr(Session, "io_binding", lambda self: binding)
    monkeypatch.setattr(Session, "run_with_iobinding", lambda self, binding: None)
    provider.InferModel(config_of(), onnx_path, None)([torch.rand(2, 4), torch.ones(2, 4, dtype=torch.int64)])
    assert bound == [("float16", "float16"), ("bool", "bool")]


def test_onnxruntime_that_fell_back_to_the_cpu_is_refused(
    session: type[Session], onnx_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Session, "active", ("CPUExecutionProvider",))
    with pytest.raises(StepError, match="CUDAExecutionProvider is installed but could not be started"):
        provider.InferModel(config_of(), onnx_path, None)
