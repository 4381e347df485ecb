"""Lays the record of a case that nobody ran into the session's folder."""

from pathlib import Path
from typing import Any

from vendors.fake import honest

WALL = "none"
VERDICT, REASON = "PASS", ""
SESSION = "inference/marvel/record.json: it is not the record of a case of this session; somebody else put it there"


class InferModel(honest.InferModel):
    """Computes as it should."""

    def __init__(self, config: Any, *given: Any) -> None:
        super().__init__(config, *given)
        folder = Path(config.host.artifact_dir).parents[1] / "marvel"
        folder.mkdir()
        (folder / "record.json").write_text('{"schema_version": 3, "case": "marvel", "verdict": {"kind": "PASS"}}')
