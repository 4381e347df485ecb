"""One run of one case, from its directory to its record. The parent's side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from proofmark.errors import Problem
from proofmark.inference.collect import collect
from proofmark.inference.kept import of_case, remove_artifacts
from proofmark.inference.plan import Plan
from proofmark.inference.record import RunRecord
from proofmark.inference.worker import CaseWorker, Progress, WorkerLost, WorkerSpec
from proofmark.monitoring.monitor import MonitorProcess
from proofmark.process.lifetime import tidy_environment
from proofmark.process.silence import Patience
from proofmark.process.warm import warm_up
from proofmark.record.events import Event, EventLog
from proofmark.rules.config import EffectiveConfig
from proofmark.vendor.chips import describe_chip
from proofmark.vendor.devices import Assignment
from proofmark.vendor.machine import describe_host, installed_versions
from proofmark.vendor.provenance import device_software, provenance_of
from proofmark.vendor.registry import FoundVendor

IMPORTED = ("torch.utils.data", "torch.utils.flop_counter", "torch._dynamo", "proofmark.inference.pipeline")
"""What every case's process imports; counting FLOPs needs the third."""

PACKAGES = ("torch", "transformers", "onnx", "numpy", "pytest", "pytest-benchmark")


@dataclass(frozen=True)
class RunOptions:
    """What the user decides about a run, beside its configuration.

    `gate` is the share of the framework's accuracy that the engine must keep; `step_timeout` is in seconds, and so
    is `monitor_interval`, None for no monitor; `patience` says what silence of the case's process is a hang.
    """

    gate: float = 0.99
    step_timeout: float | None = None
    patience: Patience = field(default_factory=Patience)
    keep_artifacts: bool = False
    monitor_interval: float | None = 1.0


