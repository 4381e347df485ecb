"""Adds rounds that were never run to the event log, each with the digest of the one before it."""

import atexit
import json
from pathlib import Path
from typing import Any

from vendors.fake import honest

from proofmark.record.integrity.chain import LINK, digest_of

WALL = "none"
VERDICT, REASON = "ERROR", "the event log was changed by somebody else than the session"


class InferModel(honest.InferModel):
    """Computes as it should."""

    def __init__(self, config: Any, *given: Any) -> None:
        super().__init__(config, *given)
        atexit.register(append, Path(config.host.artifact_dir).parent / "events.jsonl")


def append(log: Path) -> None:
    events = [json.loads(line) for line in log.read_text().splitlines()]
    a_round, last = next(each for each in events if each["event"] == "round"), events[-1]
    with log.open("a") as stream:
        for number in range(3, 203):
            last = {**a_round, "of": "engine", "number": number, "batch_ns": [1000] * 7, LINK: digest_of(last)}
            stream.write(json.dumps(last) + "\n")
