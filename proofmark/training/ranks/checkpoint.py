"""Checkpoints: by torch.distributed.checkpoint as safetensors, written aside, whole or not at all, with checksums.

A finished checkpoint is a folder `step-<n>` with the ranks' tensor shards, `progress.json` (all that is no tensor) and
`manifest.json` (XXH3 of every file, 128 bits: it is held against damage, and a tenth of SHA-256's work). Until it is
finished its name ends in `.draft`. Nothing is ever unpickled.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist
import xxhash
from safetensors.torch import save_file
from torch.distributed.checkpoint.api import CheckpointException
from torch.distributed.checkpoint.hf_storage import HuggingFaceStorageReader, HuggingFaceStorageWriter
from torch.distributed.checkpoint.metadata import Metadata, MetadataIndex
from torch.distributed.checkpoint.planner import SavePlan, SavePlanner
from torch.distributed.checkpoint.staging import BlockingAsyncStager
from torch.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_state_dict,
    set_model_state_dict,
    set_optimizer_state_dict,
)
from torch.distributed.checkpoint.state_dict_loader import load
from torch.distributed.checkpoint.state_dict_saver import async_save
from torch.distributed.checkpoint.storage import WriteResult

from proofmark.errors import StepError, harmless, reason
from proofmark.training.feeding.fed import can_pin
from proofmark.training.ranks.model.own import named_parameters
from proofmark.training.ranks.model.strategy import unwrapped

if TYPE_CHECKING:
    from proofmark.training.ranks.model.strategy import Place

KEEP = 2
"""How many finished checkpoints stay."""

_ALL = "state"  # one dictionary of all: the library logs each of the outermost ones' entries apart
_OPTIONS = StateDictOptions(flatten_optimizer_state_dict=True)


class Checkpoints:
    """A run's checkpoints. Every rank calls every method."""

    def __init__(self, directory: Path, place: Place) -> None:
        self.directory, self._place = directory, place
        self._group = dist.new_group(backend="gloo")
        self._pending: Any = None
        self._stager = _Stager(place.device)

    def gathered(self, own: dict[str, int]) -> list[dict[str, int]] | None:
        """What each rank has, in their order, at rank 0; None at others. Waits for the one before: its ranks may still
        talk.

        Raises:
            OSError: that can't be written.
        """
        self.wait()
        every: list[Any] | None = [None] * self._place.world if self._place.rank == 0 else None
        dist.gather_object(own, every, dst=0, group=self._group)
        return every

    def save(
        self, step: int, model: torch.nn.Module, optimizer: torch.optim.Optimizer, progress: dict[str, Any]
    ) -> None:
        """Copy the state and go on; it is written meanwhile. Waits for the one before.

        Raises:
            OSError: the one before, or this one, can't be written.
        """
        self.wait()
        tensors, plain = _state(model, optimizer)
        tensors |= _random_states(self._place.device)
        draft = self.directory / f"step-{step:09d}.draft"
        if self._place.rank == 0:
            shutil.rmtree(draft, ignore_errors=True)
            draft.mkdir(parents=True)
            (draft / "progress.json").write_text(json.dumps(progress | {"plain": plain}), encoding="utf-8")
        dist.barrier(self._group)
        self._pending = async_save(
            {_ALL: tensors}, storage_writer=_Writer(draft), process_group=self._group, async_stager=self._stager
        )

    def wait(self) -> None:
        """Return when what was begun is finished.

        Raises:
            OSError: it can't be written.
        """
        pending, self._pending = self._pending, None
        if pending is not None:
            try:
                pending.result()
            except (Exception, CheckpointException) as error:
                raise OSError(f"the checkpoint cannot be written: {_first_line(error)}") from error

    @staticmethod
    def load(
        path: Path, model: torch.nn.Module, optimizer: torch.optim.Optimizer, device: torch.device
    ) -> dict[str, Any]:
        """Put a finished checkpoint back, random states included, and return its progress.

        Raises:
            StepError: it is damaged or of another model.
        """
        verify(path)
        progress: dict[str, Any] = json.loads((path / "progress.json").read_text(encoding="utf-8"))
        tensors, _ = _state(model, optimizer)
        tensors |= _random_states(device)
        reader = HuggingFaceStorageReader(str(path))
        try:
            _leave_out_unused(model, optimizer, tensors, reader.read_metadata())
            load({_ALL: tensors}, storage_reader=reader)
        except (Exception, CheckpointException) as error:
            raise StepError(f"checkpoint {path.name} does not fit this run: {_first_line(error)}") from error
        model_state = {k.removeprefix("model."): v for k, v in tensors.items() if k.startswith("model.")}
        optimizer_state = {k.removeprefix("optimizer."): v for k, v in tensors.items() if k.startswith("optimizer.")}
        set_model_state_dict(model, model_state)
        set_optimizer_state_dict(model, optimizer, optimizer_state | progress.pop("plain"), options=_OPTIONS)
        torch.set_rng_state(tensors[_random_key("cpu")])
        if (module := _module_of(device)) is not None:
            module.set_rng_state(tensors[_random_key("device")])
        return progress


