"""The engines of a case: each gets a process of its own, and ends with the case at the latest."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from proofmark.inference.engine.engine_process import EngineProcess
from proofmark.inference.engine.exported import save_program
from proofmark.inference.engine.model_files import files_of
from proofmark.inference.engine.place.contained import Contained
from proofmark.inference.engine.place.given import Given
from proofmark.inference.engine.place.own_group import OwnGroup, Started
from proofmark.inference.engine.remote_engine import RemoteEngine
from proofmark.inference.outcome.kept import HANDED_OVER
from proofmark.launch.engine_container import EngineContainer
from proofmark.process.memory import keep_memory_private
from proofmark.process.scratch.own_directory import lay_open
from proofmark.rules.config import EffectiveConfig
from proofmark.rules.legality import FILES
from proofmark.vendor.environment import at_start
from proofmark.vendor.registry import FoundVendor, target_of
from proofmark.wall.wall import linked_from

if TYPE_CHECKING:
    import torch


@dataclass
class Engines:
    """Starts them.

    Attributes:
        case: module and name of the case's class.
        directory: what is theirs to write into.
        container: what each is put into; None for a process on this machine itself.
        example: one batch, by which a model is exported for where the case's code is not.
    """

    case: tuple[str, str]
    found: FoundVendor
    config: EffectiveConfig
    directory: Path
    container: EngineContainer | None = None
    example: Sequence[torch.Tensor] = ()
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
        return self._made({"compiler": None, "onnx": None, "precision": precision}, model)

    def rehearse(self, compiler: str | None) -> RemoteEngine:
        """See that torch finds the vendor's device, and that the compiler can be imported.

        Returns:
            The engine that checked it, whose process has ended.

        Raises:
            EngineFailed: there is no engine to be had.
        """
        engine = self._started()
        engine.rehearse(self._orders() | {"compiler": compiler, "onnx": None, "files": []})
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
        with tempfile.TemporaryDirectory(prefix=HANDED_OVER, dir=self.directory.parent) as folder:
            given = self._given(Path(folder), orders, model)
            files = files_of(orders["onnx"], self.config.exist_compiler_path)
            engine = self._started([*files, Path(folder)])
            engine.make({**self._orders(artifacts), **given, **orders, "files": [str(file) for file in files]})
        return engine

    def _given(self, folder: Path, orders: Mapping[str, Any], model: torch.nn.Module | None) -> dict[str, Any]:
        """Of what the process makes the model."""
        if self.container is None:
            return {"case": self.case, "weights": _saved(model, folder) if model is not None else None}
        compiler = orders["compiler"] and self.found.vendor.compilers[orders["compiler"]]
        if model is None or (compiler and compiler.consumes == "onnx"):
            return {"program": None}
        import torch

        path = folder.absolute() / "model.pt2"
        save_program(model, self.example, orders["precision"] or self.config.effective_precision, path)
        return {"program": str(path), "torch": torch.__version__}

    def _started(self, read: Sequence[Path] = ()) -> RemoteEngine:
        """A process, which in a container sees of this machine's files those alone that it is to read."""
        keep_memory_private()
        self.directory.mkdir(exist_ok=True)
        directory, declared = self.directory.absolute(), self.config.host.environment
        if self.container is None:
            started: Started = OwnGroup(directory, variables=at_start(declared))
        else:
            given = Given.of(
                self.found, read, self.container, (*self._hidden(), *linked_from(self.config.host.data_dir))
            )
            started = Contained(
                self.container, directory, given.read, given.variables(directory, declared), given.isolation
            )
        engine = RemoteEngine(EngineProcess(started))
        self.running.append(engine)
        return engine

    def _orders(self, artifacts: str = "") -> dict[str, Any]:
        return {
            "vendor": self.found.name,
            "target": target_of(self.found.name, self.found.vendors_dir)[0],
            "device": self.found.vendor.torch_device(),
            "vendors_dir": str(self.found.vendors_dir.absolute()),
            "config": _in_any_directory(self.config, self.directory / artifacts).as_dict(),
            "hidden": [os.path.abspath(place) for place in self._hidden() if place],
        }

    def _hidden(self) -> tuple[str | Path | None, ...]:
        """What an engine must not see, beside where links in the data lead."""
        host = self.config.host
        return host.data_dir, host.weights, host.cache_dir, self.directory.parent


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
    places = {key: getattr(host, key) for key in ("data_dir", "weights", "cache_dir")} | {
        "artifact_dir": str(directory)
    }
    named = {key: os.path.abspath(config[key]) for key in FILES if config.get(key) is not None}
    return replace(
        config,
        configurations={**config.configurations, **named},
        host=replace(host, **{key: value and os.path.abspath(value) for key, value in places.items()}),
    )
