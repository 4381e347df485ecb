"""How the house's programs end: of a mistake with a line and code 4, and without a word where nobody reads on."""

from __future__ import annotations

import importlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from proofmark.errors import UsageError
from proofmark.process.command_line import Parser

ROOT = Path(__file__).parents[3]
PROGRAMS = sorted(
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__main__")
    for room in ("proofmark", "reports", "suites")
    for path in (ROOT / room).rglob("*.py")
    if "    command(main)" in path.read_text(encoding="utf-8")
)
FROM_ORIGINAL = "proofmark.launch.launchers.modelarts.original"


def test_they_are_all_that_a_user_types() -> None:
    typed = {"proofmark", "proofmark.jobs", "proofmark.flagperf", "proofmark.affected", "reports.site"}
    assert typed | {"suites.automl.from_config_yml", FROM_ORIGINAL} <= set(PROGRAMS)


def ran(*words: str, unread: tuple[str, ...] = ()) -> tuple[int, str]:
    """The exit code, and what was said of mistakes; some of its outputs are pipes that nobody reads any more."""
    pipe, written = os.pipe()
    os.close(pipe)
    given = {name: written if name in unread else subprocess.PIPE for name in ("stdout", "stderr")}
    try:
        done = subprocess.run([sys.executable, *words], cwd=ROOT, text=True, timeout=120, check=False, **given)  # type: ignore[call-overload]
    finally:
        os.close(written)
    return done.returncode, done.stderr or ""


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_reader_that_has_gone_is_no_error(program: str) -> None:
    assert ran("-m", program, "--help", unread=("stdout",)) == (128 + signal.SIGPIPE, "")


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize(
    "raised, code, lines",
    [
        (KeyboardInterrupt(), 130, []),
        (UsageError("one\nand \x1b[2Janother"), 4, ["ERROR: one", "ERROR: and \\x1b[2Janother"]),
        (FileNotFoundError(2, "No such file", "x"), 4, ["ERROR: x: No such file"]),
        (OSError("no word of a file"), 4, ["ERROR: no word of a file"]),
        (OSError(), 4, ["ERROR: OSError"]),
    ],
    ids=repr,
)
def test_every_program_tells_of_mistakes_in_lines_and_of_ctrl_c_by_its_code(
    program: str,
    raised: BaseException,
    code: int,
    lines: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def raises(*_given: object) -> None:
        raise raised

    monkeypatch.setattr(Parser, "parse_args", raises)
    package = (ROOT / program.replace(".", "/")).is_dir()
    assert importlib.import_module(f"{program}.__main__" if package else program).main() == code
    assert capsys.readouterr().err.splitlines() == lines


@pytest.mark.parametrize("closed", [1, 2])
def test_an_output_that_is_closed_is_no_error(closed: int) -> None:
    program = "import sys\nfrom proofmark.process.command_line import command\ncommand(lambda: print('a line') or 3)"
    start = f"import os, sys; os.close({closed}); os.execv(sys.executable, [sys.executable, '-c', {program!r}])"
    assert ran("-c", start) == (3, "")


@pytest.mark.parametrize("lines", [1, 20_000], ids=["what is buffered", "more than a buffer"])
def test_nor_is_it_where_an_error_would_be_told(lines: int) -> None:
    """The program tells of what the system refuses, as ours do, and must not take the pipe for that."""
    program = (
        "import sys\nfrom proofmark.process.command_line import command\n"
        f"def main():\n    try:\n        for n in range({lines}): print('a line')\n"
        "    except OSError as error:\n        print(f'ERROR: {error}', file=sys.stderr)\n    return 4\ncommand(main)"
    )
    assert ran("-c", program, unread=("stdout",)) == (128 + signal.SIGPIPE, "")
    assert ran("-c", program.replace("'a line'", "'a line', file=sys.stderr"), unread=("stderr",))[0] != 4
    assert ran("-c", program) == (4, "")


@pytest.mark.parametrize("program", ["proofmark", "suites.automl.from_config_yml", FROM_ORIGINAL])
def test_a_command_line_that_cannot_be_understood_is_one_line_and_exit_code_4(program: str) -> None:
    code, message = ran("-m", program, "--no-such-option")
    assert code == 4 and message.startswith("ERROR: ") and message.count("\n") == 1


def test_what_the_output_cannot_show_is_escaped() -> None:
    program = "from proofmark.process.command_line import command\ncommand(lambda: print('r\\u00e9sults') or 3)"
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment)
    assert (ended.returncode, ended.stdout, ended.stderr) == (3, "r\\xe9sults\n", "")


def test_an_output_that_finds_no_room() -> None:
    program = "from proofmark.process.command_line import command\ncommand(lambda: print('a line') or 0)"
    with open("/dev/full", "w") as full:
        ran = subprocess.run([sys.executable, "-c", program], stdout=full, stderr=subprocess.PIPE, text=True)
    assert (ran.returncode, ran.stderr) == (4, "ERROR: the output cannot be written: No space left on device\n")


def test_a_path_may_begin_with_a_tilde(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A shell leaves it as it is after `=`."""
    monkeypatch.setenv("HOME", str(tmp_path))
    parser = Parser()
    of_command = parser.add_subparsers().add_parser("read")
    of_command.add_argument("log", nargs="+", type=Path)
    of_command.add_argument("--out", type=Path)
    given = parser.parse_args(["read", "--out=~/there", "~/a", "b"])
    assert given.out == tmp_path / "there" and given.log == [tmp_path / "a", Path("b")]


@pytest.mark.parametrize(
    "program, words",
    [
        ("reports.site.__main__", ["", "--out", "site"]),
        ("reports.site.__main__", ["results", "--out="]),
        ("proofmark.flagperf.__main__", ["import", "FlagPerf", "--vendor=acme", "--out", ""]),
        ("proofmark.affected.__main__", ["--since=main", "--head=work", "--in="]),
        ("suites.data.prepare_imagenet", ["images.tar", "--synsets=list", "--out="]),
    ],
)
def test_an_empty_path_is_not_the_working_directory(
    program: str, words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit, match="4"):
        importlib.import_module(program).main(words)
    assert capsys.readouterr().err.endswith(": expected a path, found none; is a variable not set?\n")
    assert not list(tmp_path.iterdir())
