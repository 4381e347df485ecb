"""The engines of a case: each gets a process of its own, and ends with the case at the latest."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from proofmark.inference.engine.engine_process import EngineProcess
from proofmark.inference.engine.remote_engine import RemoteEngine
from proofmark.process.memory import keep_memory_private
from proofmark.process.scratch.own_directory import lay_open
from proofmark.rules.config import EffectiveConfig
from proofmark.rules.legality import FILES
from proofmark.vendor.registry import FoundVendor
from proofmark.wall.wall import linked_from

if TYPE_CHECKING:
    import torch


@dataclass
class Engines:
    """Starts them.

    Attributes:
        case: module and name of the case's class.
        directory: what is theirs to write into.
    """

    case: tuple[str, str]
    found: FoundVendor
    config: EffectiveConfig
    directory: Path
    running: list[RemoteEngine] = field(default_factory=list)

    def compiled(self, onnx: Path | None, model: torch.nn.Module | None, artifacts: str = "") -> RemoteEngine:
        """The vendor's engine for a model, compiled.

        Args:
            onnx: what an engine that consumes ONNX is made of.
            model: what others are made of.
            artifacts: the folder below the engines' directory in which it leaves what it compiled.

        Raises:
            EngineFailed: it can't be.
        """
        given = str(onnx.absolute()) if onnx else None
        return self._made({"compiler": self.config.compiler, "onnx": given, "precision": None}, model, artifacts)

    def framework(self, precision: str, model: torch.nn.Module) -> RemoteEngine:
        """The framework on the vendor's device, whose back end is the vendor's code.

        Raises:
            EngineFailed: it can't be.
        """
        device = self.found.vendor.torch_device()
        return self._made({"compiler": None, "onnx": None, "precision": precision, "device": device}, model)

    def rehearse(self, compiler: str | None) -> RemoteEngine:
        """See that torch finds the vendor's device, and that the compiler can be imported.

        Returns:
            The engine that checked it, whose process has ended.

        Raises:
            EngineFailed: there is no engine to be had.
        """
        engine = self._started()
        engine.rehearse(self._orders() | {"compiler": compiler, "onnx": None})
        self.close()
        return engine

    def close(self) -> None:
        """End all."""
        while self.running:
            self.running.pop().close()
        lay_open(self.directory)

    def stacks(self) -> None:
        """Have all print where they are."""
        for engine in self.running:
            engine.stacks()

    def _made(self, orders: Mapping[str, Any], model: torch.nn.Module | None, artifacts: str = "") -> RemoteEngine:
        # beside its directory and not in it, where a user of its own could lay links
        with tempfile.TemporaryDirectory(prefix="weights-", dir=self.directory.parent) as folder:
            weights = _saved(model, Path(folder)) if model is not None else None
            engine = self._started()
            engine.make({**self._orders(artifacts), "case": self.case, "weights": weights, **orders})
        return engine

    def _started(self) -> RemoteEngine:
        keep_memory_private()
        self.directory.mkdir(exist_ok=True)
        engine = RemoteEngine(EngineProcess(self.directory.absolute(), variables=self.config.host.environment))
        self.running.append(engine)
        return engine

    def _orders(self, artifacts: str = "") -> dict[str, Any]:
        return {
            "vendor": self.found.name,
            "vendors_dir": str(self.found.vendors_dir.absolute()),
            "config": _in_any_directory(self.config, self.directory / artifacts).as_dict(),
            "hidden": [os.path.abspath(place) for place in self._hidden() if place],
        }

    def _hidden(self) -> tuple[str | Path | None, ...]:
        """What an engine must not see."""
        host = self.config.host
        linked = linked_from(host.data_dir) if host.data_dir else ()
        return host.data_dir, *linked, host.weights, host.cache_dir, self.directory.parent


def _saved(model: torch.nn.Module, folder: Path) -> str:
    """The path of a file of its weights."""
    import torch
    from safetensors.torch import save_file

    path = folder.absolute() / "weights.safetensors"
    state = model.state_dict()
    save_file({name: tensor.clone(memory_format=torch.contiguous_format) for name, tensor in state.items()}, path)
    return str(path)


def _in_any_directory(config: EffectiveConfig, directory: Path) -> EffectiveConfig:
    """The same, with files named so that they are found from any working directory."""
    host = config.host
    places = {key: getattr(host, key) for key in ("weights", "cache_dir")} | {"artifact_dir": str(directory)}
    named = {key: os.path.abspath(config[key]) for key in FILES if config.get(key) is not None}
    return replace(
        config,
        configurations={**config.configurations, **named},
        host=replace(host, **{key: value and os.path.abspath(value) for key, value in places.items()}),
    )
