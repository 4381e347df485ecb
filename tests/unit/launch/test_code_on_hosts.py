"""The code that hosts are sent, and what they may have made of it since: what is run there is what was sent."""

from __future__ import annotations

import errno
import hashlib
import importlib.util
import json
import os
import subprocess
import sys
from importlib._bootstrap_external import _code_to_hash_pyc  # type: ignore[attr-defined]
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from fixtures.cluster import _code
from fixtures.options.settings import SETTINGS
from proofmark.errors import UsageError
from proofmark.launch.cluster import code_tree
from proofmark.launch.cluster.code_tree import CodeTree
from proofmark.launch.far_end.store import Store

SENT = {"ours/__init__.py": b"", "ours/clock.py": b"said = 'ours'\n"}


def tree(root: Path) -> Path:
    """Two packages of ours, of which one has a folder of each vendor's."""
    for name in ("proofmark/clock.py", "vendors/__init__.py", "vendors/acme/__init__.py", "vendors/other/engine.py"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).touch()
    (root / "key").write_text("secret")
    return root


@pytest.mark.parametrize(
    "link, target",
    [
        ("vendors/acme/notes.txt", "../../key"),
        ("vendors/acme/notes.txt", "/proc/self/environ"),
        ("vendors/acme/deep/er/notes.txt", "../../../../key"),
        ("vendors/acme/engine.py", "../other/engine.py"),
        ("vendors/notes.txt", "../key"),
        ("notes.py", "vendors/../../key"),
    ],
)
def test_no_file_from_elsewhere_is_sent_by_a_link(tmp_path: Path, link: str, target: str) -> None:
    root = tree(tmp_path / "house")
    (tmp_path / "key").write_text("secret")
    (root / link).parent.mkdir(parents=True, exist_ok=True)
    (root / link).symlink_to(target)
    code = CodeTree.of(root, ("proofmark", "vendors"))
    assert code.led_out == (root / link,) and link not in code.files
    assert b"secret" not in code.contents.values()


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Such as one that a container has built as root, or another's licence."""
    root, read = tree(tmp_path), Path.read_bytes

    def refused(path: Path) -> bytes:
        if path.name == "engine.py":  # root may read any
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return read(path)

    monkeypatch.setattr(Path, "read_bytes", refused)
    plugins = [SimpleNamespace(__file__=str(root / "conftest.py"))]
    config: Any = SimpleNamespace(
        pluginmanager=SimpleNamespace(get_plugins=lambda: plugins), stash={SETTINGS: SimpleNamespace(found=None)}
    )
    with pytest.raises(UsageError) as caught:
        _code(config, [])
    expected = f"{root}/vendors/other/engine.py: it is sent to hosts, and can't be read: Permission denied"
    assert str(caught.value) == expected


def test_a_requirements_file_is_no_link_to_another(tmp_path: Path) -> None:
    root = tree(tmp_path)
    (root / "vendors/acme/requirements.txt").symlink_to("../../key")
    assert CodeTree.of(root, (), ("vendors/acme/requirements.txt",)).led_out


def test_links_within_a_vendors_folder_are_sent(tmp_path: Path) -> None:
    root = tree(tmp_path / "house")
    (root / "vendors/acme/lib").mkdir()
    (root / "vendors/acme/lib/engine.py").write_text("engine = 1\n")
    (root / "vendors/acme/engine.py").symlink_to("lib/engine.py")
    (tmp_path / "elsewhere").symlink_to(root, target_is_directory=True)  # a house may be reached by one
    code = CodeTree.of(tmp_path / "elsewhere", ("proofmark", "vendors"))
    assert code.led_out == ()
    assert code.contents[code.files["vendors/acme/engine.py"]] == b"engine = 1\n"


