"""How much a process may keep in a directory of its own."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from proofmark.process import quota
from proofmark.process.own_directory import lay_open, remove
from proofmark.process.quota import LEAST, Quota, held


def test_what_is_held_is_what_the_disk_has_of_it(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "large").write_bytes(b"x" * 100_000)
    (tmp_path / "empty").touch()
    os.truncate(tmp_path / "empty", 1 << 40)  # a hole takes no room
    os.symlink("/usr", tmp_path / "link")
    assert 100_000 <= held([tmp_path, tmp_path / "not there"], 1e12) <= 100_000 + 6 * LEAST


def test_empty_files_count(tmp_path: Path) -> None:
    for number in range(10):
        (tmp_path / str(number)).touch()
    assert held([tmp_path], 1e12) == 10 * LEAST
    assert held([tmp_path], 3 * LEAST) == 4 * LEAST, "no further than needed"


def test_more_than_allowed_is_said_with_the_option(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    watched = Quota([tmp_path], 1 << 20)
    assert watched.exceeded() is None
    (tmp_path / "file").write_bytes(b"x" * (2 << 20))
    assert watched.exceeded() is None, "too early to look again"
    monkeypatch.setattr(quota.time, "monotonic", lambda now=quota.time.monotonic: now() + 10)
    assert watched.exceeded() == "filled its own directory with more than the 0.000977 GiB of --own-directory"


def test_a_folder_that_hides_what_it_holds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever runs the tests may be allowed to look into any: then the kernel's refusal is played."""
    hidden = tmp_path / "hidden"
    (hidden / "below").mkdir(parents=True)
    (hidden / "below" / "file").write_bytes(b"x" * LEAST)
    hidden.chmod(0o300)
    look = os.scandir

    def refused(path: str | Path) -> object:
        if str(path) == str(hidden) and not hidden.stat().st_mode & 0o400:
            raise PermissionError(13, "Permission denied", str(path))
        return look(path)

    monkeypatch.setattr(os, "scandir", refused)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert (
        Quota([tmp_path], 1 << 30).exceeded()
        == "hid a folder in its own directory from whoever looks how much is there"
    )
    lay_open(tmp_path)
    assert [path.name for path in (hidden / "below").iterdir()] == ["file"]
    assert Quota([tmp_path], 1 << 30).exceeded() is None
    hidden.chmod(0o300)
    remove(tmp_path / "hidden")
    assert not hidden.exists()


def test_root_changes_no_modes_where_a_link_may_lead_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "folder").mkdir(mode=0o755)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    lay_open(tmp_path)
    assert (tmp_path / "folder").stat().st_mode & 0o777 == 0o755
