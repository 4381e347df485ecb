"""Lays a monitor's log into its directory, and a folder where the session would write its table; then it fails."""

import os
from pathlib import Path
from typing import Any

from vendors.fake import honest

VERDICT, REASON = "ERROR", "this is all"


class InferModel(honest.InferModel):
    """Can't be made."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        home = Path(os.environ["HOME"])
        (home / "monitor.jsonl").write_text('{"time": 1.0, "devices": []}\n')
        (home / "monitor.csv").mkdir()
        raise ValueError("this is all")
