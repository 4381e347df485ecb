"""One trial that runs: how it is, and in the end what came of it."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from proofmark.automl.outcome.event_types import TRIAL_EVENTS
from proofmark.automl.search.state import Trial
from proofmark.automl.trial.spec import LOG, MOMENTUM, WEIGHTS, TrialSpec
from proofmark.launch.job import Handle, Job, Launcher
from proofmark.launch.job_file import index_in
from proofmark.record.events import CORRUPT, Event, read_events
from proofmark.training.ranks.heartbeat import SETUP, read_heartbeat

LEAVES = ("agent.log", LOG, "monitor.jsonl", "monitor.err", WEIGHTS, MOMENTUM)

MODULE = "proofmark.automl.trial.main"


class RunningTrial:
    """A trial's job.

    Args:
        hang: seconds without a sign of life that mean a hang.
        setup: the same before its first step.
    """

    def __init__(
        self, trial: Trial, spec: TrialSpec, launcher: Launcher, device: int, hang: float, setup: float, module: str
    ) -> None:
        self.trial, self.spec, self.device = trial, spec, device
        self._hang, self._setup = hang, setup
        self._since = time.monotonic()
        self._handle: Handle = launcher.submit(
            Job(
                name=f"{spec.config['suite']}/{spec.config['case']}/trial {spec.trial}",
                module=module,
                spec=spec,
                directory=Path(spec.directory),
                leaves=LEAVES,
                index=index_in(spec.config["host"]["cache_dir"]),
                sys_path=spec.sys_path,
                begins="the trial starts",
            )
        )

    @property
    def number(self) -> int:
        """The trial's."""
        return self.trial.number

    def poll(self) -> dict[str, Any] | None:
        """What came of it, as the journal has it; None while it runs. One that hangs is ended."""
        status = self._handle.status()
        hung = self._hung() if status == "running" else None
        if status == "running" and hung is None:
            return None
        self.stop()
        return outcome(self.spec.folder, status == "succeeded", hung)

    def epochs(self) -> list[dict[str, Any]]:
        """What it has trained so far."""
        return list(epochs_of(list(_events(self.spec.folder))))

    def stop(self) -> None:
        """End it."""
        self._handle.stop()

    def _hung(self) -> str | None:
        beat = read_heartbeat(self.spec.folder / "rank0.heartbeat")
        if beat is None:
            silent, patience, where = time.monotonic() - self._since, self._setup, "before it said anything"
        else:
            early = beat.phase in SETUP or beat.step == beat.first
            silent, patience = time.monotonic() - beat.since, self._setup if early else self._hang
            where = f"in {beat.phase}, step {beat.step}"
        return f"it hung: no sign of life for {silent:.0f} s, {where}" if silent > patience else None


def outcome(folder: Path, succeeded: bool, hung: str | None) -> dict[str, Any]:
    """Fields of a `trial_end`, from what a trial left."""
    read = list(read_events(folder / LOG, TRIAL_EVENTS))
    events = [event for event in read if event["event"] != CORRUPT]
    last = {event["event"]: event for event in events}
    checks = [event for event in events if event["event"] == "check"]
    reason = hung or _failure(folder, succeeded, read, last)
    chosen = last.get("chosen", {})
    energy = last.get("energy", {"joules": None, "reason": "the trial left no reading"})
    return {
        "status": "failed" if reason else "finished",
        "reason": reason,
        "accuracy": None if reason else chosen.get("metric"),
        "best_epoch": chosen.get("epoch"),
        "stopped_early": last.get("stopped_early", {}).get("reason"),
        "epochs": list(epochs_of(events)),
        "counted": _only(last.get("counted"), ("forward", "training")),
        "dtypes": last.get("computed", {}).get("dtypes", []),
        "checks": [_only(check, ("name", "passed", "figure", "bound", "meaning")) for check in checks],
        "energy": {key: energy.get(key) for key in ("joules", "reason", "method")},
        "log_sha256": digest_of_log(folder),
        "train_seconds": max((event.get("train_seconds", 0.0) for event in events), default=0.0),
    }


def digest_of_log(folder: Path) -> str | None:
    """SHA-256 of a trial's own log, None where there is none."""
    try:
        with (folder / LOG).open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError:
        return None


def epochs_of(events: Sequence[Event]) -> Iterator[dict[str, Any]]:
    """Each evaluation, with what was trained on since the one before."""
    samples, seconds, loss = 0, 0.0, None
    for event in events:
        if event["event"] == "steps":
            loss = event["losses"][-1]
        elif event["event"] == "evaluation":
            yield {
                "clock": event["clock"],
                "images": event["samples"] - samples,
                "evaluated": int(event.get("samples_evaluated", 0)),
                "accuracy": event["metric"],
                "loss": loss,
                "seconds": max(0.0, event["train_seconds"] - seconds),
            }
            samples, seconds = event["samples"], event["train_seconds"]


def _events(folder: Path) -> Iterator[Event]:
    return (event for event in read_events(folder / LOG, TRIAL_EVENTS) if event["event"] != CORRUPT)


def _failure(folder: Path, succeeded: bool, read: Sequence[Event], last: dict[str, Event]) -> str | None:
    """Why a trial counts for nothing, None for one that does."""
    damaged = [event["what"] for event in read if event["event"] == CORRUPT]
    if "trial_failed" in last:
        return str(last["trial_failed"]["reason"])
    if damaged:
        return f"its log is damaged: {damaged[0]}"
    if not succeeded or "trial_end" not in last:
        said = _last_words(folder)
        return f"its process died{f': {said}' if said else ' without a word: it was killed, or crashed'}"
    if "dishonest" in last:
        wrong = [event["meaning"] for event in read if event["event"] == "check" and not event["passed"]]
        return f"it was not the case's network that was trained: {'; '.join(wrong)}"
    return None if last.get("chosen", {}).get("metric") is not None else "no evaluation gave a number"


def _last_words(folder: Path) -> str:
    try:
        lines = (folder / "agent.log").read_text(encoding="utf-8", errors="replace").split("\n")
    except OSError:
        return ""
    said = [line.strip() for line in lines if line.strip()]
    return "".join(c if c.isprintable() else "?" for c in said[-1])[:300] if said else ""


def _only(event: dict[str, Any] | None, names: Sequence[str]) -> dict[str, Any] | None:
    return {name: event[name] for name in names} if event is not None else None
