"""Says that it was trained on other data than it had."""

from typing import Any

from proofmark.record.events.log import EventLog
from proofmark.vendor import TrainingAdapter

VERDICT, REASON = "FAIL_HONESTY", "the data that it says it was trained on"


class Adapter(TrainingAdapter):
    def __init__(self) -> None:
        honest = EventLog.write

        def write(log: Any, kind: str, /, **fields: Any) -> Any:
            return honest(log, kind, **fields | ({"sha256": "ab" * 32} if kind == "dataset" else {}))

        EventLog.write = write  # type: ignore[method-assign]
