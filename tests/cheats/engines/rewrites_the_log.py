"""Makes all times in the event log a tenth when its process exits."""

import atexit
import re
from pathlib import Path
from typing import Any

from vendors.fake import honest

WALL = "none"
VERDICT, REASON = "ERROR", "the event log was changed by somebody else than the session"


class InferModel(honest.InferModel):
    """Computes as it should."""

    def __init__(self, config: Any, *given: Any) -> None:
        super().__init__(config, *given)
        atexit.register(rewrite, Path(config.host.artifact_dir).parent / "events.jsonl")


def rewrite(log: Path) -> None:
    log.write_text(re.sub(r'"batch_ns":\[(\d)', r'"batch_ns":[1,\1', log.read_text()))
