"""git as it is asked here: by argument lists, of the folder that is named and no other, which it leaves as it is."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

_PLAIN = ("-c", "core.quotePath=false", "-c", "core.fsmonitor=false", "-c", "diff.ignoreSubmodules=none")
_ALONE = {"GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "GIT_NO_REPLACE_OBJECTS": "1", "LC_ALL": "C"}


def run_git(
    folder: Path, arguments: Sequence[str], environment: Mapping[str, str] | None = None, patience: float | None = None
) -> subprocess.CompletedProcess[bytes]:
    """Ask it. Variables of git's are left out, but for its configuration: a hook has those of its own repository.

    Args:
        folder: in the repository.
        arguments: the command and what it is given.
        environment: variables to be added.
        patience: seconds that it may take; None: as many as it takes.

    Raises:
        FileNotFoundError: there is no git in PATH.
        OSError, ValueError: it can't be run.
        subprocess.TimeoutExpired: it did not answer in time.
    """
    git = shutil.which("git")
    if git is None:
        raise FileNotFoundError("git")
    kept = {key: value for key, value in os.environ.items() if key.startswith("GIT_CONFIG") or key[:4] != "GIT_"}
    return subprocess.run(
        [git, "-C", str(folder), *_PLAIN, *arguments],
        env={**kept, **_ALONE, **(environment or {})},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=patience,
    )
