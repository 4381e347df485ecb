"""What git knows of a working tree. It is only asked, by argument lists, and writes nothing."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from proofmark.affected.changes import Change, Changes
from proofmark.errors import UsageError
from proofmark.git import answer_of_git, ask_git, asked_by, commit_of, shallow_hint
from proofmark.git_content import SUBMODULE, unlike

_DIFF = ("diff", "--raw", "-z", "--no-renames", "--no-ext-diff", "--ignore-submodules=none", "--no-abbrev")


def changes_since(revision: str, house: Path) -> Changes:
    """What differs between the working tree and where it left `revision`: commits, the index, edits, new files.

    Args:
        revision: anything that git takes for a commit.
        house: the project's top folder; what lies outside it is told by a path that begins with `../`.

    Raises:
        UsageError: no git, no repository, no such revision, or no history that leads to both.
    """
    with asked_by(f"--changed-since {revision}"):
        commit = commit_of(revision, house)
        if answer_of_git(house, ["rev-parse", "--verify", "--quiet", "HEAD^{commit}"]).returncode:
            raise UsageError("HEAD has no commit yet: there is nothing to compare with")
        base = _merge_base(commit, "HEAD", house)
        differing = _differing_from(base, house)
        new = _split(ask_git(house, ["ls-files", "--others", "--exclude-standard", "-z"]))
        untracked = set(map(Change, new))
        edited = _differing_from("HEAD", house)
        outside = _outside(house, [base])
    files = tuple(sorted(differing | untracked | outside))
    return Changes(revision, base, files, len((edited | untracked) & set(files)), tuple(sorted(new)))


def changes_between(revision: str, head: str, house: Path) -> Changes:
    """What the commit `head` did since it left `revision`: --head and --since. The working tree is not looked at.

    Raises:
        UsageError: as of `changes_since`.
    """
    with asked_by(f"--head {head}"):
        tip = commit_of(head, house)
    with asked_by(f"--since {revision}"):
        base = _merge_base(commit_of(revision, house), tip, house)
        inside = set(_differing(ask_git(house, [*_DIFF, "--relative", base, tip, "--"])))
        return Changes(revision, base, tuple(sorted(inside | _outside(house, [base, tip]))))


def text_at(revision: str, path: str, house: Path, option: str = "--changed-since") -> str | None:
    """A file's text as it is in `revision`, which `option` gave; None where there is none.

    Raises:
        UsageError: no such revision, or the file is not UTF-8.
    """
    with asked_by(f"{option} {revision}"):
        found = answer_of_git(house, ["cat-file", "blob", f"{commit_of(revision, house)}:./{path}"])
    if found.returncode:
        return None
    try:
        return found.stdout.decode("utf-8")
    except UnicodeDecodeError:
        raise UsageError(f"{revision}:{path}: it is not UTF-8") from None


def has(head: str, path: str, house: Path) -> bool:
    """Whether the commit `head`, which --head gave, has a file or a folder.

    Raises:
        UsageError: as of `changes_since`.
    """
    with asked_by(f"--head {head}"):
        return not answer_of_git(house, ["cat-file", "-e", f"{commit_of(head, house)}:./{path}"]).returncode


def has_changed(path: str, between: Changes, house: Path) -> bool:
    """Whether the revision itself has changed a path since `head` left it: then neither has what both make together.

    Raises:
        UsageError: as of `changes_since`.
    """
    with asked_by(f"--since {between.since}"):
        commit = commit_of(between.since, house)
        return bool(ask_git(house, [*_DIFF, between.base, commit, "--", path]))


def _merge_base(commit: str, head: str, house: Path) -> str:
    """Where the two parted. Branches that were merged into each other have several such commits, and by any one of them
    what only one side has may look like what both have."""
    found = answer_of_git(house, ["merge-base", "--all", commit, head])
    if found.returncode:
        raise UsageError(f"it has no commit in common with {head}{shallow_hint(house)}")
    first, *others = found.stdout.decode("ascii").split()
    if others:
        raise UsageError(f"it and {head} were merged into each other: what {head} changes is unknown; merge it again")
    return first


def _differing_from(commit: str, house: Path) -> set[Change]:
    """What the working tree or the index has otherwise than a commit.

    git holds an edited file against the commit as its attributes would have it committed (`ident` turns any `$Id: $`
    into another, `eol` drops line ends), so each file's own bytes are looked at too. The index has what was committed.
    """
    answers = [ask_git(house, [*_DIFF, *which, "--relative", commit, "--"]) for which in ([], ["--cached"])]
    return {change for raw in answers for change in _differing(raw)} | set(map(Change, unlike(house, commit)))


def _differing(raw: bytes) -> Iterator[Change]:
    """`:mode mode object object status NUL path NUL`, again and again."""
    fields = _split(raw)
    for header, path in zip(fields[::2], fields[1::2], strict=True):
        modes = header.lstrip(":").split()[:2]
        yield Change(path, SUBMODULE in modes)


def _outside(house: Path, between: Sequence[str]) -> set[Change]:
    """What differs in the repository above the project's top folder."""
    below = os.fsdecode(ask_git(house, ["rev-parse", "--show-prefix"])).removesuffix("\n")
    if not below:
        return set()
    everywhere = _differing(ask_git(house, [*_DIFF, *between, "--"]))
    return {Change(f"../{each.path}", each.submodule) for each in everywhere if not each.path.startswith(below)}


def _split(output: bytes) -> list[str]:
    return [os.fsdecode(part) for part in output.split(b"\0")[:-1]]
