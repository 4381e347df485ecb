"""What every training case is held to, at every scale."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from fixtures.cases.contracts import audited, fail, fail_if, recorded, require_pass, require_speed, skip
from proofmark.record.parts import VerdictKind
from proofmark.training.case import TrainingCase
from proofmark.training.logs.gist import gist
from proofmark.training.outcome.record import TrainingRecord
from proofmark.training.run import ScaleRun

if TYPE_CHECKING:
    from suites.training.runs import SeedRecorder


class TrainingContract(TrainingCase):
    """Inherit it as `Test<Case>` in `test_<case>.py` beside `<case>.yaml`, and say what is special."""

    suite: ClassVar[str] = "training"
    common_file: ClassVar[Path] = Path(__file__).with_suffix(".yaml")

    def test_overrides_legal(self, scale_run: ScaleRun) -> None:
        """Every override is of a mutable setting, and the batch fits the scale."""
        scale_run.begin()
        if scale_run.problems:
            fail(*map(str, scale_run.problems))

    def test_ranks_finish(self, training_record: TrainingRecord, scale_run: ScaleRun) -> None:
        """Every rank came to its end; a seed that diverged has missed the target, which few of many may."""
        short = training_record.verdict and training_record.verdict.kind is VerdictKind.FAIL_ACCURACY
        ended = ((number, run.failure) for number, run in enumerate(training_record.runs, 1))
        failed = [(number, failure) for number, failure in ended if failure and (short or not failure.diverged)]
        if failed:
            gists = (gist(failure, scale_run.run_dir / f"round{number}", Path.cwd()) for number, failure in failed)
            fail(*itertools.chain.from_iterable(gists))
        _legal(training_record)

    def test_target_reached(self, training_record: TrainingRecord) -> None:
        """The metric reaches the target within the limits, from every seed."""
        _legal(training_record)
        fail_if(training_record, VerdictKind.FAIL_ACCURACY)
        assert training_record.runs, "nothing was trained"

    @audited
    def test_audit(self, training_record: TrainingRecord) -> None:
        """Recorded steps, done again in the case's own model without the vendor's code, come out alike."""
        _legal(training_record)
        fail_if(training_record, VerdictKind.FAIL_HONESTY)

    @recorded("raw")
    def test_raw_throughput(self, training_record: TrainingRecord, record_runs: SeedRecorder) -> None:
        """Samples over all of training, evaluations included."""
        _rankable(training_record)
        record_runs(training_record, "raw")

    @recorded("no_eval")
    def test_no_eval_throughput(self, training_record: TrainingRecord, record_runs: SeedRecorder) -> None:
        """Samples over training without its evaluations."""
        _rankable(training_record)
        record_runs(training_record, "no_eval")

    @recorded("pure_compute")
    def test_pure_compute_throughput(self, training_record: TrainingRecord, record_runs: SeedRecorder) -> None:
        """Samples over the synchronised compute of the slowest rank."""
        _rankable(training_record)
        record_runs(training_record, "pure_compute")

    def test_verdict(self, training_record: TrainingRecord) -> None:
        """Everything that the referee has to say of the training."""
        _supported(training_record)
        require_pass(training_record)


def _legal(record: TrainingRecord) -> None:
    if record.problems:
        skip("an override is illegal: nothing was trained")
    _supported(record)


def _supported(record: TrainingRecord) -> None:
    if record.verdict and record.verdict.kind is VerdictKind.UNSUPPORTED:
        skip(f"UNSUPPORTED: {record.unsupported}")


def _rankable(record: TrainingRecord) -> None:
    require_speed(record)
    if record.resumed:
        skip("resumed from a checkpoint: a conformance result, no speed to rank")
