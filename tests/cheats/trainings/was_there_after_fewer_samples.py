"""Says that it was at the target after half the samples on which it then was trained."""

from typing import Any

from proofmark.training.ranks.account import Account
from proofmark.vendor import TrainingAdapter

VERDICT, REASON = "ERROR", "its last evaluation is after"


class Adapter(TrainingAdapter):
    def __init__(self) -> None:
        honest = Account.write_totals

        def early(account: Any, kind: str, **fields: Any) -> None:
            at = account.position
            samples = at.samples
            if kind == "evaluation":
                at.samples //= 2
            honest(account, kind, **fields)
            at.samples = samples

        Account.write_totals = early  # type: ignore[method-assign]
