"""What every case of a search is held to."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from fixtures.cases.contracts import fail, recorded, require_pass, require_speed, skip
from proofmark.automl.case import AutoMLCase
from proofmark.automl.outcome.record import AutoMLRecord
from proofmark.automl.outcome.verdict import rules
from proofmark.automl.run import SearchRun
from proofmark.record.parts import VerdictKind

if TYPE_CHECKING:
    import pytest


class AutoMLContract(AutoMLCase):
    """Inherit it as `Test<Case>` in `test_<case>.py` beside `<case>.yaml`, and say what is special."""

    suite: ClassVar[str] = "automl"
    common_file: ClassVar[Path] = Path(__file__).with_suffix(".yaml")

    def test_overrides_legal(self, search_run: SearchRun) -> None:
        """Every override is of a mutable setting."""
        search_run.begin()
        if search_run.problems:
            fail(*map(str, search_run.problems))

    def test_trials_accounted_for(self, search_record: AutoMLRecord) -> None:
        """Each has an end, and a parent that was finished before it."""
        _supported(search_record)
        if search_record.failure:
            fail(search_record.failure)
        broken = [reason for rule in rules(search_record) if "accounted" in rule.name for reason in rule.broken]
        if broken:
            fail(*broken)

    def test_target_reached(self, search_record: AutoMLRecord) -> None:
        """The best network is good enough on data that no trial was chosen by."""
        _supported(search_record)
        found = search_record.held_out_accuracy
        assert found is not None, search_record.held_out_reason or "the best network was not evaluated"
        assert found >= search_record.target

    @recorded("images")
    def test_score(self, search_record: AutoMLRecord, benchmark: Any, request: pytest.FixtureRequest) -> None:
        """Images that networks were trained on, over all seconds of the search; the score is beside it."""
        from fixtures.outputs.benchmark import hand_over

        require_speed(search_record)
        if search_record.resumed:
            skip("resumed from a journal: a conformance result, no speed to rank")
        images, seconds = search_record.trained_images, search_record.search_seconds or 0.0
        hand_over(benchmark, request.node, search_record, "images", [images], [seconds])

    def test_verdict(self, search_record: AutoMLRecord) -> None:
        """Everything that the referee has to say of the search: all rules of validity."""
        _supported(search_record)
        require_pass(search_record)


def _supported(record: AutoMLRecord) -> None:
    if record.problems:
        skip("an override is illegal: nothing was searched")
    if record.verdict and record.verdict.kind is VerdictKind.UNSUPPORTED:
        skip(f"UNSUPPORTED: {record.unsupported}")
