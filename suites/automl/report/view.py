"""What drawings of a search may show: nothing that tells of a speed where that is withheld."""

from __future__ import annotations

from proofmark.automl.outcome.record import AutoMLRecord, TrialRecord
from proofmark.automl.outcome.verdict import Rule, rules
from reports.content.view import View
from reports.content.withholding import without_speeds


class SearchView(View[AutoMLRecord]):
    """A search's record as it is drawn, without speeds where they are withheld."""

    def __init__(self, record: AutoMLRecord) -> None:
        super().__init__(record)
        self.rules: list[Rule] = rules(self.record)
        if self.withheld:
            self.record = without_speeds(self.record)

    def operations(self, trial: TrialRecord) -> str:
        """What made a trial's network of its parent's."""
        kinds = [str(operation.get("kind", "?")).replace("_", " ") for operation in trial.operations]
        return ", ".join(kinds) or "the seed"

    def hyperparameters(self, trial: TrialRecord) -> str:
        """In a line."""
        known = trial.hyperparameters
        parts = [f"kernel {known.get('kernel_size')}", f"batch {known.get('batch_size')}"]
        return ", ".join([*parts, f"dropout {known.get('dropout', 0.0):.2f}", *(["TPE"] if trial.sampled else [])])
