"""Sessions of the suite's own search: one that is killed and one that goes on with it, on a Ray, and on a full disk."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from contextlib import AbstractContextManager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import psutil
import pytest

from proofmark.automl.outcome.record import AutoMLRecord
from proofmark.record.parts import VerdictKind
from tests.automl.searches import session
from tests.automl.stops_at import AT, PLUGIN, UNTIL
from tests.disks import MakeDisk
from tests.services import missing
from tests.waiting import name_of, until

TOO_SLOW = ["--max-trials", "2", "--set", "learning_rate=1e-6", "--set", "warmup_1=1", "--set", "warmup_2=1"]
"""What no network can learn with: the search misses its target."""


def search(
    results: Path, *options: str, as_users_do: bool = False, **variables: str
) -> AbstractContextManager[subprocess.Popen[str]]:
    times = ("--max-duration", "6000", "--hang-timeout", "300")
    arguments = ("suites/automl", "--vendor", "cpu", *TOO_SLOW, *times, "--results-dir", str(results), *options)
    return session(*arguments, as_users_do=as_users_do, **variables)


def events(results: Path) -> list[dict[str, Any]]:
    found = [path.read_text(encoding="utf-8") for path in results.glob("[0-9]*/automl/*/search/journal.jsonl")]
    return [json.loads(line) for text in found for line in text.splitlines(keepends=True) if line.endswith("\n")]


def listening(running: subprocess.Popen[str]) -> dict[int, psutil.Process]:
    """Ports at which a session and all that it has started listen now, and what does."""
    found: dict[int, psutil.Process] = {}
    with contextlib.suppress(psutil.NoSuchProcess):
        for process in [psutil.Process(running.pid), *psutil.Process(running.pid).children(recursive=True)]:
            with contextlib.suppress(psutil.NoSuchProcess):
                ports = [each for each in process.net_connections("inet") if each.status == psutil.CONN_LISTEN]
                found |= {each.laddr.port: process for each in ports}
    return found


def priorities_of_trials(running: subprocess.Popen[str]) -> set[int]:
    """Of the processes that train."""
    found = set[int]()
    for process in psutil.Process(running.pid).children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):
            found |= {process.nice()} if any("automl.trial" in word for word in process.cmdline()) else set()
    return found


def answer(port: int, **variables: str) -> str:
    """What a Ray has to say to who has these variables."""
    asked = f"import ray\nray.init('127.0.0.1:{port}', log_to_driver=False, logging_level='CRITICAL')"
    environment = {**os.environ, "RAY_NUM_REDIS_GET_RETRIES": "2", **variables}
    done = subprocess.run([sys.executable, "-c", asked], env=environment, capture_output=True, text=True, timeout=600)
    return done.stderr.strip().splitlines()[-1] if done.returncode else "welcome"


def nothing_runs(results: Path) -> bool:
    """Of the session that wrote there."""
    commands = [process.info["cmdline"] or [] for process in psutil.process_iter(["cmdline"])]
    return not [command for command in commands if any(str(results) in word for word in command)]


def test_a_limit_to_steps_is_refused_where_no_selected_case_has_any() -> None:
    looking = ("--vendor", "cpu", "--step-timeout", "3600", "--collect-only", "-q")
    with session("suites/automl", *looking) as running:
        output, _ = running.communicate()
    assert running.returncode == 4 and "--step-timeout: a search has no steps, and --max-duration ends it" in output
    with session("suites/automl", "suites/training", *looking) as running:
        output, _ = running.communicate()
    assert running.returncode == 0, output


def test_no_trial_is_lost_or_done_twice_and_what_misses_its_target_is_a_failed_test(tmp_path: Path) -> None:
    killed, resumed = tmp_path / "killed", tmp_path / "resumed"
    with search(killed, *PLUGIN, **{AT: "trial_end"}) as running:
        while running.poll() is None:
            assert not listening(running)
            time.sleep(0.05)
        output, _ = running.communicate()
    assert running.returncode == -signal.SIGKILL, output[-3000:]
    before = events(killed)
    assert [event["trial"] for event in before if event["event"] == "trial_end"] == [0]

    (earlier,) = killed.glob("[0-9]*")
    with search(resumed, "--resume", str(earlier), "--junitxml", str(tmp_path / "junit.xml")) as running:
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

    before, sessions = events(killed), sorted(resumed.iterdir())
    for options, expected in (
        ((), "has ended, and its best network is judged: there is nothing to resume"),
        (("--max-trials", "5"), "has another configuration: max_trials (2 there, 5 here); repeat its options"),
    ):
        with search(resumed, "--resume", str(resumed / "latest"), *options) as running:
            output, _ = running.communicate(timeout=600)
        assert running.returncode == 4 and expected in output, output[-3000:]
        assert "Traceback" not in output and len([line for line in output.splitlines() if "ERROR" in line]) == 1
    assert events(killed) == before and sorted(resumed.iterdir()) == sessions, "nothing was written"


def test_who_only_has_the_best_network_judged_has_the_time_of_the_search(tmp_path: Path) -> None:
    """Its session was killed when the search was over."""
    killed, resumed = tmp_path / "killed", tmp_path / "resumed"
    with search(killed, *PLUGIN, **{AT: "contention"}) as running:
        output, _ = running.communicate(timeout=600)
    assert running.returncode == -signal.SIGKILL, output[-3000:]
    (seen,) = (event for event in events(killed) if event["event"] == "contention")
    (earlier,) = killed.glob("[0-9]*")
    with search(resumed, "--resume", str(earlier)) as running:
        output, _ = running.communicate(timeout=600)
    assert running.returncode == VerdictKind.FAIL_ACCURACY.exit_code, output[-3000:]
    (run_dir,) = resumed.glob("[0-9]*/automl/*")
    record = AutoMLRecord.load(run_dir / "record.json")
    assert record.drivers == 1 and record.held_out_accuracy is not None
    assert record.unrankable == ["the profile is too small to stand for the workload"]
    assert record.contention is not None and record.contention.others == seen["others"]


def test_on_a_ray_of_this_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It does nothing for others, and is gone with the session."""
    if find_spec("ray") is None:
        missing("ray (pip install ray)")
    monkeypatch.setenv("CI_DEPLOY_TOKEN", "open sesame")
    answers: tuple[str, str] | None = None
    priorities, seen = set[int](), tmp_path / "seen"
    # the first trial waits for its word, with its process and the Ray, until all has been looked at
    held = {AT: "trial_begin", UNTIL: str(seen)}
    with search(tmp_path, "--launcher", "ray", *PLUGIN, as_users_do=True, **held) as running:
        while running.poll() is None and not (answers and priorities):
            priorities |= priorities_of_trials(running)
            time.sleep(0.5)
            servers = {port: each for port, each in listening(running).items() if name_of(each) == "gcs_server"}
            for port, server in servers.items() if events(tmp_path) and not answers else ():
                known = {name: value for name, value in server.environ().items() if name.startswith("RAY_AUTH")}
                answers = answer(port), answer(port, **known)
                assert "open sesame" not in server.environ().values()
        seen.touch()
        output, _ = running.communicate()
    assert running.returncode == VerdictKind.FAIL_ACCURACY.exit_code, output[-3000:]
    assert answers is not None
    assert answers[0].startswith("ConnectionError: Failed to connect to Ray") and answers[1] == "welcome"
    assert priorities == {os.getpriority(os.PRIO_PROCESS, 0)}, "Ray's own would be starved by whatever else runs"
    (run_dir,) = tmp_path.glob("[0-9]*/automl/*")
    record = AutoMLRecord.load(run_dir / "record.json")
    assert [trial.reason for trial in record.trials] == [None, None]
    (parent, child) = record.trials
    assert child.parent == 0 and parent.accuracy is not None and child.epochs[0].accuracy is not None
    assert record.dataset and {trial.trained_on for trial in record.trials} == {record.dataset.sha256}
    assert record.chosen_on and {trial.evaluated_on for trial in record.trials} == {record.chosen_on.sha256}
    assert abs(child.epochs[0].accuracy - parent.accuracy) < 0.02, "it begins with what its parent has learnt"
    until(lambda: nothing_runs(tmp_path), "all of it to be gone")


def test_on_a_disk_that_fills_up(make_disk: MakeDisk) -> None:
    results = make_disk(300)
    with search(results) as running:
        output, _ = running.communicate(timeout=600)
    assert running.returncode not in (0, 1, 5), output[-3000:]
    assert "No space left on device" in output and "Traceback" not in output
    until(lambda: nothing_runs(results), "all of it to be gone")
