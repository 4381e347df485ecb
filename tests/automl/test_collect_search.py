"""A search by the suite itself, on the embedded data: its record follows from its journal to the bit."""

from __future__ import annotations

import html
import json
import shutil
import time
from pathlib import Path

import pytest

from proofmark.automl.logs.trial_log import epochs_of
from proofmark.automl.outcome.collect import collect
from proofmark.automl.outcome.record import AutoMLRecord
from proofmark.automl.outcome.scoring import marks_of, score_of
from proofmark.automl.outcome.trials import trials_of
from proofmark.automl.search.journal import FILE, read_journal
from proofmark.automl.search.state import Elapsed
from proofmark.suite import find_suites
from proofmark.verification.verify import verify
from tests.automl.searches import ROOT, search, session, settings
from tests.automl.stops_at import AT, PLUGIN, UNTIL


def test_a_search_is_scored_again_from_its_journal(tmp_path: Path) -> None:
    folder = tmp_path / "search"
    search(folder, settings(4), {2: "nan"})
    first, second = (trials_of(read_journal(folder / FILE), folder) for _ in range(2))
    assert [trial.host == "elsewhere" for trial in first] == [False, True, False, False], "each says where it ran"
    assert first == second and [trial.status for trial in first] == ["finished", "finished", "failed", "finished"]
    assert score_of(first, 7.0, 0.1) == score_of(second, 7.0, 0.1)
    assert list(marks_of(first, 7.0, 0.5, 1)) == list(marks_of(second, 7.0, 0.5, 1))
    with (folder / "trials/00001/noderank0/trial.jsonl").open("a", encoding="utf-8") as log:
        log.write("{}\n")
    assert [trial.log_intact for trial in trials_of(read_journal(folder / FILE), folder)] == [True, False, True, True]


def test_the_search_is_over_before_its_best_network_is_examined() -> None:
    """Whatever that writes down; the time between two drivers is no time of the search either."""
    since = Elapsed()
    kinds = ("driver_begin", "trial_begin", "driver_begin", "trial_end", "search_end", "data", "examined")
    for moment, kind in enumerate(kinds):
        since({"event": kind, "clock": moment * 1_000_000_000} | ({"data_items": None} if kind == "examined" else {}))
    assert (since.seconds, since.drivers) == (3.0, 2)


def test_a_search_of_before_has_the_seconds_of_then() -> None:
    """Its data's identity was of the search, and how many items there are was not told."""
    since = Elapsed()
    for moment, kind in enumerate(("driver_begin", "search_end", "data", "examined")):
        since({"event": kind, "clock": moment * 1_000_000_000})
    assert since.seconds == 2.0


def test_the_evaluation_before_the_first_step_has_its_own_seconds() -> None:
    """It is no part of the training's clock, which begins after it."""
    last = {"metric": 0.5, "samples_evaluated": 10}
    events = [
        {"event": "evaluation", "clock": 1, "samples": 0, "train_seconds": 0.0, "took_seconds": 0.4, **last},
        {"event": "evaluation", "clock": 2, "samples": 5, "train_seconds": 3.0, "took_seconds": 0.3, **last},
        {"event": "evaluation", "clock": 3, "samples": 9, "train_seconds": 5.0, "took_seconds": 0.3, **last},
    ]
    assert [epoch["seconds"] for epoch in epochs_of(events, 0.0)] == [0.4, 3.0, 2.0]


