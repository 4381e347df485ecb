"""Says of its losses that they are of steps whose number no reader of its record can hold."""

from typing import Any

from proofmark.training.ranks.account import Account
from proofmark.vendor import TrainingAdapter

VERDICT, REASON = "ERROR", "losses from step"


class Adapter(TrainingAdapter):
    def __init__(self) -> None:
        honest = Account.write_totals

        def write(account: Account, kind: str, **fields: Any) -> None:
            honest(account, kind, **fields | ({"first": (1 << 40) - 1} if kind == "steps" else {}))

        Account.write_totals = write  # type: ignore[method-assign]
