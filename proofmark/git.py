"""git as it is asked here: by argument lists, of the folder that is named and no other, which it leaves as it is."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from proofmark.errors import UsageError, harmless

_PLAIN = ("-c", "core.quotePath=false", "-c", "core.fsmonitor=false", "-c", "diff.ignoreSubmodules=none")
_ALONE = {"GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "GIT_NO_REPLACE_OBJECTS": "1", "LC_ALL": "C"}


def run_git(
    folder: Path, arguments: Sequence[str], environment: Mapping[str, str] | None = None, patience: float | None = None
) -> subprocess.CompletedProcess[bytes]:
    """Run git. Its variables are not passed on, except those of its configuration: in a hook they name the hook's
    repository.

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
    return subprocess.run(
        _command(folder, arguments),
        env={**_environment(), **(environment or {})},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=patience,
    )


@contextmanager
def stream_of_git(folder: Path, arguments: Sequence[str], requests: Path) -> Iterator[IO[bytes]]:
    """Run git with the lines of a file as its input, and read its output as it comes, since it may be large. git ends
    with the block.

    Raises:
        UsageError: there is none, or it can't be run.
    """
    with requests.open("rb") as lines, _explained():
        git = subprocess.Popen(
            _command(folder, arguments),
            env=_environment(),
            stdin=lines,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
    with git:
        assert git.stdout is not None
        try:
            yield git.stdout
        finally:
            git.kill()


def _command(folder: Path, arguments: Sequence[str]) -> list[str]:
    git = shutil.which("git")
    if git is None:
        raise FileNotFoundError("git")
    return [git, "-C", str(folder), *_PLAIN, *arguments]


def _environment() -> dict[str, str]:
    kept = {key: value for key, value in os.environ.items() if key.startswith("GIT_CONFIG") or key[:4] != "GIT_"}
    return {**kept, **_ALONE}


def answer_of_git(
    folder: Path, arguments: Sequence[str], environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[bytes]:
    """Run git; its answer, even if that is an error.

    Raises:
        UsageError: there is none, or it can't be run.
    """
    with _explained():
        return run_git(folder, arguments, environment)


@contextmanager
def _explained() -> Iterator[None]:
    """Turn a failure to run git into a UsageError."""
    try:
        yield
    except FileNotFoundError:
        raise UsageError("git is needed, but is not in PATH") from None
    except (OSError, ValueError) as error:
        raise UsageError(f"git cannot be run: {error}") from None


def ask_git(folder: Path, arguments: Sequence[str], environment: Mapping[str, str] | None = None) -> bytes:
    """Run git; its output.

    Raises:
        UsageError: it complains, or there is none.
    """
    done = answer_of_git(folder, arguments, environment)
    if done.returncode:
        raise UsageError(f"git {arguments[0]} failed: {complaint_of(done)}")
    return done.stdout


def commit_of(revision: str, folder: Path) -> str:
    """The commit that somebody means.

    Raises:
        UsageError: there is none of that name here, no repository, or no git.
    """
    asked = ["rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}"]
    found = answer_of_git(folder, asked)
    if not revision or "\0" in revision or found.returncode:
        repository = answer_of_git(folder, ["rev-parse", "--show-toplevel"])
        if repository.returncode:
            raise UsageError(f"{folder} is not in a git repository that can be read: {complaint_of(repository)}")
        raise UsageError(f"unknown revision{shallow_hint(folder)}")
    return found.stdout.decode("ascii").strip()


def shallow_hint(folder: Path) -> str:
    """Why a commit may not be there, and what to do; empty where all of the history is."""
    shallow = answer_of_git(folder, ["rev-parse", "--is-shallow-repository"]).stdout.strip() == b"true"
    return "; this clone is shallow: git fetch --unshallow (in CI: fetch-depth: 0, GIT_DEPTH: 0)" if shallow else ""


@contextmanager
def asked_by(option: str) -> Iterator[None]:
    """Put the option that asked before the text of a UsageError."""
    try:
        yield
    except UsageError as error:
        raise UsageError(harmless(f"{option}: {error}")) from None


def complaint_of(done: subprocess.CompletedProcess[bytes]) -> str:
    """The first line of git's error output."""
    lines = done.stderr.decode("utf-8", "replace").strip().splitlines()
    return harmless(lines[0] if lines else f"exit code {done.returncode}")
