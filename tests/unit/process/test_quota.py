"""How much a process may keep in a directory of its own."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from proofmark.process.scratch import quota
from proofmark.process.scratch.own_directory import lay_open, remove
from proofmark.process.scratch.quota import LEAST, Quota, held
from tests.disks import nest


def test_what_is_held_is_what_the_disk_has_of_it(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "large").write_bytes(b"x" * 100_000)
    (tmp_path / "empty").touch()
    os.symlink("/usr", tmp_path / "link")
    assert 100_000 <= held([tmp_path, tmp_path / "not there"], 1e12) <= 100_000 + 6 * LEAST


def test_a_hole_counts_for_whoever_reads_it_later(tmp_path: Path) -> None:
    (tmp_path / "hole").touch()
    os.truncate(tmp_path / "hole", 1 << 40)
    assert held([tmp_path], math.inf) >= 1 << 40


def test_what_lies_deeper_than_a_path_may_be_long_has_any_size(tmp_path: Path) -> None:
    nest(tmp_path, "d" * 200, 25)
    assert held([tmp_path], 1e12) == math.inf
    remove(tmp_path / ("d" * 200))


def test_empty_files_count(tmp_path: Path) -> None:
    for number in range(10):
        (tmp_path / str(number)).touch()
    assert held([tmp_path], 1e12) == 10 * LEAST
    assert held([tmp_path], 3 * LEAST) == 4 * LEAST, "no further than needed"


def test_more_than_allowed_is_said_with_the_option(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = SimpleNamespace(monotonic=lambda: 100.0)
    monkeypatch.setattr(quota, "time", clock)
    watched = Quota([tmp_path], 1 << 20)
    assert watched.exceeded() is None
    (tmp_path / "file").write_bytes(b"x" * (2 << 20))
    assert watched.exceeded() is None, "too early to look again"
    clock.monotonic = lambda: 110.0
    assert watched.exceeded() == "filled its own directory with more than the 0.000977 GiB of --scratch-limit"


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
    assert Quota([tmp_path], 1 << 30).exceeded() == "hid a folder in its own directory from the check of its size"
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


@pytest.mark.parametrize("kept", ["open", "mapped", "never named"])
def test_a_file_without_a_name_counts_as_long_as_a_process_has_it(tmp_path: Path, kept: str) -> None:
    how = {
        "open": "file = os.open('file', os.O_RDWR | os.O_CREAT); os.write(file, bytes(1 << 20)); os.unlink('file')",
        "mapped": "file = os.open('file', os.O_RDWR | os.O_CREAT); os.write(file, bytes(1 << 20)); os.unlink('file');"
        "all = mmap.mmap(file, 1 << 20); os.close(file)",
        "never named": "file = os.open('.', os.O_RDWR | os.O_TMPFILE); os.write(file, bytes(1 << 20))",
    }[kept]
    program = f"import mmap, os, sys; os.chdir(sys.argv[1]); {how}; print(flush=True); sys.stdin.read()"
    own = tmp_path / "own"
    own.mkdir()
    command = [sys.executable, "-c", program, str(own)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        assert "filled its own directory" in (Quota([own], 1 << 19).exceeded() or "")
        assert Quota([own], 1 << 21).exceeded() is Quota([tmp_path / "other"], 1 << 19).exceeded() is None
    assert Quota([own], 1 << 19).exceeded() is None


@pytest.mark.parametrize("name, user", [("d", 0), ("d" * 200, 1000)])
def test_folders_within_folders_deeper_than_paths_or_calls(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, user: int
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: user)
    own = tmp_path / "own"
    own.mkdir()
    (own / "flat").mkdir()
    (own / "flat" / "file").touch()
    nest(own, name, 1050)
    lay_open(own)
    kept = [Path(folder, file) for folder, _, files in os.walk(own) for file in files]
    assert own / "flat" / "file" in kept and 10 <= len(kept) <= 40
    assert max(len(str(path)) for path in kept) < 3000
    nest(own / "flat", name, 1050)
    (own / "link").symlink_to(tmp_path)
    (tmp_path / "beside").touch()
    remove(own)
    assert [path.name for path in tmp_path.iterdir()] == ["beside"]


def test_a_link_in_place_of_a_directory_is_not_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "others").mkdir()
    (tmp_path / "others" / "file").touch()
    (tmp_path / "others").chmod(0o750)
    (tmp_path / "own").symlink_to(tmp_path / "others")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    remove(tmp_path / "own")
    lay_open(tmp_path / "own")
    assert (tmp_path / "others").stat().st_mode & 0o777 == 0o750
    remove(tmp_path / "not there")
    assert (tmp_path / "others" / "file").exists()


@pytest.mark.parametrize("left, ended", [(1 << 30, False), (50 << 20, True), (200 << 20, False)])
def test_who_fills_a_disk_smaller_than_allowed_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, left: int, ended: bool
) -> None:
    (tmp_path / "large").touch()
    os.truncate(tmp_path / "large", 100 << 20)
    monkeypatch.setattr(quota, "_free", lambda directory: float(left))
    full = Quota([tmp_path], 1 << 40).exceeded()
    assert full == ("filled the disk: it holds 0.0977 GiB there, and 50 MiB are left" if ended else None)


@pytest.mark.parametrize("entries, left, ended", [(1 << 16, 100, True), (1 << 16, 1 << 16, False), (0, 0, False)])
def test_who_takes_all_entries_of_a_disk_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, entries: int, left: int, ended: bool
) -> None:
    """A small disk may have few from the beginning, and some file systems, which have no end of them, say 0."""
    disk = SimpleNamespace(f_blocks=1 << 20, f_bavail=1 << 20, f_frsize=4096, f_files=entries, f_favail=left)
    monkeypatch.setattr(os, "statvfs", lambda directory: disk)
    monkeypatch.setattr(quota, "held", lambda directories, enough: float(300 << 20))
    assert ("filled the disk" in (Quota([tmp_path], 1 << 40).exceeded() or "")) is ended
