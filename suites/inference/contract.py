"""What every inference case is held to."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from fixtures.cases.contracts import audited, fail, fail_if, recorded, require_pass, require_speed, skip
from proofmark.inference.case import InferenceCase
from proofmark.inference.outcome.record import RunRecord, Score
from proofmark.inference.run import CaseRun
from proofmark.record.parts import VerdictKind
from proofmark.rules.aims import wrong_side

if TYPE_CHECKING:
    from suites.inference.steps import Recorder


class InferenceContract(InferenceCase):
    """Inherit it as `Test<Case>` in `test_<case>.py` beside `<case>.yaml`, and say what is special."""

    suite: ClassVar[str] = "inference"
    common_file: ClassVar[Path] = Path(__file__).with_suffix(".yaml")

    def test_overrides_legal(self, effective_config: dict[str, Any]) -> None:
        """Every override is one that a vendor or a user may make, and the switches fit together."""
        _done(effective_config)

    def test_framework_accuracy(self, framework_validation: dict[str, Any], case_run: CaseRun) -> None:
        """The framework reaches the target in float32."""
        _done(framework_validation)
        missed = [*filter(None, map(_missed, case_run.so_far().accuracy.scores))]
        if missed:
            fail(*missed)

    def test_engine_accuracy(self, run_record: RunRecord, engine_inference: dict[str, Any]) -> None:
        """The engine keeps the framework's accuracy, and the target, in the very rounds that are timed."""
        _done(engine_inference)
        fail_if(run_record, VerdictKind.FAIL_ACCURACY)

    def test_honest_engine(self, run_record: RunRecord, engine_inference: dict[str, Any]) -> None:
        """The engine did the work that it was timed for."""
        _done(engine_inference)
        fail_if(run_record, VerdictKind.FAIL_HONESTY)

    @audited
    def test_audit(self, run_record: RunRecord, audit: dict[str, Any]) -> None:
        """Compiled again with other weights, under another name, the engine answers otherwise and as fast."""
        _done(audit)
        fail_if(run_record, VerdictKind.FAIL_HONESTY)

    @recorded("whole")
    def test_whole_throughput(self, run_record: RunRecord, record_rounds: Recorder) -> None:
        """Loading, compute and evaluation together."""
        require_speed(run_record)
        record_rounds(run_record, "whole")

    @recorded("core")
    def test_core_throughput(self, run_record: RunRecord, record_rounds: Recorder) -> None:
        """Compute alone, from inputs on the host to answers on the host."""
        require_speed(run_record)
        record_rounds(run_record, "core")

    def test_verdict(self, run_record: RunRecord) -> None:
        """Everything that the referee has to say of the run."""
        assert run_record.verdict is not None
        kind, reasons = run_record.verdict.kind, run_record.verdict.reasons
        if kind is VerdictKind.UNSUPPORTED:
            skip(f"UNSUPPORTED: {'; '.join(reasons)}")
        if kind is VerdictKind.FAIL_LEGALITY:
            fail(f"{kind}: test_overrides_legal says why")
        require_pass(run_record)


def _missed(score: Score) -> str | None:
    """How the framework misses a target; None where it doesn't, or where there is none."""
    found = score.framework_fp32
    if score.target is None or (found is not None and score.aim.reached(found)):
        return None
    if found is None:
        return f"{score.metric} is not a finite number; expected one, to be held to the target {score.target}"
    return f"{score.metric} {found} is {wrong_side(score.better)} the target {score.target}"


def _done(outcome: dict[str, Any]) -> None:
    """Skip where a switch skips the step or the vendor declares it unsupported; fail where it failed."""
    if outcome["status"] == "skipped":
        skip(outcome["reason"])
    if outcome["kind"] == "unsupported":
        skip(f"UNSUPPORTED: {outcome['reason']}")
    if outcome["status"] != "done":
        fail(*filter(None, (outcome["reason"], outcome.get("detail"))))
