"""What a process behind a wall may read of a site's programs."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from proofmark.wall import python
from proofmark.wall.python import settled, software


@pytest.fixture(autouse=True)
def nothing_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PATH", "LD_LIBRARY_PATH", "LIBRARY_PATH", "CPATH", "CC", "CXX"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(python, "LINKER", "/nowhere")


def test_what_the_environment_names(monkeypatch: pytest.MonkeyPatch) -> None:
    assert software() == ()
    named = "/apps/gcc/12/bin:/opt:/opt/bin:/home/me/bin:bin::/opt/../home/me/bin:/opt/acme/tools:/data/bin"
    monkeypatch.setenv("PATH", named)
    monkeypatch.setenv("LD_LIBRARY_PATH", "/sw/cuda/lib64:/home/me/lib")
    monkeypatch.setenv("CC", "ccache /cvmfs/llvm/bin/clang -I/opt/q/include")
    monkeypatch.setenv("CXX", "c++")
    read = {"/apps/gcc/12", "/opt/acme/tools", "/sw/cuda/lib64", "/cvmfs/llvm"}
    assert set(software()) == {Path(place) for place in read}


def test_what_the_systems_linker_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As by what a network's libraries are installed with, which the collectives load behind the wall."""
    monkeypatch.setattr(python, "LINKER", str(tmp_path))
    (tmp_path / "fabric.conf").write_text("# its libraries\n/opt/fabric/lib\n/usr/local/lib\n/home/me/lib\ninclude x\n")
    (tmp_path / "other.conf").write_bytes(b"\xff")
    (tmp_path / "readme").write_text("/opt/readme")
    assert software() == (Path("/opt/fabric/lib"),)


def test_neither_homes_nor_what_is_hidden(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site, home, data = (tmp_path / name for name in ("site", "site/users/me", "site/data"))
    monkeypatch.setattr(python, "SOFTWARE", (site,))
    monkeypatch.setenv("HOME", str(home))
    for place in (home / "bin", data / "bin", data / "train" / "bin", site / "gcc" / "bin"):
        place.mkdir(parents=True)
    (site / "tools").symlink_to(data / "train")
    (site / "away").symlink_to(tmp_path)
    own = (home / "bin", site / "users" / "bin", site / "data" / "bin", site / "tools" / "bin", site / "away" / "bin")
    monkeypatch.setenv("PATH", ":".join(map(str, (*own, site / "gcc" / "bin"))))
    assert software([data]) == (site / "gcc",)
    monkeypatch.setenv("HOME", "/nonexistent")
    assert set(software()) == {home, site / "users", data, data / "train", site / "gcc"}


def test_a_user_whose_home_is_the_whole_machine_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pwd.getpwuid", lambda number: SimpleNamespace(pw_dir="/"))
    monkeypatch.setenv("PATH", "/opt/gcc/bin:/home/you/gcc/bin")
    for home in ("/", "/home/me"):
        monkeypatch.setenv("HOME", home)
        assert software() == (Path("/opt/gcc"),)


def test_settings_are_files_of_the_systems_that_everybody_may_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site, home, data = (tmp_path / name for name in ("site", "site/users/me", "site/data"))
    monkeypatch.setattr(python, "SETTLED", (site,))
    monkeypatch.setenv("HOME", str(home))
    good, secret, elsewhere = site / "topology.xml", site / "topology.key", tmp_path / "labels"
    for file in (good, secret, elsewhere, home / "labels", data / "train" / "labels", site / "mine"):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("")
        file.chmod(0o644)
    (site / "mine").chmod(0o640)
    (site / "link").symlink_to(data / "train" / "labels")
    (site / "away").symlink_to(elsewhere)
    (tmp_path / "here").symlink_to(good)
    asked = (secret, elsewhere, home / "labels", data / "train" / "labels", site / "mine", site / "link", site / "away")
    others = [*map(str, asked), str(site), str(data), "", "topology.xml", str(site / "gone"), f"{site}/../labels"]
    assert settled(others, [data]) == ()
    assert settled([str(good), f"{site}/data/../topology.xml"], [data]) == (good, good)
    assert settled([str(tmp_path / "here")], [data]) == (good,)
    assert settled([str(good)], [good]) == ()
    assert settled([str(data / "train" / "labels")], []) == (data / "train" / "labels",), "a site's own"
