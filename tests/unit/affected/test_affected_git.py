"""Real repositories, small ones."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from proofmark.affected.__main__ import main
from proofmark.affected.changes import Change
from proofmark.affected.git import changes_between, changes_since, text_at
from proofmark.errors import UsageError

Git = Callable[..., str]


def git_in(folder: Path) -> Git:
    def run(*arguments: str) -> str:
        identity = ["-c", "user.name=n", "-c", "user.email=n@localhost", "-c", "protocol.file.allow=always"]
        settled = ["-c", "maintenance.auto=false"]  # which git 2.47 does behind itself, in a folder that may go
        command = ["git", "-C", str(folder), *identity, *settled, *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    return run


@pytest.fixture
def git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Git:
    """A repository in `house`, with two files on main and a branch `work` checked out."""
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    house = tmp_path / "house"
    house.mkdir()
    run = git_in(house)
    run("init", "-q", "-b", "main")
    (house / "a.py").write_text("a = 1\n" * 20)
    (house / "b.py").write_text("b = 1\n")
    (house / ".gitignore").write_text("results/\n")
    run("add", "-A")
    run("commit", "-qm", "base")
    run("checkout", "-qb", "work")
    return run


@pytest.fixture
def house(tmp_path: Path, git: Git) -> Path:
    return tmp_path / "house"


def paths(house: Path, revision: str = "main") -> list[str]:
    return [change.path for change in changes_since(revision, house).files]


def test_commits_the_index_edits_and_new_files_count_and_ignored_ones_do_not(house: Path, git: Git) -> None:
    (house / "committed.py").write_text("")
    git("add", "-A")
    git("commit", "-qm", "one")
    (house / "staged.py").write_text("")
    git("add", "staged.py")
    (house / "b.py").write_text("b = 2\n")
    (house / 'new\n"file" é.py').write_text("")
    (house / "results").mkdir()
    (house / "results/x").write_text("")
    found = changes_since("main", house)
    assert [c.path for c in found.files] == ["b.py", "committed.py", 'new\n"file" é.py', "staged.py"]
    assert found.uncommitted == 3
    assert found.untracked == ('new\n"file" é.py',)
    assert str(found).startswith("4 files changed since main (merge base ")
    assert git("status", "--porcelain") == git("status", "--porcelain")


def test_a_rename_is_both_sides_and_a_deletion_counts(house: Path, git: Git) -> None:
    git("mv", "a.py", "c.py")
    git("rm", "-q", "b.py")
    git("commit", "-qm", "moved")
    assert paths(house) == ["a.py", "b.py", "c.py"]


def test_only_what_this_side_did_since_the_merge_base(house: Path, git: Git) -> None:
    (house / "mine.py").write_text("")
    git("add", "-A")
    git("commit", "-qm", "mine")
    git("checkout", "-q", "main")
    (house / "theirs.py").write_text("")
    git("add", "-A")
    git("commit", "-qm", "theirs")
    git("checkout", "-q", "work")
    assert paths(house) == ["mine.py"]
    assert text_at("main", "theirs.py", house) == ""
    assert text_at("main", "mine.py", house) is None


def test_what_is_above_the_projects_folder_is_told_too(house: Path, git: Git) -> None:
    (house / "inner").mkdir()
    (house / "inner/x.py").write_text("")
    (house / "b.py").write_text("b = 3\n")
    git("add", "-A")
    git("commit", "-qm", "both")
    assert paths(house / "inner") == ["../b.py", "x.py"]
    assert text_at("work", "x.py", house / "inner") == ""


def test_a_submodule_is_told_as_one(house: Path, git: Git, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    theirs = git_in(other)
    theirs("init", "-q")
    (other / "x").write_text("1")
    theirs("add", "-A")
    theirs("commit", "-qm", "x")
    git("submodule", "add", "-q", str(other), "part")
    git("commit", "-qm", "a submodule")
    assert Change("part", submodule=True) in changes_since("main", house).files
    (house / "part/x").write_text("2")  # edited within
    assert changes_since("work", house).files == (Change("part", submodule=True),)


@pytest.mark.parametrize("revision", ["nothing", "-x", "--output=/tmp/x", "", "main\0", "main;true", "HEAD~99", ":/"])
def test_an_unknown_revision_is_one_line(house: Path, git: Git, revision: str) -> None:
    with pytest.raises(UsageError, match="^--changed-since .*: (unknown revision|git cannot be run)") as refused:
        changes_since(revision, house)
    assert "\n" not in str(refused.value)


def test_a_shallow_clone_is_told_how_to_be_whole(house: Path, git: Git, tmp_path: Path) -> None:
    for number in range(3):
        (house / "b.py").write_text(f"b = {number + 5}\n")
        git("commit", "-qam", "more")
    clone = tmp_path / "clone"
    git("clone", "-q", "--depth", "1", "--no-single-branch", f"file://{house}", str(clone))
    for revision, words in (("origin/main", "no commit in common"), ("work~2", "unknown revision")):
        with pytest.raises(UsageError, match=f"{words}.*fetch-depth: 0"):
            changes_since(revision, clone)


def test_unrelated_histories_no_commit_no_repository_and_no_git(
    house: Path, git: Git, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    git("checkout", "-q", "--orphan", "alone")
    with pytest.raises(UsageError, match="HEAD has no commit yet"):
        changes_since("main", house)
    git("commit", "-qm", "alone")
    with pytest.raises(UsageError, match="no commit in common with HEAD$"):
        changes_since("main", house)
    with pytest.raises(UsageError, match="is not in a git repository that can be read"):
        changes_since("main", tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UsageError, match="is not in PATH"):
        changes_since("main", house)


def test_the_variables_of_a_hook_lead_nowhere_else(house: Path, git: Git, monkeypatch: pytest.MonkeyPatch) -> None:
    (house / "b.py").write_text("b = 9\n")
    monkeypatch.setenv("GIT_DIR", "/nowhere")
    monkeypatch.setenv("GIT_INDEX_FILE", "/nowhere/index")
    assert paths(house) == ["b.py"]


def test_a_commit_is_judged_without_being_checked_out(
    house: Path, git: Git, capsys: pytest.CaptureFixture[str]
) -> None:
    rule = house / "ci/rooms.yaml"
    rule.parent.mkdir()
    rule.write_text("version: 1\nvendor_may_touch: ['vendors/{vendor}/']\n")
    git("add", "-A")
    git("commit", "-qm", "a rule")
    git("branch", "base")
    for branch, files in {"own": ["vendors/acme/a.py"], "beyond": ["vendors/acme/a.py", "x.py"]}.items():
        git("checkout", "-qb", branch, "base")
        for name in files:
            (house / name).parent.mkdir(parents=True, exist_ok=True)
            (house / name).write_text("")
        git("add", "-A")
        git("commit", "-qm", branch)
    git("checkout", "-q", "base")

    def judged(*arguments: str) -> tuple[int, str, str]:
        code = main(["--in", str(house), *arguments])
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    assert judged("--since", "base", "--head", "own")[:2] == (0, "vendor=acme\n")
    code, output, words = judged("--since", "base", "--head", "beyond")
    assert (code, output) == (1, "") and "it touches what a vendor may not: x.py" in words
    code, output, words = judged("--since", "main", "--head", "own")  # without a rule nothing is a vendor's
    assert (code, output) == (1, "") and "not judged as vendor acme's" in words
    code, output, words = judged("--since", "base", "--head=--output=x")
    assert (code, output, words) == (4, "", "ERROR: --head --output=x: unknown revision\n")
    code, output, words = judged("--since", "nothing", "--head", "own")
    assert (code, output, words) == (4, "", "ERROR: --since nothing: unknown revision\n")
    words = judged("--since", "base", "--head", "own", "--in", str(house.parent))[2]
    assert words.startswith(f"ERROR: --since base: {house.parent} is not in a git repository that can be read: ")
    git("checkout", "-qb", "newer", "base")
    (house / "vendors/acme").mkdir(parents=True)
    (house / "vendors/acme/b.py").write_text("")
    git("add", "-A")
    git("commit", "-qm", "another's, of the same vendor")
    code, output, words = judged("--since", "newer", "--head", "own")
    assert (code, output) == (1, "") and words.endswith(
        "newer has changed vendors/acme/ since: merge newer into it, and what is judged is what will be merged\n"
    )
    git("checkout", "-qb", "retired")
    git("rm", "-qr", "vendors/acme")
    git("commit", "-qm", "without the vendor")
    code, output, words = judged("--since", "newer", "--head", "retired")
    assert (code, output) == (1, "") and "vendors/acme/ is deleted: nothing of it is left to run" in words
    git("checkout", "-q", "--orphan", "alone")
    assert judged("--since", "base", "--head", "own")[0] == 0, "HEAD is nobody's business"
    git("commit", "-qm", "alone")
    words = judged("--since", "base", "--head", "alone")[2]
    assert words.startswith("ERROR: --since base: it has no commit in common with ")


def test_branches_that_were_merged_into_each_other_hide_no_change(house: Path, git: Git) -> None:
    """By one of the two commits that both have, what another one mends is of both: merged, it would be undone."""
    for branch, name in (("main", "a.py"), ("work", "b.py")):
        git("checkout", "-q", branch)
        (house / name).write_text("mended\n")
        git("commit", "-qam", name)
    git("checkout", "-q", "main")
    mended = git("rev-parse", "main"), git("rev-parse", "work")
    git("merge", "-q", "--no-edit", "work")
    undone = git("commit-tree", "-p", mended[0], "-p", mended[1], "-m", "undone", f"{mended[0]}^{{tree}}")
    with pytest.raises(UsageError, match="^--since main: it and .* were merged into each other"):
        changes_between("main", undone, house)


def test_an_ignored_file_counts_once_it_is_in_the_index(house: Path, git: Git) -> None:
    (house / "results").mkdir()
    (house / "results/x.py").write_text("")
    assert paths(house) == []
    git("add", "--force", "results")
    assert paths(house) == ["results/x.py"]


HIDDEN = {
    "*.py ident": ("# $Id$\n", "# $Id: half of it $\n"),
    "*.py text": ("a = 1\n", "a = 1\r\n"),
    "*.py eol=crlf": ("a = 1\n", "a = 1\r\n"),
    "*.py filter=blank": ("a = 1\n", "a = 1  # half\n"),
    "*.py working-tree-encoding=UTF-16": ("a = 1\n", "a = 1\n".encode("utf-16").decode("latin-1")),
}
"""What stands in an attributes file, a file as it is committed, and another that git takes for the same."""


@pytest.mark.parametrize("where", [".gitattributes", "vendors/acme/.gitattributes", ".git/info/attributes"])
@pytest.mark.parametrize("rule", HIDDEN)
def test_attributes_hide_no_change(house: Path, git: Git, rule: str, where: str) -> None:
    """As the card's workflow lays a request over the base: the index has what git makes of it."""
    engine = house / "vendors/acme/engine.py"
    engine.parent.mkdir(parents=True)
    (house / where).parent.mkdir(exist_ok=True)
    git("config", "filter.blank.clean", "sed 's/  # half//'")
    before, after = (text.encode("latin-1") for text in HIDDEN[rule])
    engine.write_bytes(before)
    git("add", "-A")  # without the attributes: as it is
    (house / where).write_text(f"{rule}\n")
    git("add", "--", *([where] if where.startswith(("v", ".gita")) else []))
    git("commit", "-qm", "base", "--allow-empty")
    git("branch", "planted")
    engine.write_bytes(after)
    git("add", "--force", "vendors/acme")
    assert "vendors/acme/engine.py" in paths(house, "planted")
    assert changes_since("planted", house).uncommitted == 1


