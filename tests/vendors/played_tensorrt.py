"""A TensorRT and a CUDA that are played on the host: a launch reads and writes the memory whose addresses it was given.

The played engine doubles its input, less a second one if there is one. What it is asked is checked as TensorRT checks
it, and noted in `Played.calls`.
"""

from __future__ import annotations

import ctypes
import json
from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum, IntEnum
from types import ModuleType
from typing import Any

import numpy as np
import onnx
import pytest
import torch

ROW = 4
DataType = Enum("DataType", "FLOAT HALF BF16 INT64 INT32 INT8 UINT8 BOOL FP8")


class Played:
    """What happened, and what is to go wrong."""

    def __init__(self) -> None:
        self.calls: list[Any] = []
        self.recording: list[Any] | None = None
        self.fixed_batch: int | None = None
        self.inputs = "x"
        self.wrong: set[str] = set()
        self.refused: set[str] = set()


class _Context:
    def __init__(self, played: Played, engine: _Engine) -> None:
        self.played, self.engine, self.recorded = played, engine, False
        self.rows = played.fixed_batch or 0
        self.address: dict[str, int] = {}

    def set_input_shape(self, name: str, shape: tuple[int, ...]) -> bool:
        assert not self.recorded, "a context that a graph was recorded from was changed"
        assert name in self.played.inputs and shape[1:] == (ROW,) and 1 <= shape[0] <= self.engine.largest
        self.rows = shape[0]
        return True

    def set_tensor_address(self, name: str, address: int) -> bool:
        self.address[name] = address
        return True

    def get_tensor_shape(self, name: str) -> tuple[int, ...]:
        return (self.rows, ROW)

    def execute_async_v3(self, stream: int) -> bool:
        assert stream == 77 and set(self.address) == {*self.played.inputs, "y"} and self.rows > 0
        if self.played.recording is not None:
            self.recorded = True
            self.played.recording.append(self.run)
            return True
        self.played.calls.append(("launch", self.rows))
        self.run()
        return "launch" not in self.played.wrong

    def run(self) -> None:
        count = self.rows * ROW
        held = {
            name: np.ctypeslib.as_array((ctypes.c_float * count).from_address(address))
            for name, address in self.address.items()
        }
        held["y"][:] = 2 * held["x"] - held.get("b", 0)


class _Engine:
    def __init__(self, played: Played, plan: dict[str, Any]) -> None:
        self.played, self.largest, self.name = played, plan["largest"], plan["name"]
        self.num_io_tensors = len(played.inputs) + 1

    def get_tensor_name(self, index: int) -> str:
        names = self.played.inputs + "y"
        return names[::-1][index] if "order" in self.played.wrong else names[index]

    def get_tensor_mode(self, name: str) -> str:
        return "OUTPUT" if name == "y" else "INPUT"

    def get_tensor_shape(self, name: str) -> tuple[int, ...]:
        return (self.played.fixed_batch or -1, ROW)

    def get_tensor_profile_shape(self, name: str, profile: int) -> list[tuple[int, ...]]:
        return [(1, ROW), (self.largest, ROW), (self.largest, ROW)]

    def get_tensor_dtype(self, name: str) -> DataType:
        return DataType.FP8 if "type" in self.played.wrong else DataType.FLOAT

    def create_execution_context(self) -> _Context | None:
        return None if "context" in self.played.wrong else _Context(self.played, self)


