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
    (folder / "pytest.ini").write_text("[pytest]\naddopts = -p no:cacheprovider\nmarkers = quiet\n")
    environment = os.environ | {"PYTHONPATH": str(TREE)}
    command = [sys.executable, "-m", "tests.unsteady", *options]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)


@pytest.mark.parametrize("options", [(), ("-n", "1", "--dist", "loadfile")])
def test_one_that_fails_once_is_named_and_let_through(tmp_path: Path, options: tuple[str, ...]) -> None:
    ended = run(tmp_path, *options, once=FAILS_AT.format(times={0}))
    assert ended.returncode == 0, ended.stdout
    assert ended.stdout.splitlines()[-1] == "  test_once.py::test_fails_at_some"
    assert (tmp_path / "test_once.txt").read_text() == "xxx"


@pytest.mark.parametrize("times", [{0, 1}, {0, 2}, {0, 1, 2}])  # in its file, and by itself
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


def test_one_that_ends_its_process_has_failed(tmp_path: Path) -> None:
    """Others may not have been run for that."""
    killed = "import os, signal\n" + FAILS_AT.format(times={0}).replace(
        "    assert times", "    if not times:\n        os.kill(os.getpid(), signal.SIGKILL)\n    assert times"
    )
    ended = run(tmp_path, "-n", "1", killed=killed)
    assert ended.returncode == pytest.ExitCode.TESTS_FAILED and "UNSTEADY" not in ended.stdout, ended.stdout


TAKES_DOWN = """
import pytest

@pytest.fixture(scope="module")
def shared():
    yield
    from pathlib import Path
    ran = Path(__file__).with_suffix(".txt")
    again = ran.exists()
    ran.touch()
    assert again

def test_one(shared):
    pass
"""


def test_what_could_not_be_taken_down_has_failed(tmp_path: Path) -> None:
    """It is told of the last test, which need not be the one at fault."""
    ended = run(tmp_path, shared=TAKES_DOWN)
    assert ended.returncode == pytest.ExitCode.TESTS_FAILED and "UNSTEADY" not in ended.stdout, ended.stdout


def test_one_that_fails_after_another_of_its_file_has_failed(tmp_path: Path) -> None:
    after = "left = []\n\ndef test_leaves():\n    left.append(1)\n\ndef test_finds():\n    assert not left\n"
    assert run(tmp_path, after=after).returncode == pytest.ExitCode.TESTS_FAILED


def test_what_is_drawn_is_not_tried_again_nor_is_what_was_not_chosen(tmp_path: Path) -> None:
    (tmp_path / "tests/fuzz").mkdir(parents=True)
    once = FAILS_AT.format(times={0})
    (tmp_path / "tests/fuzz/test_fuzz.py").write_text(once)
    assert run(tmp_path).returncode == pytest.ExitCode.TESTS_FAILED
    (tmp_path / "tests/fuzz/test_fuzz.py").unlink()
    quiet = once + "\nimport pytest\n\n@pytest.mark.quiet\ndef test_quiet():\n    assert False\n"
    assert run(tmp_path, "-m", "not quiet", some=quiet).returncode == pytest.ExitCode.OK
    assert run(tmp_path, some=quiet).returncode == pytest.ExitCode.TESTS_FAILED


def test_where_the_first_that_fails_ends_it_it_has_failed(tmp_path: Path) -> None:
    first = "from test_of_b import *\n"
    ended = run(tmp_path, "-x", of_a=first, of_b=FAILS_AT.format(times={0}))
    assert ended.returncode == pytest.ExitCode.TESTS_FAILED, ended.stdout
