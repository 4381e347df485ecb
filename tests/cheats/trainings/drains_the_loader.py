"""Takes an epoch of batches at its end, and says that it trained on them, as the plan has it."""

from collections.abc import Iterator
from typing import Any

from proofmark.training.feeding.fed import Fed
from proofmark.training.ranks.account import Account
from proofmark.vendor import TrainingAdapter

VERDICT, REASON = "ERROR", "from the processes that load them"
STILL = "who takes batches and says that it trained on them has been handed them out: steps are counted by ranks alone"


class Adapter(TrainingAdapter):
    def __init__(self) -> None:
        batches, honest, taken = Fed.batches, Account.write_totals, list[Iterator[Any]]()

        def kept(fed: Fed, *at: int) -> Iterator[Any]:
            taken.append(batches(fed, *at))
            return taken[0]

        def more(account: Account, kind: str, **fields: Any) -> None:
            if kind == "train_end":
                for _ in range(13):
                    next(taken[0])
                account.position.steps += 13
                account.position.samples += 203
            honest(account, kind, **fields)

        Fed.batches = kept  # type: ignore[method-assign]
        Account.write_totals = more  # type: ignore[method-assign]
