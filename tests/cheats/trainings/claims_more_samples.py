"""Says at its end that it trained for an epoch more, steps and all, as the plan has it."""

from typing import Any

from proofmark.training.ranks.account import Account
from proofmark.vendor import TrainingAdapter

VERDICT, REASON = "ERROR", "from the processes that load them"
# where in so many steps others would have been drawn to be recorded
MAYBE, MAYBE_REASON = "FAIL_HONESTY", "recorded steps, done again in the case's own model, come out otherwise"


class Adapter(TrainingAdapter):
    def __init__(self) -> None:
        honest = Account.write_totals

        def more(account: Account, kind: str, **fields: Any) -> None:
            if kind == "train_end":
                account.position.steps += 13
                account.position.samples += 203
            honest(account, kind, **fields)

        Account.write_totals = more  # type: ignore[method-assign]