class _Stager(BlockingAsyncStager):
    """Copies into the same memory each time, with CUDA pinned. The library's default one keeps a tensor's strides too,
    and safetensors takes contiguous tensors alone."""

    def __init__(self, device: torch.device) -> None:
        super().__init__()
        self._pins = device.type == "cuda" and can_pin()
        self._form: dict[str, Any] = {}

    def stage(self, state_dict: dict[str, Any]) -> dict[str, Any]:
        """The state on the host."""
        form = {name: (tensor.shape, tensor.dtype) for name, tensor in state_dict[_ALL].items()}
        if form != self._form:  # a parameter's first gradient gives its optimizer a state
            self._form, self.state_dict_cache = form, None
            self.cache_staged_state_dict = self._pins
        staged: dict[str, Any] = super().stage(state_dict)
        if not self.cache_staged_state_dict:
            self.cache_staged_state_dict, self.state_dict_cache = True, staged
        return staged


class _Writer(HuggingFaceStorageWriter):
    """The library's files, written by safetensors itself. The library first copies all tensors as bytes with the
    interpreter locked: while it did, training could not go on."""

    def __init__(self, draft: Path) -> None:
        super().__init__(str(draft), save_distributed=True)
        self._draft = draft

    def write_data(self, plan: SavePlan, planner: SavePlanner) -> torch.futures.Future[list[WriteResult]]:
        """One file of all tensors that this rank saves, with each one's place in its whole; its name and digest."""
        written: torch.futures.Future[list[WriteResult]] = torch.futures.Future()
        tensors, places = {}, {}
        for item in plan.items:
            tensor = planner.resolve_data(item)
            assert isinstance(tensor, torch.Tensor) and item.tensor_data is not None  # `_state` has nothing else
            tensors[item.index.fqn] = tensor
            places[item.index.fqn] = {"saved_offsets": list(item.tensor_data.chunk.offsets)}
        results = []
        if tensors:
            path = self._draft / f"shard-{plan.storage_data['shard_index']:05d}-model-00001-of-00001.safetensors"
            metadata = {"DCP_SHARDING_INFO": json.dumps(places), "DCP_VERSION": "1.0", "format": "pt"}
            results = [_write(path, tensors, metadata)]
        written.set_result(results)
        return written

    def finish(self, metadata: Metadata, results: list[list[WriteResult]]) -> None:
        """At rank 0 when all ranks have written: checksums, the final name, and older ones removed.

        Raises:
            OSError: what another rank wrote isn't here.
        """
        for result in (result for rank in results for result in rank):
            shard = self._draft / result.index.fqn
            with shard.open("rb") as stream:  # opened, a network's file system asks anew
                if os.fstat(stream.fileno()).st_size != result.size_in_bytes:
                    raise OSError(f"{shard} does not have the {result.size_in_bytes} bytes that were written")
        manifest = {"progress.json": _digest(self._draft / "progress.json")}
        manifest |= {result.index.fqn: result.storage_data for rank in results for result in rank}
        (self._draft / "manifest.json").write_text(json.dumps(manifest, indent=1), encoding="utf-8")
        for name in ("progress.json", "manifest.json"):  # an older checkpoint goes only when this one is on the disk
            with (self._draft / name).open("rb") as stream:
                os.fsync(stream.fileno())
        final = self._draft.with_suffix("")
        shutil.rmtree(final, ignore_errors=True)
        self._draft.rename(final)
        for old in sorted(final.parent.glob("step-*[0-9]"))[:-KEEP]:
            shutil.rmtree(old, ignore_errors=True)


