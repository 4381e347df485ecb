"""One run of a training as FlagPerf's `[PerfLog]` lines, for tools that read its logs.

Events, names of figures and units (seconds, items per second) are FlagPerf's. Unlike there, SUBMIT_INFO carries the
effective configuration and the verdict, the rank is the global one, and a figure that nobody has is null.
"""

from __future__ import annotations

from typing import Any

from proofmark.training.outcome.record import Evaluation, SeedRun, TrainingRecord
from proofmark.training.outcome.shortfall import is_short
from reports.content.withholding import withheld, without_speeds
from suites.training.report.log_lines import LogLines, caller, milliseconds

SUBMITTED = {
    *("suite", "case", "profile", "vendor", "precision", "item", "config_hash", "config", "overrides", "versions"),
    *("host", "chip", "dataset", "flops", "scale", "nnodes", "nproc", "metric", "target", "better", "repeats"),
    *("global_batch_size", "train_batch_size", "optimizer", "validation_items", "adapted", "verdict"),
}
"""What SUBMIT_INFO says of a training, beside the seed of the run; the verdict says why a log may end there."""


def perflog(record: TrainingRecord, run: SeedRun) -> str:
    """The lines of one run. A run that broke off has no FINISHED.

    Where speed is withheld times are null, but that of its beginning: those of the lines too.
    """
    return _PerfLog(record, run).write()


class _PerfLog:
    def __init__(self, record: TrainingRecord, run: SeedRun) -> None:
        self._record, self._run, self._lines = record, run, LogLines("[PerfLog]")
        self._withheld = withheld(record.verdict) is not None

    def write(self) -> str:
        record, run = self._record, self._run
        submitted = record.model_dump(mode="json", include=SUBMITTED)
        others = record.model_dump(mode="json", include={"others"}) if record.others else {}
        self._event("SUBMIT_INFO", run.started, {**submitted, **others, "seed": run.seed})
        self._event("INIT_START", run.zero)
        if run.init_seconds is not None:
            self._event("INIT_END", run.zero + run.init_seconds)
        self._event("TRAIN_START", run.train_began)
        for evaluation in run.evaluations:
            self._evaluation(evaluation)
        self._steps_and_epochs()
        self._event("TRAIN_END", run.train_ended)
        if run.converged is not None and run.e2e_seconds is not None:
            shown = without_speeds(run) if self._withheld else run
            self._event("FINISHED", run.zero + run.e2e_seconds, finished(record, shown))
        return self._lines.text()

    def _evaluation(self, evaluation: Evaluation) -> None:
        began, ended = self._run.train_began, evaluation.ended
        within = began is not None and ended is not None and ended > began
        seconds = None if self._withheld else evaluation.seconds
        value = {"num_trained_samples": evaluation.samples, "train_time": seconds}
        name = "EVALUATE" if within else "INIT_EVALUATION"
        self._event(name, ended, {self._record.metric: evaluation.metric, **evaluation.others, **value})

    def _steps_and_epochs(self) -> None:
        for note in self._run.notes:
            value = {"loss": note.loss, "epoch": note.epoch, "global_steps": note.step}
            more = {"num_trained_samples": note.samples, "learning_rate": note.learning_rate}
            self._event("STEP_END", note.time, value | more)
        for epoch in self._run.epochs:
            self._event("EPOCH_BEGIN", epoch.began, {"epoch": epoch.number})
            self._event("EPOCH_END", epoch.ended, {"epoch": epoch.number})

    def _event(self, name: str, time: float | None, value: dict[str, Any] | None = None) -> None:
        """A line; none where nobody knows the time."""
        if time is None:
            return
        content: dict[str, Any] = {"event": name} if value is None else {"event": name, "value": value}
        shown = time in (self._run.started, self._run.zero) or not self._withheld
        metadata = {**caller(), "time_ms": milliseconds(time) if shown else None, "rank": 0}
        self._lines.add(time, {**content, "metadata": metadata})


def finished(record: TrainingRecord, run: SeedRun) -> dict[str, Any]:
    """FlagPerf's `finished_info`."""
    rates = run.rates
    return {
        "e2e_time": run.e2e_seconds,
        "init_time": run.init_seconds,
        "raw_train_time": run.train_seconds,
        "train_time": run.train_seconds,
        "train_no_eval_time": run.no_eval_seconds,
        "pure_training_computing_time": run.pure_compute_seconds,
        "training_sequences_per_second": rates and rates.raw,
        "throughput(ips)_raw": rates and rates.raw,
        "throughput(ips)_no_eval": rates and rates.no_eval,
        "throughput(ips)_pure_compute": rates and rates.pure_compute,
        "converged": run.converged and not is_short(record, run),
        f"final_{record.metric}": run.metric,
        **{f"final_{name}": value for name, value in run.metrics.items()},
        "final_loss": run.losses[-1][1] if run.losses else None,
        **({} if run.resumed_from is None else {"resumed_from_step": run.resumed_from}),
    }
