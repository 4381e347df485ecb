"""--compare: both sides as sessions of their own, and what is left of them on every way out."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from proofmark.gate.keeper import PREFIX
from tests.e2e.conftest import House, clean, one_line_answer
from tests.waiting import until


def old_record() -> Any:
    """As the last commit of schema 2 wrote it."""
    return json.loads((Path(__file__).parents[1] / "records/inference_schema_2.json").read_text(encoding="utf-8"))


def strange_records() -> Iterator[tuple[str, Any]]:
    """Two figures with one key; a round that took less than no time; one of another case; one of another
    vendor."""
    doubled, negative = old_record(), old_record()
    doubled["accuracy"]["others"] = [{"metric": "mAP", "target": None, "framework": None, "engine": None}] * 2
    yield "doubled.json", doubled
    negative["engine"]["rounds"] = negative["engine"]["rounds"][:2]
    for each, seconds, others in zip(negative["engine"]["rounds"], (10, -9), (0.5, 0.0), strict=True):
        each |= {"whole_seconds": seconds, "contention": {"others": others, "stolen": 0.0, "idle": 0.0}}
    yield "negative.json", negative
    yield "other.json", old_record()
    yield "elsewhere.json", old_record() | {"case": "tiny"}


def git(folder: Path, *arguments: str) -> str:
    settled = "maintenance.auto=false"  # what git 2.47 does behind itself has a lock, for a moment
    command = ["git", "-c", settled, "-c", "user.name=a", "-c", "user.email=a@b", "-C", str(folder), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


@pytest.fixture
def kept(house: House, monkeypatch: pytest.MonkeyPatch) -> Iterator[House]:
    """A house under git's control: whatever a session does, its history and its files are as before, and in a temporary
    directory of its own nothing stays."""
    (house.root / ".gitignore").write_text("results/\n.cache/\n__pycache__/\nbaselines/\ntrouble.mark\nhome/\n")
    git(house.root, "init", "-q")
    git(house.root, "add", "-A")
    git(house.root, "commit", "-qm", "base")
    honest = house.root / "vendors/fake/honest.py"
    slower = honest.read_text().replace("        return [self", "        time.sleep(0.003)\n        return [self")
    honest.write_text(slower.replace("import atexit\n", "import atexit\nimport time\n"))
    before = content(house.root / ".git"), git(house.root, "diff")
    with tempfile.TemporaryDirectory() as temporary:  # its name is short: sockets lie below
        monkeypatch.setenv("TMPDIR", temporary)
        yield house
        assert house.becomes_empty()
        assert (content(house.root / ".git"), git(house.root, "diff")) == before
        until(lambda: not list(Path(temporary).glob(f"{PREFIX}*")), "the gate's folders to go")


def content(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_a_slower_engine_in_a_budget_too_small_for_an_alarm_is_neither_called_slower_nor_the_same(kept: House) -> None:
    """That it is found in a larger one is seen in tests/ci."""
    ran = kept.run("--compare", "HEAD", "--gate-budget", "10s", "--junitxml", "results/junit.xml")
    clean(ran)
    assert ran.code == 11, ran.output
    compared = ran.record().compared
    assert compared is not None and compared.loadings < 5 and compared.way == "rounds"
    assert compared.identity == git(kept.root, "rev-parse", "HEAD").strip()
    assert {ratio.metric: ratio.outcome for ratio in compared.ratios} == {"core": "AMBIGUOUS", "whole": "AMBIGUOUS"}
    assert ran.verdict()[0] == "AMBIGUOUS"
    assert "the head is the working tree, with what is not committed" in ran.output
    failed = ET.parse(kept.root / "results/junit.xml").findall(".//failure")
    assert len(failed) == 1 and "AMBIGUOUS" in str(failed[0].text)


def test_a_session_that_is_killed_leaves_nothing_and_no_pass(kept: House) -> None:
    session = kept.start("--vendor", "fake", "--compare", "HEAD", "--results-dir", "results/killed")
    record = kept.root / "results/killed/latest/inference/tiny/record.json"
    deadline = time.monotonic() + 120
    while not (record.exists() and "did not come to its end" in record.read_text()):
        assert time.monotonic() < deadline and session.poll() is None
        time.sleep(0.05)
    assert list(Path(os.environ["TMPDIR"]).glob(f"{PREFIX}*"))
    os.kill(session.pid, signal.SIGKILL)
    assert json.loads(record.read_text())["verdict"]["kind"] == "ERROR"
    assert kept.becomes_empty(), kept.processes()


def test_a_part_of_a_case_that_was_to_be_compared_is_no_success(kept: House) -> None:
    ran = kept.run("--compare", "HEAD", "-k", "overrides_legal")
    clean(ran)
    assert ran.code == 12, ran.output
    (complaint,) = [line for line in ran.output.splitlines() if line.startswith("NOT COMPARED ")]
    assert "inference/tiny: --compare: " in complaint and "only some tests of the case were selected" in complaint


@pytest.mark.parametrize(
    "options, expected",
    [
        (["--compare", "nowhere"], "--compare nowhere: no such revision and no such file"),
        (["--compare", "HEAD", "--gate-budget", "soon"], "--gate-budget: expected a time such as 90s, 10m or 1h"),
        (["--compare", "suites"], "--compare suites: no record.json below it"),
        (["--compare", "doubled.json"], "doubled.json: cannot be compared with: two figures have one key"),
        (["-n1", "--compare", "other.json"], "--compare other.json: it has no record of inference/tiny, but of"),
        (["--compare", "other.json"], "--compare other.json: it has no record of inference/tiny, but of inference/"),
        (["--compare", "elsewhere.json"], 'vendor: "cpu" there, "fake" here; --compare-unlike compares'),
        (["--compare", "negative.json"], "negative.json: cannot be compared with: others: Input should be less than"),
    ],
)
def test_what_cannot_be_compared_with_is_told_before_anything_runs(
    kept: House, options: list[str], expected: str
) -> None:
    for name, content in strange_records():
        (kept.root / name).write_text(json.dumps(content))
    one_line_answer(kept.run(*options), expected)
