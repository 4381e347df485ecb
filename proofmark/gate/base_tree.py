"""A revision's files in a folder of their own, byte for byte as they are committed, and the packages that they need.

Not `git worktree add`, which writes into the repository: it leaves an entry there where a session is killed, and can't
be where .git may only be read, as in CI. Nor `git checkout-index`, which asks the session's own working tree, the head,
for the attributes of the base's files: by `ident` or a filter the head would write the base. An index of its own is
filled, which refuses paths that lead out of a tree, and contents are read from the repository.
"""

from __future__ import annotations

import filecmp
import os
import re
import site
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from proofmark.errors import UsageError, harmless
from proofmark.git import ask_git, asked_by, commit_of, shallow_hint
from proofmark.git_content import SUBMODULE, entries_in, unlike, write_files
from proofmark.process.lifetime import marked

REQUIREMENTS = ("requirements.txt", "constraints.txt")
"""Files that say which packages a tree needs."""


@dataclass(frozen=True)
class Repository:
    """Where a house's history is.

    Attributes:
        top: the folder that git calls so.
        house: where in it the house is; often ".".
    """

    top: Path
    house: Path

    @classmethod
    def of(cls, house: Path) -> Repository:
        """The repository of a house.

        Raises:
            UsageError: there is none, or no git.
        """
        top = Path(_asked(house, "rev-parse", "--show-toplevel")).resolve()
        return cls(top, house.resolve().relative_to(top))

    def commit(self, revision: str) -> str:
        """The commit that somebody means.

        Raises:
            UsageError: there is none of that name here.
        """
        try:
            return commit_of(revision, self.top)
        except UsageError:
            missing = f"no such revision and no such file{shallow_hint(self.top)}"
            raise UsageError(f"--compare {harmless(revision)}: {missing}") from None

    @property
    def dirty(self) -> bool:
        """Whether files differ from the commit that is checked out."""
        house = self.top / self.house
        if _asked(self.top, "status", "--porcelain", "--", str(house)):
            return True
        with asked_by("--compare"):
            return bool(unlike(house, "HEAD"))

    def extract(self, commit: str, into: Path) -> Path:
        """Write a commit's files; the house among them.

        Raises:
            UsageError: a submodule's commit is not here, or git fails.
        """
        _extract(self.top, commit, into / "tree", into / "index")
        house = into / "tree" / self.house
        if not (house / "conftest.py").is_file():
            raise UsageError(f"--compare: {commit[:12]} has no conftest.py in {self.house}: not a Proofmark checkout")
        return house


def _extract(repository: Path, commit: str, tree: Path, index: Path) -> None:
    environment = {"GIT_INDEX_FILE": str(index)}
    index.parent.mkdir(parents=True, exist_ok=True)
    tree.mkdir(parents=True, exist_ok=True)
    with asked_by("--compare"):
        ask_git(repository, ["read-tree", commit], environment)
        entries = tuple(entries_in(ask_git(repository, ["ls-files", "--stage", "-z"], environment)))
        try:
            write_files(repository, entries, tree, index.with_name(f"{index.name}-contents"))
        except OSError as error:
            raise UsageError(f"the files of {commit[:12]} cannot be written to {tree}: {error.strerror}") from None
    for number, entry in enumerate(each for each in entries if each.mode == SUBMODULE):
        own_index = index.with_name(f"{index.name}-{number}")
        _submodule(repository / entry.path, entry.object, tree / entry.path, own_index)


def _submodule(folder: Path, commit: str, tree: Path, index: Path) -> None:
    """From its own clone beside this session's files: nothing is fetched."""
    try:
        _asked(folder, "cat-file", "-e", f"{commit}^{{commit}}")
    except UsageError:
        what = f"submodule {folder.name} at {commit[:12]} is not in this clone"
        todo = "git submodule update --init, and fetch that commit; one that the head has no more, clone where it was"
        raise UsageError(f"--compare: {what}: {todo}") from None
    _extract(folder, commit, tree, index)


def python_of(base: Path, head: Path, into: Path, mark: str) -> str:
    """What runs the base: this Python, or that of an environment made for it where its requirements are others.

    Args:
        base: its tree.
        head: that of this session.
        into: where the environment is made.
        mark: of what makes it, which runs on where this process is killed.

    Raises:
        UsageError: they can't be installed.
    """
    if all(_alike(base / name, head / name) for name in REQUIREMENTS):
        return sys.executable
    if not (base / REQUIREMENTS[0]).is_file():
        return sys.executable
    venv.create(into, symlinks=True)
    python = str(into / "bin" / "python")
    if not _named(head) - _named(base):  # what only the head requires may make what it finds there slower
        _show(into, site.getsitepackages())
    _install(base, python, into / "temporary", mark)
    return python


def _named(tree: Path) -> frozenset[str]:
    """The packages that a tree's requirements name, as they are spelt for comparing; whole lines that name others."""
    files = [tree / name for name in REQUIREMENTS if (tree / name).is_file()]
    lines = [line.strip() for file in files for line in file.read_text("utf-8", errors="replace").splitlines()]
    names = (
        (line, re.match(r"([A-Za-z0-9][\w.-]*)\s*(?:[\[<>=!~;,#]|$)", line)) for line in lines if line[:1] not in "#"
    )
    return frozenset(re.sub(r"[-_.]+", "-", name[1]).lower() if name else line for line, name in names)


def _show(environment: Path, folders: Iterable[str]) -> None:
    """What no requirement names lies in this session's folders, or where a .pth file in them leads to: a vendor's own
    packages, which may be editable, and its build of torch."""
    path = sysconfig.get_path("purelib", "venv", {"base": str(environment)})
    lines = (f"import site; site.addsitedir({folder!r})\n" for folder in folders)
    Path(path, "of_the_head.pth").write_text("".join(lines))


def _install(base: Path, python: str, temporary: Path, mark: str) -> None:
    """Install what a tree requires. What pip builds it in lies in `temporary`: one that is killed leaves it behind."""
    temporary.mkdir()
    held = ["-c", REQUIREMENTS[1]] if (base / REQUIREMENTS[1]).is_file() else []
    pip = [sys.executable, "-m", "pip", "--python", python, "--disable-pip-version-check"]
    command = [*pip, "install", "--quiet", *held, "-r", REQUIREMENTS[0]]
    ran = subprocess.run(
        command,
        cwd=base,
        env={**os.environ, **marked(mark), "TMPDIR": str(temporary)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
    )
    if ran.returncode:
        last = next((line for line in reversed(ran.stderr.splitlines()) if line.startswith("ERROR")), "pip failed")
        raise UsageError(f"--compare: what the base requires can't be installed: {harmless(last)}")


def _alike(one: Path, other: Path) -> bool:
    if not (one.is_file() and other.is_file()):
        return one.is_file() == other.is_file()
    return filecmp.cmp(one, other, shallow=False)


def _asked(folder: Path, *arguments: str, **environment: str) -> str:
    """The output of a git command.

    Raises:
        UsageError: it is not there, or complains.
    """
    with asked_by("--compare"):
        return os.fsdecode(ask_git(folder, arguments, environment)).strip()
