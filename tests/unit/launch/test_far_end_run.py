"""A job's part on a host: its end goes home, whatever its disk does."""

from __future__ import annotations

import errno
import os
import secrets
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

import pytest

from proofmark.launch.far_end.run import Run
from tests.waiting import PATIENCE, until


@pytest.fixture
def sent() -> list[tuple[str, dict[str, Any]]]:
    return []


def run_to_its_end(folder: Path, sent: list[tuple[str, dict[str, Any]]], code: str, **variables: str) -> dict[str, Any]:
    """What is said at the end of a job that runs `code` in its node's folder."""
    run = Run(folder / "noderank0", ["rank*.log"], lambda kind, body=None, **fields: sent.append((kind, fields)))
    (folder / "code").mkdir()
    run.start([sys.executable, "-c", code], variables, folder / "code", "{}", secrets.token_hex(8), folder)
    until(lambda: any(kind == "ended" for kind, _ in sent), "its end")
    return next(fields for kind, fields in sent if kind == "ended")


def test_a_log_that_is_a_link_is_left_where_it_is(tmp_path: Path, sent: list[tuple[str, dict[str, Any]]]) -> None:
    code = f"import os; os.chdir({str(tmp_path / 'noderank0')!r}); os.symlink('rank0.log', 'rank0.log'); print(1)"
    assert run_to_its_end(tmp_path, sent, code)["code"] == 0
    assert not any(fields.get("name") == "rank0.log" for _, fields in sent)


def test_what_pythonpath_names_there_is_found_after_the_code(
    tmp_path: Path, sent: list[tuple[str, dict[str, Any]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", "/opt/runtime/site-packages")
    run_to_its_end(tmp_path, sent, "import os; print(os.environ['PYTHONPATH'])", PYTHONPATH="/srv/code")
    said = (tmp_path / "noderank0/agent.log").read_text()
    assert said == "/srv/code:/opt/runtime/site-packages\n"


def test_a_folder_that_cannot_be_read_is_told_with_the_end(
    tmp_path: Path, sent: list[tuple[str, dict[str, Any]]]
) -> None:
    code = f"import shutil; shutil.rmtree({str(tmp_path / 'noderank0')!r})"
    ended = run_to_its_end(tmp_path, sent, code)
    assert ended["code"] == 0 and ended["unread"] == {"noderank0": "No such file or directory"}


@pytest.mark.parametrize("number, is_full", [(errno.EDQUOT, True), (errno.ENOSPC, True), (errno.EROFS, False)])
def test_a_disk_of_which_its_user_gets_no_more_is_full(
    tmp_path: Path,
    sent: list[tuple[str, dict[str, Any]]],
    monkeypatch: pytest.MonkeyPatch,
    number: int,
    is_full: bool,
) -> None:
    """A quota, or no room for one more file: others may have all of what is free."""

    def refuse(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(Path, "write_bytes", refuse)
    assert (run_to_its_end(tmp_path, sent, "")["free_bytes"] == 0) is is_full


def test_temporary_files_of_hosts_that_were_switched_off_go_where_the_next_ones_lie(tmp_path: Path) -> None:
    """Where the cluster file's TMPDIR says, say. Those of a run that is attended to stay, however old."""
    on, quiet = Run(tmp_path / "on/noderank0", [], lambda *_, **__: None), [sys.executable, "-c", ""]
    with tempfile.TemporaryDirectory(prefix="x-") as chosen:  # short: sockets lie below
        folders = [Path(chosen, f"proofmark-host-{name}") for name in ("left", "on")]
        for folder in folders:
            (folder / "pymp").mkdir(parents=True)
        on.start(quiet, {}, tmp_path, "{}", secrets.token_hex(8), folders[1])
        for folder in folders:
            os.utime(folder, (1, 1))
        on.touch()
        next_one = Run(tmp_path / "next/noderank0", [], lambda *_, **__: None)
        next_one.start(quiet, {"TMPDIR": chosen}, tmp_path, "{}", secrets.token_hex(8))
        assert [folder.exists() for folder in folders] == [False, True]
        for run in (on, next_one):
            run.end(PATIENCE)
            run.remove()
        assert [*Path(chosen).iterdir()] == folders[1:]


def test_what_is_no_file_is_not_fetched(tmp_path: Path) -> None:
    """Whoever opens a pipe that nobody writes into waits for ever, and its session with it."""
    logs = tmp_path / "run/noderank0"
    logs.mkdir(parents=True)
    os.mkfifo(logs / "pipe.onnx")
    (logs / "link.onnx").symlink_to("/etc/passwd")
    (logs / "file.onnx").write_text("content")
    fetched: list[tuple[dict[str, int], list[str]]] = []
    run = Run(logs, [], lambda *_, **__: None)
    fetching = threading.Thread(target=lambda: fetched.append(run.fetch(["*.onnx"])), daemon=True)
    fetching.start()
    fetching.join(PATIENCE)
    assert fetched == [({"file.onnx": 7}, ["link.onnx", "pipe.onnx"])]


def test_what_is_left_and_not_sent_is_named(tmp_path: Path) -> None:
    """All of an engine may be of no use then, and its host keeps none of it."""
    engine = tmp_path / "run/noderank0/engine-1"
    (engine / "a/b/c/d").mkdir(parents=True)
    for name in ("lib.so.1", "a+b.plan", "a/b/c/d/deep"):
        (engine / name).touch()
    (engine / "lib.so").symlink_to("lib.so.1")
    (engine / "linked").symlink_to("a", target_is_directory=True)
    (engine.parent / "a+b.tmp").touch()
    sizes, unsent = Run(engine.parent, [], lambda *_, **__: None).fetch(["engine-*"])
    assert sizes == {"engine-1/lib.so.1": 0}
    assert unsent == [f"engine-1/{name}" for name in ("a+b.plan", "lib.so", "linked", "a/b/c/d/deep")]