def tensorrt(played: Played) -> ModuleType:
    """The module."""
    trt = ModuleType("tensorrt")

    class NetworkDefinitionCreationFlag(IntEnum):
        STRONGLY_TYPED = 1

    class BuilderFlag(Enum):
        TF32 = 7

    class TensorIOMode:
        INPUT = "INPUT"

    class Logger:
        ERROR = 1

        def __init__(self, severity: int) -> None: ...

    class Runtime:
        def __init__(self, logger: Logger) -> None: ...

        def deserialize_cuda_engine(self, plan: bytes) -> _Engine | None:
            return _Engine(played, json.loads(plan)) if plan.startswith(b"{") else None

    class Config:
        def set_flag(self, flag: BuilderFlag) -> None:
            played.calls.append(("set", flag.name))

        def clear_flag(self, flag: BuilderFlag) -> None:
            played.calls.append(("clear", flag.name))

        def add_optimization_profile(self, profile: Profile) -> int:
            self.profile = profile
            return 0

    class Profile:
        largest = 0

        def set_shape(self, name: str, min: tuple[int, ...], opt: tuple[int, ...], max: tuple[int, ...]) -> None:
            played.calls.append(("profile", name, min, opt, max))
            self.largest = max[0]

    class Tensor:
        def __init__(self, name: str, shape: tuple[int, ...]) -> None:
            self.name, self.shape = name, shape

    class Network:
        num_inputs = len(played.inputs)
        types: frozenset[int] = frozenset()
        name = "Unnamed Network 0"

        def get_input(self, index: int) -> Tensor:
            return Tensor(played.inputs[index], (played.fixed_batch or -1, -1 if "shape" in played.wrong else ROW))

    class OnnxParser:
        num_errors = 1

        def __init__(self, network: Network, logger: Logger) -> None: ...

        def _parsed(self, model: onnx.ModelProto) -> bool:
            played.calls.append(("types", {tensor.data_type for tensor in model.graph.initializer}))
            return "parse" not in played.wrong

        def parse(self, content: bytes, path: str = "") -> bool:
            return self._parsed(onnx.load_from_string(content))

        def parse_from_file(self, path: str) -> bool:
            return self._parsed(onnx.load(path))

        def get_error(self, index: int) -> Any:
            return type("Error", (), {"desc": lambda self: "no importer for operator Tiny"})()

    class Builder:
        def __init__(self, logger: Logger) -> None: ...

        def create_network(self, flags: int) -> Network:
            assert flags == 1 << 1, "networks are strongly typed"
            return Network()

        def create_builder_config(self) -> Config:
            return Config()

        def create_optimization_profile(self) -> Profile:
            return Profile()

        def build_serialized_network(self, network: Network, config: Config) -> bytes | None:
            if "build" in played.wrong:
                return None
            assert len(network.name) <= 128
            return json.dumps({"largest": config.profile.largest or played.fixed_batch, "name": network.name}).encode()

    kinds = (NetworkDefinitionCreationFlag, BuilderFlag, TensorIOMode, Logger, Runtime, OnnxParser, Builder)
    for kind in (*kinds, DataType):
        setattr(trt, kind.__name__, kind)
    trt.Dims = tuple  # type: ignore[attr-defined]
    trt.__version__ = "11.0.0"  # type: ignore[attr-defined]
    return trt


class _Graph:
    def __init__(self) -> None:
        self.launches: list[Any] = []

    def replay(self) -> None:
        _Graph.played.calls.append(("replay",))
        for launch in self.launches:
            launch()

    played: Played


class _Stream:
    cuda_stream = 77

    def synchronize(self) -> None: ...


def play_cuda(played: Played, monkeypatch: pytest.MonkeyPatch) -> None:
    """Device memory is host memory, streams run at once, graphs note launches and repeat them."""

    @contextmanager
    def on_stream(stream: _Stream) -> Iterator[None]:
        yield

    @contextmanager
    def record(graph: _Graph, stream: _Stream) -> Iterator[None]:
        played.recording = graph.launches
        yield
        played.recording = None

    _Graph.played = played
    for name, value in {
        "is_available": lambda: True,
        "synchronize": lambda: None,
        "Stream": _Stream,
        "stream": on_stream,
        "graph": record,
        "CUDAGraph": _Graph,
    }.items():
        monkeypatch.setattr(torch.cuda, name, value)
    for name in ("zeros", "empty"):
        real = getattr(torch, name)

        def on_host(*shape: Any, device: str | None = None, make: Any = real, **rest: Any) -> torch.Tensor:
            assert device in (None, "cuda")
            played.calls.append(("allocate", device or "host"))
            made: torch.Tensor = make(*shape, **rest)
            return made

        monkeypatch.setattr(torch, name, on_host)
    really_to = torch.Tensor.to

    def to(tensor: torch.Tensor, *target: Any, **how: Any) -> torch.Tensor:
        if target != ("cuda",):
            return really_to(tensor, *target, **how)
        played.calls.append(("move", tensor.dtype))
        return tensor.clone()

    monkeypatch.setattr(torch.Tensor, "to", to)
