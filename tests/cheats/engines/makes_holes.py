"""Makes files of holes, which take no room, and years to whoever reads them to their end."""

import os
import time
from pathlib import Path
from typing import Any

from vendors.fake import honest

VERDICT, REASON = "ERROR", "filled its own directory with more than the 0.01 GiB of --scratch-limit, and was ended"


class InferModel(honest.InferModel):
    """Honest, but for that."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        for number in range(4):
            path = Path(os.environ["HOME"]) / f"{number}"
            path.touch()
            os.truncate(path, 1 << 35)
        time.sleep(60)  # somebody looks, and ends it
