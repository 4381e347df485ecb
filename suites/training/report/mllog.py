"""One run of a training as MLPerf's `:::MLLOG` lines, for `mlperf_logging` and what is built on it.

Only what the record knows: a key whose value or time nobody wrote down is left out. It is a research log of the open
division, no submission: cases are Proofmark's own, and whether caches were cleared is not told. Of a metric's values
the headline has a key there; the others have none.
"""

from __future__ import annotations

from typing import Any

from proofmark.training.outcome.record import Evaluation, SeedRun, TrainingRecord
from proofmark.training.outcome.shortfall import is_short
from reports.content.withholding import withheld, without_speeds
from suites.training.report.log_lines import LogLines, caller, milliseconds


def mllog(record: TrainingRecord, run: SeedRun) -> str:
    """The lines of one run, in the order of their times; only its beginning where its speed is withheld."""
    return _MLLog(record, without_speeds(run) if withheld(record.verdict) else run).write()


class _MLLog:
    def __init__(self, record: TrainingRecord, run: SeedRun) -> None:
        self._record, self._run, self._lines = record, run, LogLines(":::MLLOG")

    def write(self) -> str:
        run = self._run
        self._point("init_start", run.zero, None, "INTERVAL_START")
        for key, value in self._facts().items():
            if value is not None:
                self._point(key, run.zero, value)
        if run.init_seconds is not None:
            self._point("init_stop", run.zero + run.init_seconds, None, "INTERVAL_END")
        self._point("run_start", run.train_began, None, "INTERVAL_START")
        for epoch in run.epochs:
            number: dict[str, Any] = {"epoch_num": epoch.number + 1}
            self._point("epoch_start", epoch.began, None, "INTERVAL_START", **number)
            self._point("epoch_stop", epoch.ended, None, "INTERVAL_END", **number)
        for evaluation in run.evaluations:
            self._evaluation(evaluation)
        self._point("run_stop", run.train_ended, None, "INTERVAL_END", status=self._status())
        return self._lines.text()

    def _facts(self) -> dict[str, Any]:
        record = self._record
        return {
            "submission_benchmark": record.case,
            "submission_org": record.vendor,
            "submission_division": "open",
            "submission_status": "research",
            "submission_platform": f"{record.nnodes}x{record.nproc} {record.chip.name}",
            "seed": self._run.seed,
            "global_batch_size": record.global_batch_size,
            "gradient_accumulation_steps": record.config.get("gradient_accumulation_steps"),
            "train_samples": record.dataset.items if record.dataset else None,
            "eval_samples": record.validation_items,
            "opt_name": record.optimizer and record.optimizer.lower(),
            "opt_base_learning_rate": record.config.get("learning_rate"),
            "opt_weight_decay": record.config.get("weight_decay"),
        }

    def _evaluation(self, evaluation: Evaluation) -> None:
        """Those within the run: the one before it is of a model that nobody trained."""
        began, ended = evaluation.began, evaluation.ended
        if began is None or ended is None or self._run.train_began is None or began < self._run.train_began:
            return
        count: dict[str, Any] = {"samples_count": evaluation.samples}
        self._point("eval_start", began, None, "INTERVAL_START", **count)
        if evaluation.metric is not None:
            self._point("eval_accuracy", ended, evaluation.metric, **count)
        self._point("eval_stop", ended, None, "INTERVAL_END", **count)

    def _status(self) -> str:
        """A success is a time to the target that may be ranked: not that of a part of a training."""
        reached = not is_short(self._record, self._run)
        return "success" if reached and self._run.resumed_from is None else "aborted"

    def _point(self, key: str, time: float | None, value: Any, kind: str = "POINT_IN_TIME", **metadata: Any) -> None:
        """A line; none where nobody knows the time."""
        if time is None:
            return
        fields = {"namespace": "", "time_ms": milliseconds(time), "event_type": kind, "key": key, "value": value}
        self._lines.add(time, {**fields, "metadata": {**caller(), **metadata}})
