"""`python -m MODULE` as a process of its own: forked from the warm one where there is one, or started from nothing."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from proofmark.finding import installed
from proofmark.process.environment import begun_with
from proofmark.process.warm.main import import_all
from proofmark.process.warm.process import Forked, Warm

_warm: Warm | None = None


def warm_up(modules: Sequence[str], environment: Mapping[str, str]) -> None:
    """Have a warm process that imports `modules`, where that can be: what fails to be imported there is left to others.

    Args:
        modules: what all that it forks will need.
        environment: beside what passes of this process's: what an import may look at.
    """
    global _warm
    if not _can_be():
        return
    if _warm is None or not _warm.usable or not _warm.suits(begun_with(environment, {})):
        if _warm:
            _warm.close()
        with contextlib.suppress(OSError):
            _warm = Warm.start(modules, environment)
    if _warm:
        _warm.prepare(modules, environment)


def split_off(modules: Sequence[str]) -> None:
    """Import `modules` here, and have a warm process that is forked from this one as it is then; or none, where that
    can't be. This process has no threads yet, and has run no vendor's code."""
    global _warm
    if _can_be():
        import_all(modules)
        with contextlib.suppress(OSError):
            _warm = Warm.split_off()


def fork_module(
    module: str,
    arguments: Sequence[str],
    descriptors: Sequence[int],
    environment: Mapping[str, str],
    imports: Sequence[str] = (),
    temporary: Path | None = None,
) -> Forked | None:
    """`python -m MODULE ARGUMENTS...` without its imports; None where it has to be started from nothing.

    Args: as of `Warm.fork`.
    """
    if _warm is None or not _warm.usable or not _warm.suits(environment):
        return None
    pid = _warm.fork(module, arguments, descriptors, environment, imports, temporary)
    return None if pid is None else Forked(pid)


def start_module(
    module: str,
    arguments: Sequence[str],
    passed: Sequence[int],
    output: int,
    environment: Mapping[str, str],
    imports: Sequence[str] = (),
    temporary: Path | None = None,
) -> subprocess.Popen[bytes] | Forked:
    """`python -P -m MODULE ARGUMENTS... PASSED...` in a session of its own, with a pipe as its standard input.

    Args:
        module: what runs.
        arguments: what it is told.
        passed: descriptors that it gets; their numbers there follow its arguments.
        output: the descriptor that it prints to, and writes its errors.
        environment: all of it.
        imports: modules that it will need, and the next ones too.
        temporary: a directory of its own that is made with it, so that there is always one of the two to remove it.
    """
    read, write = os.pipe()
    stdin = os.fdopen(write, "wb")
    try:
        forked = fork_module(module, arguments, (read, output, output, *passed), environment, imports, temporary)
    except BaseException:
        stdin.close()
        raise
    finally:
        os.close(read)
    if forked:
        forked.stdin = stdin
        return forked
    stdin.close()
    if temporary:  # there already where it was forked and its answer was lost
        temporary.mkdir(0o700, exist_ok=True)
    return subprocess.Popen(
        [sys.executable, "-P", "-m", module, *arguments, *map(str, passed)],
        stdin=subprocess.PIPE,
        stdout=output,
        stderr=output,
        pass_fds=passed,
        start_new_session=True,
        env=dict(environment),
    )


def _can_be() -> bool:
    """Not where an extension package of torch would touch its devices when torch is imported."""
    return sys.platform == "linux" and not installed("torch.backends")
