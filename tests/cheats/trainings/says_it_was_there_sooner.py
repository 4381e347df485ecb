"""Keeps time at its end, and says of each evaluation that it came after a twentieth of the time."""

import time
from typing import Any

from proofmark.training.ranks.account import Account
from proofmark.vendor import TrainingAdapter

VERDICT, REASON = "FAIL_HONESTY", "its clock says that its last evaluation came after"


class Adapter(TrainingAdapter):
    def __init__(self) -> None:
        honest, slow = Account.write_totals, iter([8])

        def early(account: Any, kind: str, **fields: Any) -> None:
            seconds = account.clock.seconds
            if kind == "evaluation" and account.position.steps:
                time.sleep(next(slow, 0.0))  # long enough to tell a twentieth from it, some seconds late too
                vars(account.clock)["seconds"] = lambda: seconds() | {"train_seconds": seconds()["train_seconds"] / 20}
            honest(account, kind, **fields)
            vars(account.clock).pop("seconds", None)

        Account.write_totals = early  # type: ignore[method-assign]
