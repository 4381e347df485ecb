"""Engines as another user's processes: what that user may not, they may not, with a wall or without one."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from proofmark.wall.other_user import OPTION
from tests.e2e.conftest import House, one_line_answer
from tests.unit.wall.test_wall import has_landlock

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a process another user")

USER = "nobody"
OTHERS = stat.S_IROTH | stat.S_IXOTH

SPY = """
import os
from pathlib import Path

import torch

class InferModel:
    def __init__(self, config, onnx_path, model):
        self.model = model
        found = [f"uid {os.getuid()} {os.geteuid()}, groups {os.getgroups()}"]
        try:
            found.append("read " + Path(os.environ["FAKE_FILE"]).read_text())
        except OSError as error:
            found.append(type(error).__name__)
        try:
            os.kill(os.getppid(), 0)
            found.append("reaches its referee")
        except OSError as error:
            found.append(type(error).__name__)
        print("SPY: " + "; ".join(found), flush=True)

    @torch.inference_mode()
    def __call__(self, inputs):
        return [self.model(*inputs)], 0.0
"""


@pytest.fixture
def open_house(trained: Path) -> Iterator[House]:
    """A house that other users may look into: pytest's own folders are closed to them."""
    with tempfile.TemporaryDirectory(prefix="house-", dir="/tmp") as folder:
        os.chmod(folder, 0o755)
        house = House(Path(folder) / "house", trained)
        house.started_as_users_do = True
        yield house
        assert house.becomes_empty()  # before its folder goes


def where_others_may_read() -> list[str]:
    """What a command is put behind so that this interpreter can be read by all: root's home, where it may lie, is
    shown to what runs there with nothing in it but the interpreter, readable. Nothing outside changes."""
    base = Path(sys.base_prefix)
    closed = [path for path in reversed(base.parents) if path.stat().st_mode & OTHERS != OTHERS]
    if not closed:
        return []
    script = """
        set -e
        mount --make-rprivate /
        kept=$(mktemp -d)
        mount --bind "$1" "$kept"
        mount -t tmpfs -o mode=755 none "$2"
        mkdir -p "$1"
        mount --bind "$kept" "$1"
        umount "$kept"
        rmdir "$kept"
        shift 2
        exec "$@"
    """
    return ["unshare", "-m", "bash", "-c", script, "bash", str(base), str(closed[0])]


@pytest.mark.parametrize("isolation", ["wall", "process"])
def test_an_engine_is_another_users_process(open_house: House, isolation: str) -> None:
    house = open_house
    secret = house.root / "secret"
    secret.write_text("the labels")
    secret.chmod(0o600)
    (house.root / "vendors/fake/honest.py").write_text(SPY)
    os.environ["FAKE_FILE"] = str(secret)
    try:
        arguments = ("--vendor", "fake", OPTION, USER, "--isolation", isolation)
        ran = house.end(house.start(*arguments, before=tuple(where_others_may_read())))
    finally:
        del os.environ["FAKE_FILE"]
    assert ran.code == 0, ran.output
    record = ran.record()
    assert record.isolation["engine"].user == USER
    assert record.isolation["engine"].kind == isolation or not has_landlock()
    (message,) = [line for line in (ran.case_dir() / "worker.log").read_text().splitlines() if line.startswith("SPY: ")]
    assert message.startswith("SPY: uid 65534 65534, groups [65534]; PermissionError; "), message
    assert message.endswith("PermissionError") and "the labels" not in message
    assert house.becomes_empty()


@pytest.mark.parametrize("user, expected", [("root", "that user is root"), ("nobody-of-that-name", "no such user")])
def test_a_user_that_keeps_nothing_apart_is_refused(house: House, user: str, expected: str) -> None:
    one_line_answer(house.run(OPTION, user), f"{OPTION} {user}: ", expected)


def test_a_user_who_cannot_read_what_an_engine_needs_is_refused(house: House) -> None:
    """Pytest's own folders are closed to others, so is the vendor's package in one."""
    one_line_answer(house.run(OPTION, USER), f"{OPTION} {USER}: that user can't read ", "grant access, or name another")


def test_a_suite_without_engines_refuses_a_user_for_them(open_house: House) -> None:
    house = open_house
    arguments = ("--vendor", "fake", OPTION, USER, "-k", "1x1")
    ran = house.end(house.start(*arguments, suite="training", before=tuple(where_others_may_read())))
    assert ran.code == 4 and f"{OPTION}: suite training has no engines" in ran.output, ran.output


def test_who_is_not_root_can_give_no_other_user() -> None:
    code = "import os; from pathlib import Path; os.setuid(65534)\n"
    code += f"from proofmark.wall.other_user import look_at; look_at({USER!r}, Path(), Path())"
    ran = subprocess.run(
        [
            *where_others_may_read(),
            sys.executable,
            "-c",
            f"import os; from pathlib import Path; os.setuid(65534)\n{code}",
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "only root can give a process another user" in ran.stderr


def test_the_gate_refuses_a_user_of_engines(open_house: House) -> None:
    house = open_house
    arguments = ("--vendor", "fake", OPTION, USER, "--compare", "HEAD")
    ran = house.end(house.start(*arguments, before=tuple(where_others_may_read())))
    one_line_answer(ran, "--compare with a revision", "remove --engine-user")
