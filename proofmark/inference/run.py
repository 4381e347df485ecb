"""One run of one case, from its directory to its record. The parent's side."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from proofmark.errors import StepError
from proofmark.inference.case_log import CaseLog
from proofmark.inference.node.processes import CaseProcesses, Ending, ProcessesHere
from proofmark.inference.node.remote import RemoteProcesses
from proofmark.inference.node.spec import CaseSpec
from proofmark.inference.node.worker import Progress, WorkerLost
from proofmark.inference.options import RunOptions
from proofmark.inference.outcome.collect import collect
from proofmark.inference.outcome.kept import ARTIFACTS, WEIGHTS_OF_A_MODEL, of_case, remove_artifacts
from proofmark.inference.outcome.record import STEPS, RunRecord
from proofmark.inference.outcome.verdict import judge
from proofmark.inference.plan import Plan
from proofmark.launch.job import Launcher, caches_cleared_here
from proofmark.launch.job_file import index_in
from proofmark.process.warm.modules import warm_up
from proofmark.record.envelope import RECORD_FILE
from proofmark.record.events.log import LOG_FILE, Event
from proofmark.rules.config import Resolution
from proofmark.suite import Run
from proofmark.vendor.environment import referee_environment_of
from proofmark.vendor.hardware.devices import Assignment
from proofmark.vendor.hardware.provenance import run_facts
from proofmark.vendor.registry import FoundVendor

IMPORTED = ("torch.utils.data", "torch.utils.flop_counter", "proofmark.inference.steps.pipeline")
"""What every case's process imports."""