@pytest.mark.parametrize(
    "lengths", [(), (0,), (10,), (3, 0, 7), (11,), (4, 35, 0, 20, 5), (0, 10, 0)], ids=lambda lengths: str(lengths)
)
def test_files_of_any_length_reach_a_host_in_portions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lengths: tuple[int, ...]
) -> None:
    """However much a vendor's folder has, neither end holds more of it at once for each host."""
    monkeypatch.setattr(code_tree, "PORTION", 10)
    (tmp_path / "house/ours").mkdir(parents=True)
    for number, length in enumerate(lengths):
        (tmp_path / f"house/ours/{number}.so").write_bytes(bytes([number]) * length)
    code, host = CodeTree.of(tmp_path / "house", ("ours",)), Store(tmp_path / "host")
    lacking = host.lack("tree", code.manifest)
    for sizes, body, more in code.portions(lacking):
        assert sum(sizes.values()) == len(body) <= 10
        host.take(sizes, body, more)
    assert not host.lack("tree", code.manifest)
    assert {path.name for path in (tmp_path / "host/objects").iterdir()} == {*lacking}


def test_a_large_file_that_was_damaged_on_its_way_is_not_kept(tmp_path: Path) -> None:
    host, sha = Store(tmp_path), hashlib.sha256(b"whole").hexdigest()
    host.take({sha: 3}, b"who", more=True)
    with pytest.raises(ValueError, match="damaged"):
        host.take({sha: 3}, b"lly")
    assert not list((tmp_path / "objects").iterdir())
    host.take({sha: 5}, b"whole")
    assert [path.name for path in (tmp_path / "objects").iterdir()] == [sha]


def test_what_there_is_of_a_file_gives_its_disk_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    host, sha = Store(tmp_path), hashlib.sha256(b"whole").hexdigest()
    with monkeypatch.context() as full:
        full.setattr(Path, "rename", lambda *names: (_ for _ in ()).throw(OSError(errno.ENOSPC, "No space left")))
        with pytest.raises(OSError, match="No space"):
            host.take({sha: 5}, b"whole")
    assert not list((tmp_path / "objects").iterdir())
    host.take({sha: 3}, b"who", more=True)
    (draft,) = (tmp_path / "objects").iterdir()
    Store(tmp_path)
    assert draft.exists(), "it may be another session's, of which the rest is on its way"
    os.utime(draft, (0, 0))
    Store(tmp_path)
    assert not draft.exists()


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """A host's, with a tree in it."""
    made = Store(tmp_path)
    shas = {name: hashlib.sha256(content).hexdigest() for name, content in SENT.items()}
    made.lack("tree", json.dumps(shas).encode())
    made.take({shas[name]: len(content) for name, content in SENT.items()}, b"".join(SENT.values()))
    assert made.lay_out() == []
    return made


def said(store: Store) -> str:
    """What its module says to whoever imports it."""
    command = [sys.executable, "-c", "import ours.clock; print(ours.clock.said)"]
    return subprocess.run(command, cwd=store.tree, check=True, capture_output=True, text=True).stdout.strip()


def test_what_was_compiled_there_of_another_source_is_not_run(store: Store) -> None:
    """As one of PEP 552, it is run whatever the source says; by time and size it would be too, once it has these."""
    compiled = Path(importlib.util.cache_from_source(str(store.tree / "ours/clock.py")))
    compiled.parent.mkdir(exist_ok=True)
    theirs = compile("said = 'theirs'", "clock.py", "exec")
    compiled.write_bytes(_code_to_hash_pyc(theirs, bytes(8), checked=False))
    assert said(store) == "theirs"
    assert store.lay_out() == [] and said(store) == "ours"


def test_a_package_that_is_a_link_is_an_edit(store: Store, tmp_path: Path) -> None:
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs/__init__.py").write_text("raise SystemExit\n")
    (store.tree / "json").symlink_to(tmp_path / "theirs", target_is_directory=True)
    assert store.lay_out() == ["json"]
    (store.tree / "json").unlink()
    (store.tree / "ours/__pycache__").symlink_to(tmp_path / "theirs", target_is_directory=True)
    assert store.lay_out() == ["ours/__pycache__"]
    (store.tree / "ours/__pycache__").unlink()
    (tmp_path / "same.py").write_bytes(SENT["ours/clock.py"])
    (store.tree / "ours/clock.py").unlink()
    (store.tree / "ours/clock.py").symlink_to(tmp_path / "same.py")
    assert store.lay_out() == ["ours/clock.py"], "it may lead elsewhere a moment later"
