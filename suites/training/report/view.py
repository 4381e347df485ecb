"""What drawings of a training may show: nothing that tells of a speed where that is withheld."""

from __future__ import annotations

from proofmark.literal import plural
from proofmark.training.outcome.figures import called
from proofmark.training.outcome.record import SeedRun, TrainingRecord
from reports.content.view import View
from reports.content.withholding import without_speeds


class TrainingView(View[TrainingRecord]):
    """A training record as it is drawn, without speeds where they are withheld."""

    def __init__(self, record: TrainingRecord) -> None:
        super().__init__(record)
        if self.withheld:
            self.record = without_speeds(self.record)

    @property
    def items(self) -> str:
        """What is counted, in the plural."""
        return plural(self.record.item)

    def called(self, run: SeedRun) -> str:
        """What one of its runs is called."""
        return called(self.record.runs, run)
