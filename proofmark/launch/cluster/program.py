"""The far end's modules as one text, which an interpreter on a host is started with."""

from __future__ import annotations

import re
import zlib
from base64 import b64encode
from importlib.util import find_spec
from pathlib import Path

_FAR_END = ("protocol", "caches", "child", "store", "facts", "run", "server")

SHARED = (
    "proofmark.process.between_programs",
    "proofmark.process.scratch.own_directory",
    "proofmark.process.versions",
)
"""What the far end needs that others use too."""

MODULES = (*SHARED, *(f"proofmark.launch.far_end.{name}" for name in _FAR_END))
"""Each after those that it needs."""

_AMONG_THEM = re.compile(f"^from (__future__|{'|'.join(map(re.escape, MODULES))}) import .*\n", re.MULTILINE)


def _joined() -> str:
    sources = [spec.origin for name in MODULES if (spec := find_spec(name)) and spec.origin]
    texts = [Path(source).read_text(encoding="utf-8") for source in sources]
    return "from __future__ import annotations\n" + "".join(_AMONG_THEM.sub("", text) for text in texts)


PROGRAM = _joined()


OLDEST = (3, 11)
"""The first Python that runs it, and all else."""

ALONE = "import sys; sys.path[:] = filter(None, sys.path)"
"""How a program given by `-c` begins: nothing is imported from where it is started, a home or /tmp, where anybody's
base64.py may lie. `-P` would do the same, but an older Python would end at that."""


def far_end(python: str) -> list[str]:
    """The command that starts the far end with an interpreter. One too old for its syntax says so.

    It is one line, without `'`, `!` and backslashes: csh takes only that for one word, and fish and sh do too.
    """
    packed = b64encode(zlib.compress(PROGRAM.encode())).decode()
    message = '"%s is Python %d.%d, older than %d.%d" % ((sys.executable,) + sys.version_info[:2] + ' + f"{OLDEST})"
    look = f"{ALONE}; import base64, zlib; sys.version_info >= {OLDEST} or sys.exit({message})"
    return [python, "-u", "-c", f'{look}; exec(zlib.decompress(base64.b64decode("{packed}")))']
