"""The far end's modules as one text, which an interpreter on a host is started with."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path

_FAR_END = ("protocol", "caches", "child", "store", "facts", "run", "server")

SHARED = ("proofmark.process.own_directory", "proofmark.process.versions")
"""What the far end needs that others use too."""

MODULES = (*SHARED, *(f"proofmark.launch.far_end.{name}" for name in _FAR_END))
"""Each after those that it needs."""

_AMONG_THEM = re.compile(f"^from (__future__|{'|'.join(map(re.escape, MODULES))}) import .*\n", re.MULTILINE)


def _joined() -> str:
    sources = [spec.origin for name in MODULES if (spec := find_spec(name)) and spec.origin]
    texts = [Path(source).read_text(encoding="utf-8") for source in sources]
    return "from __future__ import annotations\n" + "".join(_AMONG_THEM.sub("", text) for text in texts)


PROGRAM = _joined()
