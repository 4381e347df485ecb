"""A training case at one scale, from its directory to its record. The parent's side."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from proofmark.errors import Problem
from proofmark.launch.job import Handle, Launcher
from proofmark.record.events.log import Event
from proofmark.record.parts import Kept
from proofmark.record.policy import Policy, default_policy
from proofmark.rules.config import EffectiveConfig, Resolution
from proofmark.rules.legality import Override, origin_of
from proofmark.rules.scale import Scale
from proofmark.training.job import follow, submit
from proofmark.training.logged_run import LoggedRun
from proofmark.training.logs.collect import collect
from proofmark.training.logs.digests import digests_of
from proofmark.training.logs.failure import diverged
from proofmark.training.outcome.kept import of_training
from proofmark.training.outcome.record import TrainingRecord
from proofmark.training.resuming import checkpoint_of
from proofmark.training.spec import TrainingSpec
from proofmark.vendor.registry import FoundVendor

TIMEOUT, STANDARD_TIMEOUT = 86400.0, 30 * 86400.0
"""Seconds that a run may take where the user doesn't say: the published size takes days on one device, and weeks."""

BATCH = ("train_batch_size", "global_batch_size", "gradient_accumulation_steps")
"""Settings that say what a step is of; they must agree."""

Progress = Callable[[dict[str, Any]], None]


@dataclass(frozen=True)
class TrainingOptions:
    """What the user decides about a run, beside its configuration.

    `timeout` (None for what the profile needs), `hang_timeout`, `setup_timeout` and `monitor_interval` (None for no
    monitor) are in seconds; `resume` is the folder of an earlier session whose checkpoints to go on from; `checkpoints`
    a folder that all hosts of a cluster share; `audited` whether steps are recorded, and done again outside the ranks.
    """

    timeout: float | None = None
    hang_timeout: float = 30.0
    setup_timeout: float = 1800.0
    monitor_interval: float | None = 1.0
    resume: Path | None = None
    checkpoints: Path | None = None
    policy: Policy = field(default_factory=default_policy)
    audited: bool = False

    def timeout_in(self, profile: str) -> float:
        """Seconds that a run may take, with its time in a queue. What hangs is found sooner."""
        return self.timeout or (STANDARD_TIMEOUT if profile == "standard" else TIMEOUT)


def at_scale(resolution: Resolution, scale: Scale, path: str) -> Resolution:
    """Settle the batch: what a process takes at once, or what all take together, whichever was not given.

    `train_batch_size` wins over the base's `global_batch_size`, as an override on record; both overridden must agree.
    """
    config = resolution.config
    each = config.train_batch_size
    if each is None:
        return replace(resolution, problems=(*resolution.problems, *_parts_of_nothing(config, scale, path)))
    together = each * scale.world * config.gradient_accumulation_steps
    asked = any(override.key == "global_batch_size" for override in config.overrides)
    if together == config.global_batch_size:
        return resolution
    if asked:
        product = f"{each} x {scale.world} processes x {config.gradient_accumulation_steps} accumulations is {together}"
        what = f"{product}, but global_batch_size is {config.global_batch_size}"
        problem = Problem(origin_of(config.overrides, BATCH, path), "train_batch_size", what)
        return replace(resolution, problems=(*resolution.problems, problem))
    settled = Override(
        "global_batch_size", config.global_batch_size, together, f"train_batch_size at scale {scale}", "changed"
    )
    changed = replace(
        config,
        configurations={**config.configurations, "global_batch_size": together},
        overrides=(*config.overrides, settled),
    )
    return replace(resolution, config=changed)


