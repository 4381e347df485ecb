"""One rank: `python -m proofmark.training.ranks.rank SPEC NODE FEEDER_FD REQUESTS_FD`, started by torchrun."""

from __future__ import annotations

import contextlib
import faulthandler
import importlib
import os
import resource
import signal
import socket
import sys
import traceback
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from proofmark.errors import ProofmarkError, StepError
from proofmark.process.lifetime import end_with
from proofmark.process.log_level import log_from
from proofmark.process.memory import keep_freed
from proofmark.process.threads import compile_within
from proofmark.record.events.log import EventLog
from proofmark.rules.config import EffectiveConfig
from proofmark.training.heartbeat import HeartbeatWriter
from proofmark.training.logs.gist import raised
from proofmark.training.logs.ranks.rank_log import ISOLATED
from proofmark.training.ranks.walled import close_in, dictated, wall_of_rank
from proofmark.training.spec import AGENT, EVENTS, OUTPUTS, TrainingSpec
from proofmark.vendor.contract import Vendor, lacks_torch, memory_of
from proofmark.vendor.environment import require
from proofmark.vendor.hardware.devices import limits_to_all
from proofmark.vendor.registry import find_vendor
from proofmark.wall.isolation import Isolation

if TYPE_CHECKING:
    import torch

    from proofmark.training.ranks.model.strategy import Place

PATIENCE = timedelta(days=1)
"""For what another rank is late with: who hangs is found by heartbeats, and named. torch's own ten minutes would end
those who wait."""


def main() -> None:
    """Train, and leave behind why not, if not."""
    end_with(int(os.environ[AGENT]))
    keep_freed()
    spec, rank = TrainingSpec.load(Path(sys.argv[1])), int(os.environ["RANK"])
    node = spec.node_directory(int(sys.argv[2]))
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    local_rank = int(os.environ["LOCAL_RANK"])
    _write_output_to(dictated(OUTPUTS, local_rank))
    faulthandler.enable()
    faulthandler.register(signal.SIGUSR1, all_threads=True)
    heartbeat = HeartbeatWriter(node / f"rank{rank}.heartbeat")
    log = EventLog(dictated(EVENTS, local_rank))
    log.write("rank_begin", rank=rank, pid=os.getpid())
    try:
        _train(spec, rank, log, heartbeat, spec.own_directory(int(sys.argv[2]), local_rank))
    except BaseException as error:  # noqa: BLE001 (written down, then torchrun ends the others)
        if not isinstance(error, ProofmarkError):
            traceback.print_exc()
        with contextlib.suppress(OSError):  # a full disk may be what failed; then this process's output says so
            log.write("rank_failed", rank=rank, reason=raised(error, f"rank{rank}.log", Path(spec.vendors_dir).parent))
        _leave(1)
    _leave(0)


def _close_in(spec: TrainingSpec, config: EffectiveConfig, own: Path) -> Isolation:
    """Close the rank in, with what a training needs beside: its checkpoints."""
    wall = wall_of_rank(spec.backend, spec.nnodes * spec.nproc, spec.nproc)
    kept = [spec.made_checkpoint_directory()] if config.checkpoint_steps else []
    before = (Path(spec.resume_from),) if spec.resume_from else ()
    return close_in(spec, own, replace(wall, writable=tuple(kept), readable=before))


def _train(spec: TrainingSpec, rank: int, log: EventLog, heartbeat: HeartbeatWriter, own: Path) -> None:
    config = EffectiveConfig.from_dict(spec.config)
    log_from(config.host.log_level)
    heartbeat(0, "init")
    isolation = _close_in(spec, config, own)
    log.write(ISOLATED, isolation=isolation.model_dump(mode="json"))
    import torch.distributed as dist

    from proofmark.measuring.precision import use_tf32
    from proofmark.training.feeding.fed import Fed, Requested
    from proofmark.training.feeding.loading import Data
    from proofmark.training.feeding.on_request import AHEAD
    from proofmark.training.ranks.left import leave_weights
    from proofmark.training.ranks.model.own import make_fresh
    from proofmark.training.ranks.trainer import Trainer

    case = getattr(importlib.import_module(spec.case[0]), spec.case[1])()
    fresh = make_fresh(case, config, spec.seed)  # no vendor's code has run here yet
    found = find_vendor(spec.vendor, Path(spec.vendors_dir), config.host.device)
    name, vendor = f"{config.suite}/{config.case}", found.vendor
    require(found.directory, name)
    adapter = found.training_adapter(name)
    os.environ.update(limits_to_all(vendor))
    device = _device_of(vendor, spec.vendor)
    compile_within(device.type)
    use_tf32(config.precision == "tf32")
    world = spec.nnodes * spec.nproc
    feeder, requests = (socket.socket(fileno=int(number)) for number in sys.argv[3:5])
    for end in (feeder, requests):
        end.set_inheritable(False)
    fed, evaluated = Fed(feeder, config, world, spec.seed), Requested(requests, AHEAD)
    for supply in (fed, evaluated) if device.type != "cpu" else ():
        supply.pin()
    place = _meet(spec, rank, device)
    trainer = Trainer(case, Data(fed, evaluated), config, spec, vendor, place, log, heartbeat, fresh, adapter=adapter)
    if trainer.run() and place.rank == 0:
        leave_weights(trainer.left, spec.own_directory(0, 0))
    used, total = memory_of(vendor)
    host = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    log.write("memory", host_peak_bytes=host, device_peak_bytes=used, device_total_bytes=total)
    log.write("rank_end", rank=rank)
    dist.destroy_process_group()


def _device_of(vendor: Vendor, name: str) -> torch.device:
    """The rank's own; the processor is all ranks'. The vendor is asked once.

    Raises:
        StepError: torch can't compute on its devices.
    """
    import torch

    said = vendor.torch_device()
    if why := lacks_torch(vendor, said):
        raise StepError(f"vendor {name} does not train: {why}")
    device = torch.device(said)
    if device.type == "cpu":
        return device
    device = torch.device(device.type, int(os.environ["LOCAL_RANK"]))
    torch.accelerator.set_device_index(device.index)
    return device


def _meet(spec: TrainingSpec, rank: int, device: torch.device) -> Place:
    """The others that train, once all are there, and the rank's place among them."""
    import torch.distributed as dist

    from proofmark.training.ranks.model.strategy import Place, bound

    alone: dict[str, Any] = {}
    if spec.nnodes * spec.nproc == 1:  # it needs to meet nobody
        alone = {"store": dist.HashStore(), "rank": 0, "world_size": 1}  # type: ignore[attr-defined]
    dist.init_process_group(spec.backend, timeout=PATIENCE, device_id=bound(device), **alone)
    return Place(rank, int(os.environ["LOCAL_RANK"]), dist.get_world_size(), device)


def _leave(code: int) -> NoReturn:
    """End without the interpreter's own end: it would wait for an exchange that never comes, or abort over threads of
    torch that still run."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _write_output_to(pipe: Path) -> None:
    """All that this process and its libraries print goes there."""
    descriptor = os.open(pipe, os.O_WRONLY)
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)
    os.close(descriptor)


if __name__ == "__main__":
    main()
