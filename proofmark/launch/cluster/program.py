"""The far end's modules as one text, which an interpreter on a host is started with."""

from __future__ import annotations

import re
from pathlib import Path

from proofmark.launch import far_end

MODULES = ("protocol", "caches", "child", "store", "facts", "run", "server")
"""Each after those that it needs."""

_AMONG_THEM = re.compile(r"^from (__future__|proofmark\.launch\.far_end\.\w+) import .*\n", re.MULTILINE)


def _joined() -> str:
    texts = [(Path(far_end.__path__[0]) / f"{name}.py").read_text(encoding="utf-8") for name in MODULES]
    return "from __future__ import annotations\n" + "".join(_AMONG_THEM.sub("", text) for text in texts)


PROGRAM = _joined()
