"""Says early that it is at the target, after all samples; is trained on them then, and ends twice: what it was shown is
counted at the second end, and the time to the target lasts to that early evaluation."""

import time
from typing import Any

from proofmark.training.ranks.account import Account
from proofmark.vendor import TrainingAdapter

VERDICT, REASON = "FAIL_HONESTY", "its clock says that its last evaluation came after"
SAMPLES, METRIC = 406, 0.9556650246305419


class Adapter(TrainingAdapter):
    def __init__(self) -> None:
        honest, told = Account.write_totals, iter([True])

        def early(account: Any, kind: str, **fields: Any) -> None:
            at = account.position
            if kind == "evaluation" and at.steps:
                if next(told, False):
                    samples, at.samples = at.samples, SAMPLES
                    honest(account, kind, **fields | {"metric": METRIC})
                    at.samples = samples
                    time.sleep(8)  # a busy agent looks some seconds late
                return
            honest(account, kind, **fields)
            if kind == "train_end":
                time.sleep(8)  # the agent has looked
                honest(account, kind, **fields)

        Account.write_totals = early  # type: ignore[method-assign]