def _parts_of_nothing(config: EffectiveConfig, scale: Scale, path: str) -> Iterator[Problem]:
    """That a process would have more micro-batches in a step than samples."""
    parts, samples = config.gradient_accumulation_steps, config.global_batch_size
    most = max(1, samples // scale.world)
    if parts > most:
        each = f"expected {most} at most, a global batch of {samples} has no more for each of {scale.world} processes"
        where = origin_of(config.overrides, BATCH, path)
        yield Problem(where, "gradient_accumulation_steps", f"{parts}: {each}")


class ScaleRun(LoggedRun[TrainingRecord]):
    """Runs a case's training as often as its `repeat` says; `finish` turns what happened into a record."""

    def __init__(
        self,
        resolution: Resolution,
        scale: Scale,
        found: FoundVendor,
        case: tuple[str, str],
        run_dir: Path,
        launcher: Launcher,
        options: TrainingOptions,
        on_progress: Progress,
        packages: Sequence[str],
        imports: Sequence[str] = (),
    ) -> None:
        super().__init__(run_dir, found, resolution, packages, options.policy)
        self._scale, self._case = scale, case
        self._launcher, self._options, self._on_progress, self._imports = launcher, options, on_progress, imports

    def train(self) -> None:
        """Train once per seed, unless the configuration is illegal or the vendor does not declare the precision.

        An interrupt ends the run and is raised again.
        """
        if not self._is_to_be_done():
            return
        for number in range(1, self.config.repeat + 1):
            if not self._round(number):
                return

    def _collect(self, begun: Event | None, going_on: bool) -> TrainingRecord:
        return collect(self.run_dir, begun, self._log.seal)

    def _kept(self, record: TrainingRecord) -> tuple[Kept, ...]:
        shared = self._options.checkpoints
        return of_training(record, self.run_dir, shared / Path(*self.run_dir.parts[-4:]) if shared else None)

    def _round(self, number: int) -> bool:
        """Train from one seed; return whether another seed is worth it: all ranks came to their end, or only their
        numbers failed."""
        directory = self.run_dir / f"round{number}"
        directory.mkdir()
        spec = self._spec(directory, number)
        self._log.write("round_begin", round=number, seed=spec.seed, resume_from=spec.resume_from)
        handle: Handle | None = None
        end: dict[str, Any] = {"status": "stopped"}
        try:
            handle = submit(spec, self._launcher, self._imports)  # seconds, in which its modules are imported
            timeout = self._options.timeout_in(self.config.profile)
            end = follow(handle, spec, timeout, partial(self._tell, number), self._note)
        except KeyboardInterrupt:
            self._log.write("interrupted", step=f"round {number}")
            raise
        finally:
            if handle is not None:
                self._end(handle, number, directory, end)
        return bool(end["status"] == "succeeded") or diverged(directory, end)

    def _end(self, handle: Handle, number: int, directory: Path, end: dict[str, Any]) -> None:
        """End the job and write that down, after a second interrupt too. What came of it is told here: of an
        interrupted run the verdict says no more than that."""
        try:
            handle.stop()
            with contextlib.suppress(OSError):  # what can't be read now can't be collected either
                end["logs"] = digests_of(directory)
        finally:
            for news in handle.news():
                self._note(news)
            end |= handle.facts() | ({"left": handle.left} if handle.left else {})
            self._log.write("round_end", round=number, **end)

    def _note(self, note: str) -> None:
        self._on_progress({"note": note})

    def _tell(self, number: int, event: Event) -> None:
        """Pass on rank 0's progress."""
        if event["event"] == "steps":
            phase = f"training, run {number}/{self.config.repeat}" if self.config.repeat > 1 else "training"
            progress = {"phase": phase, "step": event["step"], "steps": event["total_steps"], "items": event["samples"]}
            self._on_progress({**progress, "loss": event["losses"][-1], "may_end_early": True})
        elif event["event"] == "evaluation" and event["metric"] is not None:
            seconds = f"{event['train_seconds']:.0f} s"
            others = "".join(f", {n} {v:.4f}" for n, v in event.get("others", {}).items() if v is not None)
            metric_text = f"{self.config.metric} {event['metric']:.4f}, target {self.config.target:.15g}{others}"
            self._on_progress({"note": f"{metric_text}, after {event['samples']} samples, {seconds}"})
        elif event["event"] == "resumed":
            self._on_progress({"note": f"resumes from step {event['step']}"})

    def _spec(self, directory: Path, number: int) -> TrainingSpec:
        resume, shared, earlier = None, self._options.checkpoints, self._options.resume
        if earlier is not None:
            same = Path(*directory.parts[-4:])
            resume = checkpoint_of(earlier, same, shared)
            if resume is None:
                none = f"no finished checkpoint in {earlier / same}"
                self._on_progress({"note": f"{none}: it is trained from the beginning"})
        return TrainingSpec(
            case=self._case,
            vendor=self._found.name,
            vendors_dir=str(self._found.vendors_dir),
            config=self.config.as_dict(),
            directory=str(directory),
            checkpoints=str(shared / Path(*directory.parts[-5:])) if shared else None,
            sys_path=tuple(sys.path),
            nnodes=self._scale.nnodes,
            nproc=self._scale.nproc,
            seed=self.config.seed + number - 1,
            resume_from=str(resume) if resume else None,
            hang_timeout=self._options.hang_timeout,
            monitor_interval=self._options.monitor_interval,
            setup_timeout=self._options.setup_timeout,
            audited=self._options.audited,
            backend=self._found.vendor.distributed_backend,
        )

    def _facts(self) -> dict[str, Any]:
        on_processor = self._found.vendor.torch_device() == "cpu"
        return {
            "scale": str(self._scale),
            "nnodes": self._scale.nnodes,
            "nproc": self._scale.nproc,
            "devices": self._scale.nnodes if on_processor else self._scale.world,
            "audited": self._options.audited,
            "fed": True,  # older runs, in which ranks loaded their data themselves, are judged without
            "resume": str(self._options.resume) if self._options.resume else None,
        }
