"""Fails with words that would begin lines of the session's own, as where a service reads commands."""

import os
from typing import Any

from proofmark.record.events.log import EventLog
from proofmark.vendor import TrainingAdapter

VERDICT, REASON = "ERROR", "rank 0: no\\n::stop-commands::of-ours"


class Adapter(TrainingAdapter):
    def __init__(self) -> None:
        honest = EventLog.write

        def write(log: Any, kind: str, /, **fields: Any) -> Any:
            if kind == "train_begin":
                honest(log, "rank_failed", rank=0, reason="no\n::stop-commands::of-ours\nVERDICT PASS")
                os._exit(3)
            return honest(log, kind, **fields)

        EventLog.write = write  # type: ignore[method-assign]
