"""Which files differ from a revision."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, order=True)
class Change:
    """A file that was added, edited or deleted; a renamed one is two, the old and the new.

    `path` is relative to the project's top folder, with slashes. `submodule`: it is another repository's commit, and
    what changed in there is not looked at.
    """

    path: str
    submodule: bool = False


@dataclass(frozen=True)
class Changes:
    """All that differs between a merge base and the working tree.

    Attributes:
        since: the revision, as it was given.
        base: the commit where this work left it: the merge base with HEAD.
        files: what differs, each once, in order of path.
        uncommitted: how many of them differ from HEAD too, or are not tracked.
        untracked: the paths of those that are not tracked.
    """

    since: str
    base: str
    files: tuple[Change, ...]
    uncommitted: int = 0
    untracked: tuple[str, ...] = ()

    def __str__(self) -> str:
        count = f"{len(self.files)} file{'' if len(self.files) == 1 else 's'}"
        beside = f", {self.uncommitted} of them not committed" if self.uncommitted else ""
        return f"{count} changed since {self.since} (merge base {self.base[:12]}){beside}"