class CaseRun:
    """Runs the steps that are asked for, in order, once; `finish` turns what happened into a record."""

    def __init__(
        self,
        config: EffectiveConfig,
        problems: Sequence[Problem],
        plan: Plan,
        found: FoundVendor,
        case: tuple[str, str],
        run_dir: Path,
        device: Assignment,
        options: RunOptions,
        on_progress: Progress,
        imports: Sequence[str] = (),
    ) -> None:
        self.config = config
        self.run_dir = run_dir
        self.record: RunRecord | None = None
        self._problems = tuple(problems) + tuple(plan.problems)
        self._plan = plan
        self._found = found
        self._case = case
        self._device = device
        self._options = options
        self._on_progress = on_progress
        self._imports = imports
        self._outcomes: dict[str, dict[str, Any]] = {}
        self._worker: CaseWorker | None = None
        self._monitor: MonitorProcess | None = None
        self._log = EventLog(run_dir / "events.jsonl")
        self._begun: Event | None = None

    def begin(self) -> dict[str, Any]:
        """Step 1: write down what is to be run, and start the case's process unless it is illegal."""
        if "init" in self._outcomes:
            return self._outcomes["init"]
        if not self._problems:
            warm_up(IMPORTED)  # while the facts are gathered
        self._begun = self._log.write("run_begin", **self._facts())
        self._log.write("step_begin", step="init")
        for warning in self._plan.warnings:
            self._on_progress({"note": f"WARNING {warning}"})
        if self._problems:
            lines = "\n".join(map(str, self._problems))
            return self._end("init", {"status": "failed", "reason": lines, "kind": None})
        (self.run_dir / "engine").mkdir()
        self._worker = CaseWorker(self._spec(), self._environment(), self._options.patience, self._imports)
        if self._options.monitor_interval is not None:
            self._monitor = MonitorProcess(
                self._found.name,
                self._found.vendors_dir,
                self._worker.group,
                None if self._device.index is None else [self._device.index],
                self.run_dir / "monitor.jsonl",
                self._options.monitor_interval,
                self.config.host.device,
            )
        return self._end("init", {"status": "done"})

    def step(self, name: str) -> dict[str, Any]:
        """Run one of the steps 2 to 6 and return its outcome: status, reason, kind, detail.

        After a failed step the rest is not reached. An interrupt is noted, ends the process, and goes on.
        """
        if name in self._outcomes:
            return self._outcomes[name]
        broken = next((n for n, outcome in self._outcomes.items() if outcome["status"] == "failed"), None)
        if broken:
            why = (self._outcomes[broken]["reason"] or "no reason recorded").partition("\n")[0]
            reason = f"not reached: step {broken} failed: {why}"
            return {"status": "not_reached", "reason": reason, "kind": self._outcomes[broken]["kind"]}
        if name in self._plan.skipped:
            return self._end(name, {"status": "skipped", "reason": self._plan.skipped[name]})
        assert self._worker is not None
        self._log.write("step_begin", step=name)
        try:
            outcome = self._worker.run(name, self._options.step_timeout, self._on_progress)
        except WorkerLost as lost:
            return self._end(name, {"status": "failed", "reason": str(lost), "kind": "error", "detail": lost.detail})
        except BaseException:
            self._outcomes[name] = {"status": "failed", "reason": "interrupted", "kind": "error"}
            try:
                self._log.write("interrupted", step=name)  # first: another interrupt may come
            finally:
                self._worker.kill()
            raise
        self._outcomes[name] = outcome
        return outcome

    def audit(self) -> dict[str, Any]:
        """The honesty checks that need a second compilation; not possible without the framework's model."""
        if self.config.no_validation or self.config.compiler is None:
            return {
                "status": "skipped",
                "reason": "an audit compiles the framework's model a second time",
                "kind": None,
            }
        return self.step("audit")

    def finish(self) -> RunRecord:
        """Step 7: end the process, collect the log, judge, and save the record.

        An interrupt is noted in the record, which is saved all the same, and goes on.

        Raises:
            OSError: the record can't be written.
        """
        try:
            if self.record is None:
                self._conclude({"status": "done"})
        except KeyboardInterrupt:
            if self.record is None:
                if self._worker:
                    self._worker.kill()
                self._log.write("interrupted", step="summary")
                self._conclude({"status": "failed", "reason": "interrupted", "kind": "error"})
            raise
        assert self.record is not None
        return self.record

    def _conclude(self, outcome: Mapping[str, Any]) -> None:
        if self._monitor:
            failure = self._monitor.stop()
            self._monitor = None
            if failure:
                self._log.write("monitor_failed", what=failure)
        if self._worker:
            self._worker.close()
        if "init" not in self._outcomes:
            self._begun = self._log.write("run_begin", **self._facts())
            self._log.write("interrupted", step="init")
        elif "engine_inference" not in self._outcomes and all(o["status"] != "failed" for o in self._outcomes.values()):
            self._log.write("partial")
        self._end("summary", outcome)
        record = collect(self.run_dir / "events.jsonl", self._begun)
        record = record.model_copy(update={"kept": of_case(record, self.config, self.run_dir)})
        if not self._options.keep_artifacts and not record.kept:
            remove_artifacts(self.run_dir)
        record.save(self.run_dir / "record.json")
        self.record = record
        self._log.close()

    def _end(self, step: str, outcome: Mapping[str, Any]) -> dict[str, Any]:
        full = {"reason": None, "kind": None, "detail": None, **outcome}
        self._outcomes[step] = full
        self._log.write("step_end", step=step, seconds=None, **full)
        return full

    def so_far(self) -> RunRecord:
        """What the log says at this moment, without ending anything."""
        return collect(self.run_dir / "events.jsonl", self._begun)

    def _facts(self) -> dict[str, Any]:
        vendor, precision = self._found.vendor, self.config.effective_precision
        compiler = self.config.compiler
        declared = vendor.compilers.get(compiler) if compiler else None
        packages = [*PACKAGES, *([declared.package] if declared and declared.package else [])]
        chip = describe_chip(vendor.chip(), vendor.chip_units(), precision, self._found.chips_file)
        return {
            "config": self.config.as_dict(),
            "compiler": compiler,
            "precision": precision,
            "gate": self._options.gate,
            "device": self._device.index,
            "problems": [vars(problem) for problem in self._problems],
            "versions": installed_versions(packages),
            "provenance": provenance_of(self._found).model_dump(),
            "host": describe_host(device_software(vendor)).model_dump(),
            "chip": chip.model_dump(),
            "expected_unsupported": self._found.expects_unsupported(
                f"{self.config.suite}/{self.config.case}", compiler, precision
            ),
        }

    def _environment(self) -> dict[str, str]:
        return tidy_environment(Path(self.config.host.cache_dir)) | self._device.environment

    def _spec(self) -> WorkerSpec:
        return WorkerSpec(
            case_module=self._case[0],
            case_class=self._case[1],
            vendor=self._found.name,
            vendors_dir=str(self._found.vendors_dir),
            compiler=self.config.compiler,
            config=self.config.as_dict(),
            run_dir=str(self.run_dir),
        )