def test_a_committed_change_that_attributes_hide_in_the_working_tree_counts(house: Path, git: Git) -> None:
    (house / "b.py").write_text("# $Id$\n")
    git("commit", "-qam", "base")
    git("branch", "planted")
    (house / "b.py").write_text("# $Id: half of it $\n")
    git("commit", "-qam", "work")
    (house / ".git/info/attributes").write_text("*.py ident\n")
    (house / "b.py").write_text("# $Id$\n")
    assert paths(house, "planted") == ["b.py"]


def test_line_ends_that_the_user_asked_git_for_are_no_change(house: Path, git: Git) -> None:
    git("config", "core.autocrlf", "true")
    for name in ("a.py", "b.py"):
        (house / name).unlink()
    git("checkout", "-q", ".")
    assert (house / "b.py").read_bytes() == b"b = 1\r\n"
    assert paths(house) == []
    git("config", "core.autocrlf", "input")
    assert paths(house) == ["a.py", "b.py"]


def test_a_link_is_compared_by_where_it_leads(house: Path, git: Git) -> None:
    (house / "link").symlink_to("a.py")
    git("add", "-A")
    git("commit", "-qm", "link")
    assert paths(house, "work") == []
    (house / "link").unlink()
    (house / "link").symlink_to("b.py")
    assert paths(house, "work") == ["link"]


def test_a_tracked_file_that_cannot_be_read_is_told_in_a_line(
    house: Path, git: Git, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(path: Path) -> bytes:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "read_bytes", refused)
    with pytest.raises(UsageError, match=r"cannot be compared with what is committed: Permission denied"):
        changes_since("main", house)
