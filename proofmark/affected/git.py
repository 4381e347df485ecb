"""What git knows of a working tree. It is only asked, by argument lists, and writes nothing."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from proofmark.affected.changes import Change, Changes
from proofmark.errors import UsageError, harmless
from proofmark.git import run_git

SUBMODULE = "160000"
"""The mode of an entry that is another repository's commit."""

_DIFF = ("diff", "--raw", "-z", "--no-renames", "--no-ext-diff", "--ignore-submodules=none", "--no-abbrev")


def changes_since(revision: str, house: Path) -> Changes:
    """What differs between the working tree and where it left `revision`: commits, the index, edits, new files.

    Args:
        revision: anything that git takes for a commit.
        house: the project's top folder; what lies outside it is told by a path that begins with `../`.

    Raises:
        UsageError: no git, no repository, no such revision, or no history that leads to both.
    """
    with _asked(f"--changed-since {revision}"):
        commit = _commit(revision, house)
        if _run(house, ["rev-parse", "--verify", "--quiet", "HEAD^{commit}"]).returncode:
            raise UsageError("HEAD has no commit yet: there is nothing to compare with")
        base = _merge_base(commit, "HEAD", house)
        differing = set(_differing(_git(house, [*_DIFF, "--relative", base, "--"])))
        untracked = {Change(path) for path in _split(_git(house, ["ls-files", "--others", "--exclude-standard", "-z"]))}
        edited = set(_differing(_git(house, [*_DIFF, "--relative", "HEAD", "--"])))
        outside = _outside(house, [base])
    files = tuple(sorted(differing | untracked | outside))
    new = tuple(sorted(each.path for each in untracked))
    return Changes(revision, base, files, len((edited | untracked) & set(files)), new)


def changes_between(revision: str, head: str, house: Path) -> Changes:
    """What the commit `head` did since it left `revision`: --head and --since. The working tree is not looked at.

    Raises:
        UsageError: as of `changes_since`.
    """
    with _asked(f"--head {head}"):
        tip = _commit(head, house)
    with _asked(f"--since {revision}"):
        base = _merge_base(_commit(revision, house), tip, house)
        inside = set(_differing(_git(house, [*_DIFF, "--relative", base, tip, "--"])))
        return Changes(revision, base, tuple(sorted(inside | _outside(house, [base, tip]))))


def text_at(revision: str, path: str, house: Path, option: str = "--changed-since") -> str | None:
    """A file's text as it is in `revision`, which `option` gave; None where there is none.

    Raises:
        UsageError: no such revision, or the file is not UTF-8.
    """
    with _asked(f"{option} {revision}"):
        found = _run(house, ["cat-file", "blob", f"{_commit(revision, house)}:./{path}"])
    if found.returncode:
        return None
    try:
        return found.stdout.decode("utf-8")
    except UnicodeDecodeError:
        raise UsageError(f"{revision}:{path}: it is not UTF-8") from None


@contextmanager
def _asked(option: str) -> Iterator[None]:
    """What is wrong is told of the option that asked, with its value."""
    try:
        yield
    except UsageError as error:
        raise UsageError(harmless(f"{option}: {error}")) from None


def _look_for_repository(house: Path) -> None:
    found = _run(house, ["rev-parse", "--show-toplevel"])
    if found.returncode:
        raise UsageError(f"{house} is not in a git repository that can be read: {_said(found)}")


def _commit(revision: str, house: Path) -> str:
    found = _run(house, ["rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}"])
    if not revision or "\0" in revision or found.returncode:
        _look_for_repository(house)
        raise UsageError(f"unknown revision{_if_shallow(house)}")
    return found.stdout.decode("ascii").strip()


def _merge_base(commit: str, head: str, house: Path) -> str:
    found = _run(house, ["merge-base", commit, head])
    if found.returncode:
        raise UsageError(f"it has no commit in common with {head}{_if_shallow(house)}")
    return found.stdout.decode("ascii").split()[0]


def _if_shallow(house: Path) -> str:
    shallow = _run(house, ["rev-parse", "--is-shallow-repository"]).stdout.strip() == b"true"
    return "; this clone is shallow: fetch the whole history (fetch-depth: 0, GIT_DEPTH: 0)" if shallow else ""


def _differing(raw: bytes) -> Iterator[Change]:
    """`:mode mode object object status NUL path NUL`, again and again."""
    fields = _split(raw)
    for told, path in zip(fields[::2], fields[1::2], strict=True):
        modes = told.lstrip(":").split()[:2]
        yield Change(path, SUBMODULE in modes)


def _outside(house: Path, between: Sequence[str]) -> set[Change]:
    """What differs in the repository above the project's top folder."""
    below = os.fsdecode(_git(house, ["rev-parse", "--show-prefix"])).removesuffix("\n")
    if not below:
        return set()
    everywhere = _differing(_git(house, [*_DIFF, *between, "--"]))
    return {Change(f"../{each.path}", each.submodule) for each in everywhere if not each.path.startswith(below)}


def _split(output: bytes) -> list[str]:
    return [os.fsdecode(part) for part in output.split(b"\0")[:-1]]


def _git(house: Path, arguments: Sequence[str]) -> bytes:
    done = _run(house, arguments)
    if done.returncode:
        raise UsageError(f"git {arguments[0]} failed: {_said(done)}")
    return done.stdout


def _run(house: Path, arguments: Sequence[str]) -> subprocess.CompletedProcess[bytes]:
    try:
        return run_git(house, arguments)
    except FileNotFoundError:
        raise UsageError("git is needed, but is not in PATH") from None
    except (OSError, ValueError) as error:
        raise UsageError(f"git cannot be run: {error}") from None


def _said(done: subprocess.CompletedProcess[bytes]) -> str:
    lines = done.stderr.decode("utf-8", "replace").strip().splitlines()
    return harmless(lines[0] if lines else f"exit code {done.returncode}")