def test_the_suite_searches_and_no_edit_goes_unseen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    few = ["--max-trials", "2", "--set", "warmup_1=15", "--set", "warmup_2=15"]
    outputs = {"--junitxml": "junit.xml", "--alluredir": "allure", "--benchmark-json": "benchmark.json"}
    options = [*few, "--max-duration", "6000", "--results-dir", str(tmp_path / "results")]
    options += [f"{option}={tmp_path / name}" for option, name in outputs.items()]
    page, seen = tmp_path / "results" / "latest" / "report.html", tmp_path / "seen"
    held = {AT: "search_end", UNTIL: str(seen)}  # the page of a search that goes on is there until it was read
    with session("suites/automl", "--vendor", "cpu", *options, *PLUGIN, as_users_do=True, **held) as running:
        while running.poll() is None and not page.exists():
            time.sleep(0.1)
        live = page.read_text(encoding="utf-8")
        seen.touch()
        output, _ = running.communicate(timeout=600)
    assert running.returncode == 0, output[-3000:]
    assert "not rankable" in output
    allure = "\n".join(
        html.unescape(path.read_text(encoding="utf-8")) for path in (tmp_path / "allure").glob("*-result.json")
    )
    benchmark = (tmp_path / "benchmark.json").read_text(encoding="utf-8")
    scores = {"score", "regulated score", "score, AIPerf's way", "regulated, AIPerf's way"}
    assert all(f"{text}: " in allure for text in scores) and allure.count("(not rankable: ") == len(scores)
    assert benchmark.count('"note": "not rankable: ') == len(scores)
    assert '"rankable" value="no"' in (tmp_path / "junit.xml").read_text(encoding="utf-8")
    assert "unfinished: the search goes on since" in live and 'http-equiv="refresh"' in live
    final = page.read_text(encoding="utf-8")
    assert "unfinished" not in final and 'http-equiv="refresh"' not in final
    (run_dir,) = (tmp_path / "results").resolve().glob("[0-9]*/automl/*")
    assert "Not rankable" in (run_dir / "Report_Succeed.html").read_text(encoding="utf-8")
    record = AutoMLRecord.load(run_dir / "record.json")
    assert [trial.parent for trial in record.trials] == [None, 0]
    assert record.held_out_accuracy is not None and record.held_out_accuracy >= record.target
    assert all(trial.counted == (trial.forward_flops, trial.training_flops) for trial in record.trials)
    child = record.trials[1].epochs
    assert child[0].images == 0 and child[0].accuracy == record.trials[0].accuracy  # before training, its parent's
    again = collect(run_dir)
    assert (again.score, again.marks, again.verdict) == (record.score, record.marks, record.verdict)
    _is_verified_elsewhere(run_dir, tmp_path / "brought", monkeypatch)
    log = run_dir / "events.jsonl"
    log.write_text(log.read_text(encoding="utf-8").replace('"resumed":false', '"resumed":true'), encoding="utf-8")
    only_judged = collect(run_dir)
    assert not record.resumed and not only_judged.resumed and only_judged.score == record.score
    (seen,) = (event for event in read_journal(Path(record.journal)) if event["event"] == "contention")
    assert only_judged.contention is not None and only_judged.contention.others == seen["others"]
    first, *rest = log.read_text(encoding="utf-8").splitlines(keepends=True)
    begin = json.loads(first)
    begin["versions"]["torch"] += ".1"
    log.write_text("".join((json.dumps(begin) + "\n", *rest)), encoding="utf-8")
    other = collect(run_dir)
    assert other.resumed, "a session of a search that had ended may have conditions of its own"
    assert "it was resumed, and has no time to rank" in other.unrankable
    journal = Path(record.journal)
    text = journal.read_text(encoding="utf-8")
    journal.write_text(text.replace('"images":1', '"images":9', 1), encoding="utf-8")
    edited = collect(run_dir)
    assert edited.verdict is not None and edited.verdict.kind == "FAIL_HONESTY"
    assert "it was edited" in edited.verdict.reasons[0]
    with (run_dir / "events.jsonl").open("a", encoding="utf-8") as log:
        log.write("damaged\n")
    assert collect(run_dir).corrupt_lines == 1


def _is_verified_elsewhere(run_dir: Path, brought: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its session's folder, where that of the search itself is not. Only the session's own log is bounded."""
    away = run_dir.rename(run_dir.with_name("away"))
    shutil.copytree(run_dir.parents[1], brought, ignore=shutil.ignore_patterns("automl"))
    copied = brought / "automl" / run_dir.name
    shutil.copytree(away, copied)
    away.rename(run_dir)
    suites = find_suites(ROOT / "suites")
    room = (copied / "events.jsonl").stat().st_size
    with monkeypatch.context() as patched:
        patched.setattr("proofmark.verification.again.LARGEST", room - 1)
        assert "its logs are too large to be read again" in str(verify(brought, suites).findings)
    assert (copied / "search" / FILE).stat().st_size > room
    monkeypatch.setattr("proofmark.verification.again.LARGEST", room)
    verified = verify(brought, suites)
    assert verified.holds and not verified.notes, (verified.findings, verified.notes)
    journal = copied / "search" / FILE
    journal.write_text(journal.read_text(encoding="utf-8").replace('"images":1', '"images":9', 1), encoding="utf-8")
    text = "\n".join(map(str, verify(brought, suites).findings))
    assert f"search/{FILE}: was edited" in text and "its logs say" in text, text
