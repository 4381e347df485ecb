"""Checkouts, logs and names that mean harm: one clear line each, and nothing else is lost."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import yaml

from proofmark.errors import UsageError
from proofmark.flagperf.__main__ import main
from proofmark.flagperf.adaptation.bring import bring
from proofmark.flagperf.adaptation.moved import Moved
from tests.flagperf.tree import FILES, write

ROOT = Path(__file__).parents[2]
CASE = "training/acme/bert-pytorch"
SETTINGS = f"{CASE}/config/config_Z9x1x1.py"
ANALYSIS = "inference/docker_images/acme/acme_analysis.py"
DEEP = "+".join(["a"] * 950)


def again(folder: Path, files: dict[str, str]) -> Moved:
    """The tree with other files beside or in place of its own."""
    return bring(write(folder / "FlagPerf", FILES | files), "acme", folder / "out", ROOT)


@pytest.mark.parametrize("line", [f"print({DEEP})", f"x = ({DEEP})(1)", f"x[0] = {DEEP}", f"assert {DEEP}"])
def test_a_line_nested_too_deeply_to_be_shown_costs_itself_alone(tmp_path: Path, line: str) -> None:
    moved = again(tmp_path, {SETTINGS: f"{line}\nlearning_rate = 1e-3\n"})
    mine = [row for row in moved.rows if row.file == SETTINGS]
    assert {(row.line, row.fate) for row in mine} == {(1, "refused"), (2, "taken over")}


def test_a_peak_nested_too_deeply_is_refused(tmp_path: Path) -> None:
    moved = again(tmp_path, {ANALYSIS: f"def analysis_log(path):\n    return 1, 2, ({DEEP})(3), 1e12\n"})
    assert [row.fate for row in moved.rows if row.key == "fp32_or_tf32_flops"] == ["refused"]


def test_no_file_is_called_so_that_it_cannot_be_told(tmp_path: Path) -> None:
    root = write(tmp_path / "FlagPerf")
    name = os.fsencode(root / CASE / "config") + b"/config_\xff\nx1x1.py"
    os.close(os.open(name, os.O_CREAT | os.O_WRONLY))
    moved = bring(root, "acme", tmp_path / "out", ROOT)
    assert [row.fate for row in moved.rows if r"config_\udcff\nx1x1.py" in row.file] == ["illegal"]
    assert "udcff" in (tmp_path / "out" / "import.md").read_text(encoding="utf-8")


def test_no_folder_is_called_so_that_its_name_becomes_a_setting(tmp_path: Path) -> None:
    moved = again(tmp_path, {f"{CASE}\nlearning_rate: 5/config/config_Z9x1x1.py": "train_batch_size = 9\n"})
    assert yaml.safe_load(moved.files["vendors/acme/configs/training/bert/Z9x1x1.yaml"]) == {"train_batch_size": 9}


@pytest.mark.parametrize("vendor", ["none", "true", "false", "class"])
def test_a_vendor_whose_class_could_not_be_called_so(tmp_path: Path, vendor: str) -> None:
    root = write(tmp_path / "FlagPerf", FILES | {f"training/{vendor}/bert-pytorch/config/config_Z9x1x1.py": ""})
    with pytest.raises(UsageError, match="expected a name"):
        bring(root, vendor, tmp_path / "out", ROOT)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("folder", ["training/acme", "inference/inference_engine/acme", "inference/docker_images/acme"])
def test_no_folder_outside_of_the_checkout_is_looked_into(tmp_path: Path, folder: str) -> None:
    root = write(tmp_path / "FlagPerf")
    (root / folder).rename(tmp_path / "elsewhere")
    (root / folder).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UsageError, match=f"{folder}: is a link out of"):
        bring(root, "acme", tmp_path / "out", ROOT)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("command", ["read", "monitor"])
def test_a_pipe_without_a_writer_is_an_empty_log(
    tmp_path: Path, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    os.mkfifo(tmp_path / "rank0.out.log")
    assert main([command, str(tmp_path / "rank0.out.log")]) == 4
    assert capsys.readouterr().err.startswith("ERROR: ")


@pytest.mark.parametrize("command", ["read", "monitor"])
def test_a_logs_name_moves_no_cursor(tmp_path: Path, command: str, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "a\x1b[31m.log"
    log.write_text("nothing\n")
    assert main([command, str(log)]) == 4
    printed = capsys.readouterr().err
    assert r"a\x1b[31m.log: " in printed and "\x1b" not in printed
