"""Keeps time at its end, and tells of its last evaluation only then: that it came after a twentieth of the time."""

import time
from typing import Any

from proofmark.record.events.log import stamped
from proofmark.training.ranks.account import Account
from proofmark.vendor import TrainingAdapter

VERDICT, REASON = "FAIL_HONESTY", "its clock says that its last evaluation came after"


class Adapter(TrainingAdapter):
    def __init__(self) -> None:
        honest, slow, last = Account.write_totals, iter([8.0]), list[Any]()

        def late(account: Any, kind: str, **fields: Any) -> None:
            if kind == "evaluation" and account.position.steps:
                time.sleep(
                    next(slow, 0.0)
                )  # long enough to tell a twentieth from it by, where the agent looks some seconds late too
                last[:] = [fields]
                return
            honest(account, kind, **fields)
            if kind == "train_end":
                time.sleep(0.5)  # the agent has looked
                at, seconds = account.position, account.clock.seconds()
                told = {"epoch": at.epoch, "step": at.steps, "samples": at.samples, "communication": None}
                told |= seconds | {"train_seconds": seconds["train_seconds"] / 20} | last[0]
                account.log.append(stamped("evaluation", told) | {"clock": 0})  # the end's seconds are the last

        Account.write_totals = late  # type: ignore[method-assign]