def _write(path: Path, tensors: dict[str, torch.Tensor], metadata: dict[str, str]) -> WriteResult:
    """A file of contiguous tensors, on the disk when this returns, and out of the page cache, which is the data set's.

    Raises:
        OSError: it can't be written; it names the file.
        SafetensorError: safetensors can't give one of these dtypes back.
    """
    save_file(tensors, path, metadata)
    with path.open("rb") as stream:
        os.fsync(stream.fileno())
        digest = hashlib.file_digest(stream, xxhash.xxh3_128).hexdigest()
        if hasattr(os, "posix_fadvise"):
            os.posix_fadvise(stream.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        return WriteResult(MetadataIndex(path.name), os.fstat(stream.fileno()).st_size, digest)


def verify(path: Path) -> None:
    """Hold every file of a checkpoint against its manifest.

    Raises:
        StepError: a file is missing, was changed, or isn't of this checkpoint.
    """
    try:
        manifest = json.loads((path / "manifest.json").read_text(encoding="utf-8"))
        wrong = sorted(name for name, digest in manifest.items() if _digest(path / name) != digest)
    except (OSError, ValueError, AttributeError, RecursionError) as error:
        what = harmless(str(error))
        raise StepError(f"checkpoint {path.name} is corrupt: {what}; remove it to go on from the one before") from None
    wrong += sorted({file.name for file in path.iterdir()} - set(manifest) - {"manifest.json"})
    if wrong:
        what = harmless(f"{', '.join(wrong)} differ from the manifest")
        raise StepError(f"checkpoint {path.name} is corrupt: {what}; remove it to go on from the one before")


def _first_line(error: BaseException) -> str:
    if isinstance(error, CheckpointException):  # the library's, of all ranks: the first cause says more
        error = next(iter(error.failures.values()), (error, None))[0]
    return reason(error)


def _state(model: torch.nn.Module, optimizer: torch.optim.Optimizer) -> tuple[dict[str, Any], dict[str, Any]]:
    """Tensors of model and optimizer under flat names, and what of the optimizer is no tensor."""
    of_model, of_optimizer = get_state_dict(model, optimizer, options=_OPTIONS)
    tensors = {f"model.{name}": value for name, value in of_model.items()}
    plain = {}
    for name, value in of_optimizer.items():
        if isinstance(value, torch.Tensor):
            tensors[f"optimizer.{name}"] = value
        else:
            plain[name] = value
    return tensors, plain


def _leave_out_unused(
    model: torch.nn.Module, optimizer: torch.optim.Optimizer, tensors: dict[str, torch.Tensor], there: Metadata
) -> None:
    """Take from a state the parts of parameters of which a checkpoint has none: they had no gradient before it, and a
    fresh optimizer was given all parameters'. One that has no parameter's is another optimizer's."""
    parts: dict[str, list[str]] = defaultdict(list)
    for name in tensors:
        parts[name.rpartition(".")[0]].append(name)
    named = {f"optimizer.state.{name}": parameter for name, parameter in named_parameters(unwrapped(model)).items()}
    owners = {owner: named[owner] for owner in parts.keys() & named.keys()}  # torch takes fewer names for wrappers'
    saved = {owner for owner in owners if any(f"{_ALL}.{part}" in there.state_dict_metadata for part in parts[owner])}
    for owner in owners.keys() - saved if saved else ():
        for part in parts[owner]:
            del tensors[part]
        optimizer.state.pop(owners[owner], None)


def _random_key(kind: str) -> str:
    return f"random.{kind}.{dist.get_rank()}"


def _random_states(device: torch.device) -> dict[str, torch.Tensor]:
    """Of the processor, and of the device that this rank trains on: the machine may have others, not its to use."""
    states = {_random_key("cpu"): torch.get_rng_state()}
    if (module := _module_of(device)) is not None:
        states[_random_key("device")] = module.get_rng_state()
    return states


def _module_of(device: torch.device) -> Any:
    """torch's own for a kind of device, which not all have; None of the processor."""
    try:
        return None if device.type == "cpu" else torch.get_device_module(device)
    except RuntimeError:
        return None


def _digest(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, xxhash.xxh3_128).hexdigest()
