"""What drawings of a search may show: nothing that tells of a speed where that is withheld."""

from __future__ import annotations

import heapq
from functools import cached_property

from proofmark.automl.outcome.record import AutoMLRecord, TrialRecord
from proofmark.automl.outcome.verdict import Rule, rules
from proofmark.record.parts import VerdictKind
from reports.content.view import View
from reports.content.withholding import without_speeds

MOST = 1000
"""Rows of the table of trials."""


class SearchView(View[AutoMLRecord]):
    """A search's record as it is drawn, without speeds where they are withheld."""

    def __init__(self, record: AutoMLRecord) -> None:
        super().__init__(record)
        self.rules: list[Rule] = rules(self.record)
        if self.withheld:
            self.record = without_speeds(self.record)

    @cached_property
    def rows(self) -> list[TrialRecord]:
        """Trials for the table: all of them, or as many as a page can hold."""
        trials = self.record.trials
        if len(trials) <= MOST:
            return list(trials)
        best = heapq.nlargest(MOST // 2, trials, key=lambda trial: (trial.accuracy or -1.0, -trial.number))
        chosen = {trial.number: trial for trial in (*best, *trials[-MOST // 2 :])}
        return [chosen[number] for number in sorted(chosen)]

    def kept(self, rule: Rule) -> str:
        """Whether a rule is kept; of a search that goes on, what can be known by now."""
        if self.record.as_of is not None and rule.kind is not VerdictKind.FAIL_HONESTY:
            return "known in the end"
        return "; ".join(rule.broken) or ("so far" if self.record.as_of is not None else "yes")

    def operations(self, trial: TrialRecord) -> str:
        """What made a trial's network of its parent's."""
        kinds = [str(operation.get("kind", "?")).replace("_", " ") for operation in trial.operations]
        return ", ".join(kinds) or "the seed"

    def stopped_early(self, trial: TrialRecord) -> bool:
        """Whether a trial has not had all epochs that it was given."""
        trained = sum(epoch.images > 0 for epoch in trial.epochs)
        return bool(trial.stopped_early) and (trial.asked is None or trained < trial.asked)

    def hyperparameters(self, trial: TrialRecord) -> str:
        """In a line."""
        known = trial.hyperparameters
        parts = [f"kernel {known.get('kernel_size')}", f"batch {known.get('batch_size')}"]
        return ", ".join([*parts, f"dropout {known.get('dropout') or 0.0:.2f}", *(["TPE"] if trial.sampled else [])])
