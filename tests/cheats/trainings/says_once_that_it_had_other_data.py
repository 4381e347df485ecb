"""Says of its first run, which misses its target, that it had other data, a larger model and another optimizer."""

import os
from typing import Any

from vendors.fake.trains_nothing_in_one_run_of_five import Log, tell_by

from proofmark.training.ranks.goal import Target
from proofmark.vendor import TrainingAdapter

VERDICT, REASON = "FAIL_HONESTY", "its ranks say of its dataset, optimizer, parameters something else"
CONFIG = "repeat: 5"

SAID: dict[str, dict[str, Any]] = {
    "dataset": {"name": "imagenet-22k", "sha256": "f" * 64},
    "model": {"parameters": 340_000_000},
    "optimizer": {"name": "LAMB"},
}


class Liar(Log):
    def write(self, kind: str, **fields: Any) -> None:
        self._log.write(kind, **fields | SAID.get(kind, {}))


class Adapter(TrainingAdapter):
    def __init__(self) -> None:
        if "round1" in os.environ["HOME"].split("/"):
            tell_by(Liar)
            Target.is_over = lambda *_: False  # type: ignore[method-assign]
