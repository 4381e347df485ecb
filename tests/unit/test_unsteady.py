"""What failed counts as failed, unless it was little and passes each time alone: made-up tests are run."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import unsteady

FAILS_AT = """
from pathlib import Path

def test_passes():
    pass

def test_fails_at_some():
    ran = Path(__file__).with_suffix(".txt")
    times = len(ran.read_text()) if ran.exists() else 0
    ran.write_text("x" * (times + 1))
    assert times not in {times}
"""
TREE = Path(unsteady.__file__).parents[1]


def run(folder: Path, *options: str, **files: str) -> subprocess.CompletedProcess[str]:
    for name, text in files.items():
        (folder / f"test_{name}.py").write_text(text)
    (folder / "pytest.ini").write_text("[pytest]\naddopts = -p no:cacheprovider\n")
    environment = os.environ | {"PYTHONPATH": str(TREE)}
    command = [sys.executable, "-m", "tests.unsteady", *options]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)


@pytest.mark.parametrize("options", [(), ("-n", "1", "--dist", "loadfile")])
def test_one_that_fails_once_is_named_and_let_through(tmp_path: Path, options: tuple[str, ...]) -> None:
    ended = run(tmp_path, *options, once=FAILS_AT.format(times={0}))
    assert ended.returncode == 0, ended.stdout
    assert ended.stdout.splitlines()[-1] == "  test_once.py::test_fails_at_some"
    assert (tmp_path / "test_once.txt").read_text() == "xxx"


@pytest.mark.parametrize("times", [{0, 1}, {0, 2}, {0, 1, 2}])
def test_one_that_fails_again_has_failed(tmp_path: Path, times: set[int]) -> None:
    assert run(tmp_path, often=FAILS_AT.format(times=times)).returncode == pytest.ExitCode.TESTS_FAILED


def test_nothing_is_tried_again_where_much_fails(tmp_path: Path) -> None:
    ended = run(tmp_path, **{f"of_many_{each}": FAILS_AT.format(times={0}) for each in range(unsteady.FEW + 1)})
    assert ended.returncode == pytest.ExitCode.TESTS_FAILED
    assert {path.read_text() for path in tmp_path.glob("*.txt")} == {"x"}


@pytest.mark.parametrize("options", [(), ("-n", "1", "--dist", "loadfile")])
@pytest.mark.parametrize("then", ["import nothing_of_this_name", "def test_stops():\n    raise KeyboardInterrupt\n"])
def test_where_not_all_could_be_run_it_has_failed(tmp_path: Path, then: str, options: tuple[str, ...]) -> None:
    ended = run(tmp_path, *options, once=FAILS_AT.format(times={0}), then=then)
    assert ended.returncode not in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED), ended.stdout


def test_what_passes_is_run_once(tmp_path: Path) -> None:
    ended = run(tmp_path, never=FAILS_AT.format(times={7}))
    assert ended.returncode == 0 and "UNSTEADY" not in ended.stdout
    assert (tmp_path / "test_never.txt").read_text() == "x"


def test_one_whose_process_is_killed_has_failed_there(tmp_path: Path) -> None:
    killed = "import os, signal\n" + FAILS_AT.format(times={0}).replace(
        "    assert times", "    if not times:\n        os.kill(os.getpid(), signal.SIGKILL)\n    assert times"
    )
    ended = run(tmp_path, "-n", "1", killed=killed)
    assert ended.returncode == 0 and "UNSTEADY" in ended.stdout, ended.stdout
