"""What of the environment an engine's process gets: what is on this list, and what its vendor's package asks for."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from fnmatch import fnmatchcase

from proofmark.process.lifetime import MARK, WITHIN
from proofmark.process.wall_clock import EPOCH
from proofmark.process.warm import READ_ONCE

ALLOWED = (
    *("PATH", "HOME", "USER", "LOGNAME", "LANG", "LANGUAGE", "LC_*", "TZ", "TERM", "TMPDIR", "DO_NOT_TRACK"),
    *(MARK, WITHIN, EPOCH),
    *(f"{prefix}*" for prefix in READ_ONCE),
)

SECRET = re.compile("TOKEN|SECRET|PASSW|CREDENTIAL|PRIVATE|_KEY|APIKEY", re.IGNORECASE)
"""In a name: no list lets it through."""


def engine_environment(wanted: Sequence[str] = ()) -> dict[str, str]:
    """That of an engine's process.

    Args:
        wanted: what the vendor asks for beside it; `*` at a name's end stands for any rest.
    """
    patterns = (*ALLOWED, *wanted)
    found = {
        name: value
        for name, value in os.environ.items()
        if any(fnmatchcase(name, pattern) for pattern in patterns) and not SECRET.search(name)
    }
    return found | {"PYTHONPATH": os.pathsep.join(sys.path)}
