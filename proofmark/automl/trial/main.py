"""A trial's process: `python -m proofmark.automl.trial.main SPEC NODE`. It ends when its standard input closes."""

from __future__ import annotations

import contextlib
import faulthandler
import importlib
import os
import signal
import sys
import threading
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any

from proofmark.automl.trial.spec import LOG, TrialSpec
from proofmark.errors import ProofmarkError
from proofmark.process.lifetime import leave, remove_own_temporary_directory, tidy_environment
from proofmark.record.events import EventLog

if TYPE_CHECKING:
    from proofmark.automl.trial.trainer import TrialTrainer
    from proofmark.training.ranks.heartbeat import HeartbeatWriter
    from proofmark.training.spec import TrainingSpec


def main() -> int:
    """Run the trial, and leave behind why not, if not."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    faulthandler.enable()
    spec = TrialSpec.load(Path(sys.argv[1]))
    os.environ |= {**tidy_environment(Path(spec.config["host"]["cache_dir"])), **spec.environment}
    log = EventLog(spec.folder / LOG)
    log.write("trial_begin", trial=spec.trial, pid=os.getpid())
    try:
        _run(spec, log)
    except BaseException as error:  # noqa: BLE001 (written down: the driver goes on without it)
        if not isinstance(error, ProofmarkError):
            traceback.print_exc()
        with contextlib.suppress(OSError):  # a full disk may be what failed
            log.write("trial_failed", reason=_why(error))
        return 1
    log.write("trial_end", trial=spec.trial)
    return 0


def _run(spec: TrialSpec, log: EventLog) -> None:
    from proofmark.training.node.node_monitor import NodeMonitor
    from proofmark.training.ranks.heartbeat import HeartbeatWriter

    heartbeat = HeartbeatWriter(spec.folder / "rank0.heartbeat")
    heartbeat(0, "init")
    training = spec.training()
    monitor = NodeMonitor(training, spec.folder, log)
    try:
        trainer = _trainer(spec, training, log, heartbeat)
        honest = trainer.run()
    finally:
        monitor.stop()
    log.write("energy", **energy_of(spec.folder, trainer.window, training.monitor_interval is not None))
    if not honest:
        log.write("dishonest")
    heartbeat(0, "end")


def energy_of(folder: Path, window: tuple[float, float], watched: bool) -> dict[str, Any]:
    """What the devices took in a window, or why nobody knows."""
    from proofmark.monitoring.summary import summarise

    try:
        seen = summarise(folder / "monitor.jsonl", window, 1, ()) if watched else None
    except (ValueError, OverflowError, OSError) as error:
        return {"joules": None, "reason": f"the monitor's log cannot be used: {str(error).splitlines()[0]}"}
    if seen is None or seen.energy_joules is None:
        return {"joules": None, "reason": "nothing read the power" if watched else "there was no monitor"}
    return {"joules": seen.energy_joules, "reason": None, "method": seen.energy_method}


def _trainer(spec: TrialSpec, training: TrainingSpec, log: EventLog, heartbeat: HeartbeatWriter) -> TrialTrainer:
    import torch

    from proofmark.automl.trial.made_case import TrialCase
    from proofmark.automl.trial.trainer import TrialTrainer
    from proofmark.measuring.precision import use_tf32
    from proofmark.rules.config import EffectiveConfig
    from proofmark.training.ranks.loading import Data
    from proofmark.training.ranks.model.own import make_fresh
    from proofmark.training.ranks.model.strategy import Place
    from proofmark.vendor.registry import find_vendor

    config = EffectiveConfig.from_dict(training.config)
    case = TrialCase(getattr(importlib.import_module(spec.case[0]), spec.case[1])(), spec)
    fresh = make_fresh(case, config, spec.seed)  # no vendor's code has run here yet
    vendor = find_vendor(spec.vendor, Path(spec.vendors_dir), config.host.device).vendor
    device = torch.device(vendor.torch_device())
    if device.type != "cpu":
        device = torch.device(device.type, 0)
        torch.accelerator.set_device_index(0)
    use_tf32(config.precision == "tf32")
    data = Data.of(case, config, pin=device.type != "cpu")
    place = Place(0, 0, 1, device)
    return TrialTrainer(spec, case, data, config, training, vendor, place, log, heartbeat, fresh)


def _why(error: BaseException) -> str:
    """In a line."""
    told = next(iter(str(error).strip().splitlines()), "")
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError" or "out of memory" in told:
        return f"it ran out of memory: {told or 'the host has no more'}"
    return told if isinstance(error, ProofmarkError) else f"{type(error).__name__}: {told}"


def _end_with_parent(*_: Any) -> None:
    """End everything when the driver closes standard input or is gone."""
    with contextlib.suppress(OSError):
        while os.read(0, 4096):
            pass
    remove_own_temporary_directory()
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    leave(main())
