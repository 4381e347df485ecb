"""Renames into another folder, which the first Landlock refuses."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from proofmark.wall.landlock import version
from proofmark.wall.renames import FORBIDS, _bridged

BEHIND = """
import os, sys
from pathlib import Path
from proofmark.wall import landlock, renames
landlock.version = lambda: 1
writable = landlock.WRITE & ~landlock.Access.REFER
landlock.restrict({Path("/"): landlock.READ, Path(sys.argv[1]): writable}, True, False, True)
ready, kept = Path(sys.argv[1], "ready/x"), Path(sys.argv[1], "x")
try:
    os.replace(ready, kept)
except OSError as error:
    print(error.errno)
renames.bridge()
ready.replace(kept)
print(kept.read_text(), ready.exists(), sorted(os.listdir(sys.argv[1])))
"""


def has_landlock() -> bool:
    try:
        return version() > 0
    except OSError:
        return False


@pytest.mark.skipif(not has_landlock(), reason="needs a kernel with Landlock")
def test_a_file_comes_where_it_is_to_be(tmp_path: Path) -> None:
    (tmp_path / "ready").mkdir()
    (tmp_path / "ready/x").write_text("made")
    ran = subprocess.run([sys.executable, "-c", BEHIND, str(tmp_path)], capture_output=True, text=True, check=False)
    assert ran.stdout.splitlines() == [str(errno.EXDEV), "made False ['ready', 'x']"], ran.stderr
    assert FORBIDS == 1


def test_what_is_no_file_or_fails_otherwise_is_refused_as_ever(tmp_path: Path) -> None:
    def refuses(code: int) -> None:
        raise OSError(code, os.strerror(code))

    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    across, denied = (_bridged(lambda *_, code=code, **__: refuses(code)) for code in (errno.EXDEV, errno.EACCES))
    for rename, source in ((across, "folder"), (across, "gone"), (denied, "file")):
        with pytest.raises(OSError, match="."):
            rename(tmp_path / source, tmp_path / "there")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "folder"]