class CaseRun(Run[RunRecord]):
    """Runs the steps that are asked for, in order, once; `finish` turns what happened into a record."""

    def __init__(
        self,
        resolution: Resolution,
        plan: Plan,
        found: FoundVendor,
        case: tuple[str, str],
        run_dir: Path,
        device: Assignment,
        options: RunOptions,
        on_progress: Progress,
        launcher: Launcher | None,
        imports: Sequence[str],
        packages: Sequence[str],
    ) -> None:
        """Prepare; with a `launcher` the case's processes are on a host that it finds, else here on `device`.

        Args:
            imports: what the case's process imports.
            packages: those whose versions the record has, beside the compiler's.
        """
        self.config = options.with_vouched_onnx(resolution.config)
        self.run_dir = run_dir
        self.record: RunRecord | None = None
        self._problems = resolution.problems + tuple(plan.problems)
        self._plan = plan
        self._found = found
        self._case = case
        self._device = device
        self._options = options
        self._on_progress = on_progress
        self._imports, self._packages = imports, packages
        self._outcomes: dict[str, dict[str, Any]] = {}
        self._launcher = launcher
        self._processes: CaseProcesses | None = None
        self._log = CaseLog(run_dir / LOG_FILE)
        self._begun: Event | None = None

    def begin(self) -> dict[str, Any]:
        """Step 1: write down what is to be run, and start the case's processes unless it is illegal."""
        if "init" in self._outcomes:
            return self._outcomes["init"]
        if not self._problems and self._launcher is None:
            warm_up(IMPORTED, referee_environment_of(vars(self.config.host)))  # while the facts are gathered
        self._begun = self._log.write("run_begin", **self._facts())
        if self._options.validated is not None and self.config.host.validated_onnx:
            self._log.write("validated", **self._options.validated.model_dump(mode="json"))
        self._log.write("step_begin", step="init")
        for warning in self._plan.warnings:
            self._on_progress({"note": f"WARNING {warning}"})
        if self._problems:
            lines = "\n".join(map(str, self._problems))
            return self._end("init", {"status": "failed", "reason": lines, "kind": None})
        if self._launcher is None:
            if self._options.clear_caches:
                self._clear_caches()
            index = index_in(self.config.host.cache_dir)
            try:
                self._processes = ProcessesHere(self._spec(), self._found, self.run_dir, self._device, index)
            except OSError as error:
                why = f"its processes could not be started: {error}"
                return self._end("init", {"status": "failed", "reason": why, "kind": "error"})
            return self._end("init", {"status": "done"})
        launcher = self._launcher
        return self._noting_interrupts("init", lambda: self._begin_there(launcher))

    def _clear_caches(self) -> None:
        caches = caches_cleared_here()
        self._log.write("caches", cleared=caches.cleared, reason=caches.reason)
        if caches.warning:
            self._on_progress({"note": caches.warning})

    def _begin_there(self, launcher: Launcher) -> dict[str, Any]:
        """Processes on a host, and what that one is."""
        self._processes = there = RemoteProcesses(self._spec(), launcher)
        try:
            self._log.write("launched", **there.begin(self._on_progress))
        except WorkerLost as lost:
            return self._end("init", {"status": "failed", "reason": str(lost), "kind": "error", "detail": lost.detail})
        return self._end("init", {"status": "done"})

    def step(self, name: str) -> dict[str, Any]:
        """Run one of the steps 2 to 6, or the audit, and return its outcome: status, reason, kind, detail.

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
        self._log.write("step_begin", step=name)
        return self._noting_interrupts(name, lambda: self._run(name))

    def _run(self, name: str) -> dict[str, Any]:
        assert self._processes is not None
        begun = time.perf_counter()
        try:
            outcome = self._processes.run(name, self._hear)
        except WorkerLost as lost:
            return self._end(name, {"status": "failed", "reason": str(lost), "kind": "error", "detail": lost.detail})
        except OSError as error:
            self._processes.kill()
            reason = f"the event log cannot be written: {error}"
            outcome = self._outcomes[name] = {"status": "failed", "reason": reason, "kind": "error", "detail": None}
            return outcome
        return self._end(name, outcome, time.perf_counter() - begun)

    def _hear(self, report: dict[str, Any]) -> None:
        """Take a report of the case's process: an event goes into the log, anything else to the progress."""
        assert self._processes is not None
        if "event" not in report:
            self._on_progress(report)
            return
        try:
            self._log.take(report["event"])
        except ValueError as error:
            self._processes.kill()
            reason = f"the case's process reported an event that it may not report, and was ended: {error}"
            raise WorkerLost(reason) from None

    def _noting_interrupts(self, name: str, work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """What `work` returns; an interrupt is logged, ends the process, and is raised again."""
        try:
            return work()
        except BaseException:
            self._outcomes[name] = {"status": "failed", "reason": "interrupted", "kind": "error"}
            try:
                self._log.write("interrupted", step=name)  # first: another interrupt may come
            finally:
                if self._processes:
                    self._processes.kill()
            raise

    def again(self) -> Mapping[str, float]:
        """One short round more of what was measured: core and whole, items per second."""
        assert self._processes is not None
        last_event: Event = {}

        def hear(report: dict[str, Any]) -> None:
            self._hear(report)
            last_event.update(report.get("event", {}))

        try:
            outcome = self._processes.run("short_round", hear)
        except WorkerLost as lost:
            raise StepError(str(lost)) from None
        if outcome["status"] != "done":
            raise StepError(str(outcome["reason"]))
        return {name: last_event["items"] / max(last_event[f"{name}_ns"], 1) * 1e9 for name in ("core", "whole")}

    def judged_so_far(self) -> RunRecord:
        """The record as if the summary were done, judged."""
        record = self.so_far()
        done = [step.model_copy(update={"status": "done"}) if step.name == "summary" else step for step in record.steps]
        record = record.model_copy(update={"steps": tuple(done)})
        return record.model_copy(update={"verdict": judge(record)})

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
                if self._processes:
                    self._processes.kill()
                self._log.write("interrupted", step="summary")
                self._conclude({"status": "failed", "reason": "interrupted", "kind": "error"})
            raise
        assert self.record is not None
        return self.record

    def _conclude(self, outcome: Mapping[str, Any]) -> None:
        ending = self._processes.close() if self._processes else Ending()
        if ending.monitor_failure:
            self._log.write("monitor_failed", what=ending.monitor_failure)
        if "init" not in self._outcomes:
            self._begun = self._log.write("run_begin", **self._facts())
            self._log.write("interrupted", step="init")
        elif "engine_inference" not in self._outcomes and self._is_well():
            if self.interrupted:
                following = next(name for name in STEPS if name not in self._outcomes)
                self._log.write("interrupted", step=following)
            else:
                self._log.write("stopped" if self.stopped else "partial")
        if ending.lost and outcome["status"] == "done" and self._is_well():
            outcome = {"status": "failed", "reason": ending.lost, "kind": "error"}
        self._end("summary", outcome)
        record = self._with_kept(self.so_far())
        record.save(self.run_dir / RECORD_FILE)
        self.record = record
        self._log.close()

    def _is_well(self) -> bool:
        """Whether no step has failed."""
        return all(outcome["status"] != "failed" for outcome in self._outcomes.values())

    def _with_kept(self, record: RunRecord) -> RunRecord:
        """Bring and list what a failed run left, remove what nobody needs, and release the host."""
        were_there = self._outcomes.get("init", {}).get("status") == "done"
        if self._processes and were_there and (self._options.keep_artifacts or record.failed):
            wrong = self._processes.fetch((*ARTIFACTS, WEIGHTS_OF_A_MODEL))
            if wrong and self._launcher:
                self._on_progress({"note": f"WARNING not all that it left there came home: {wrong}"})
        kept = of_case(record, self.config, self.run_dir, here=self._launcher is None)
        if not self._options.keep_artifacts and not kept:
            remove_artifacts(self.run_dir)
        if self._processes:
            self._processes.release(self._is_well())
        return record.model_copy(update={"kept": kept})

    def _end(self, step: str, outcome: Mapping[str, Any], seconds: float | None = None) -> dict[str, Any]:
        full = {key: outcome.get(key) for key in ("status", "reason", "kind", "detail")}
        self._outcomes[step] = full
        self._log.write("step_end", step=step, seconds=seconds, **full)
        return full

    def so_far(self) -> RunRecord:
        """The record that the log gives at this moment, without ending anything."""
        return collect(self.run_dir / LOG_FILE, self._begun, self._log.seal)

    def _facts(self) -> dict[str, Any]:
        compiler = self.config.compiler
        declared = self._found.vendor.compilers.get(compiler) if compiler else None
        packages = [*self._packages, *([declared.package] if declared and declared.package else [])]
        return {
            **run_facts(self._found, self.config, self.config.effective_precision, compiler, packages),
            "policy": self._options.policy.model_dump(mode="json"),
            "compiler": compiler,
            "gate": self._options.policy.accuracy_ratio,
            "device": self._device.index,
            "framework_held": True,  # older runs, which asked a framework for no checks, are judged without
            "problems": [vars(problem) for problem in self._problems],
        }

    def _spec(self) -> CaseSpec:
        return CaseSpec(
            case=self._case,
            vendor=self._found.name,
            vendors_dir=str(self._found.vendors_dir),
            compiler=self.config.compiler,
            config=self.config.as_dict(),
            directory=str(self.run_dir),
            sys_path=tuple(sys.path),
            step_timeout=self._options.step_timeout,
            hang_timeout=self._options.patience.hang,
            setup_timeout=self._options.patience.setup,
            monitor_interval=self._options.monitor_interval,
            imports=tuple(self._imports),
        )
