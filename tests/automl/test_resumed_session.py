"""A session that was killed in the middle of a search, and the one that goes on with it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from proofmark.automl.outcome.record import AutoMLRecord
from proofmark.record.parts import VerdictKind
from tests.automl.searches import ROOT

TOO_SLOW = ["--max-trials", "2", "--set", "learning_rate=1e-6", "--set", "warmup_1=1", "--set", "warmup_2=1"]
"""What no network can learn with: the search misses its target."""


def session(results: Path, *options: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "pytest", "suites/automl", "--vendor", "cpu", "-p", "no:cacheprovider"]
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST_")}
    return subprocess.Popen(
        [*command, *TOO_SLOW, "--max-duration", "600", "--results-dir", str(results), *options],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def events(results: Path) -> list[dict[str, Any]]:
    found = [path.read_text(encoding="utf-8") for path in results.glob("[0-9]*/automl/*/search/journal.jsonl")]
    return [json.loads(line) for text in found for line in text.splitlines() if line.endswith("}")]


def test_no_trial_is_lost_or_done_twice_and_what_misses_its_target_is_a_failed_test(tmp_path: Path) -> None:
    killed, resumed = tmp_path / "killed", tmp_path / "resumed"
    with session(killed) as running:
        while running.poll() is None and not any(event["event"] == "trial_end" for event in events(killed)):
            time.sleep(0.05)
        running.kill()
        running.communicate()
    before = events(killed)
    assert [event["trial"] for event in before if event["event"] == "trial_end"] == [0]

    (earlier,) = killed.glob("[0-9]*")
    with session(resumed, "--resume", str(earlier), "--junitxml", str(tmp_path / "junit.xml")) as running:
        output, _ = running.communicate(timeout=600)
    assert running.returncode == VerdictKind.FAIL_ACCURACY.exit_code, output[-3000:]
    whole = events(killed)
    assert whole[: len(before)] == before, "nothing of what was written is written anew"
    assert [event["trial"] for event in whole if event["event"] == "trial_end"] == [0, 1]
    assert [event["trial"] for event in whole if event["event"] == "trial_begin"].count(0) == 1

    (run_dir,) = resumed.glob("[0-9]*/automl/*")
    record = AutoMLRecord.load(run_dir / "record.json")
    assert record.verdict is not None and record.verdict.kind is VerdictKind.FAIL_ACCURACY
    assert record.drivers == 2 and "it was resumed, and has no time to rank" in record.unrankable
    failed = (run_dir / "Report_Failed.html").read_text(encoding="utf-8")
    assert "FAIL_ACCURACY" in failed and record.verdict.reasons[0][:40] in failed
    assert not (run_dir / "Report_Succeed.html").exists()
    assert "FAIL_ACCURACY" in (tmp_path / "junit.xml").read_text(encoding="utf-8")
