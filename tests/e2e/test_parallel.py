"""Several cases at once: one worker and one case per device at a time, one folder, one set of reports."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import psutil
import pytest

from tests.disks import MakeDisk, fill
from tests.e2e.conftest import House, clean, one_line_answer
from tests.reports.xunit2 import properties, suites
from tests.waiting import until


@pytest.fixture
def two_devices(house: House, monkeypatch: pytest.MonkeyPatch) -> House:
    """A house with three cases on a machine with two devices."""
    monkeypatch.setenv("FAKE_DEVICES", "2")
    house.add_case("second")
    house.add_case("third")
    return house


def both_begin(house: House) -> None:
    """Wait until two cases have."""
    results = house.root / "results"
    until(lambda: len(list(results.glob("[0-9]*/inference/*/events.jsonl"))) == 2, "two cases to begin")


def test_cases_are_spread_over_devices_and_every_report_has_them_all(two_devices: House) -> None:
    ran = two_devices.run("-n", "2", "--dist", "loadgroup", "--benchmark-json=b.json", "--junitxml=junit.xml")
    assert ran.code == 0, ran.output
    cases = {"tiny", "second", "third"}
    records = [ran.record(case) for case in sorted(cases)]
    assert {record.verdict.kind for record in records if record.verdict} == {"PASS"}
    assert {record.device for record in records} == {0, 1}
    assert all(record.engine is not None for record in records)
    entries = json.loads((two_devices.root / "b.json").read_text())["benchmarks"]
    assert {(e["extra_info"]["case"], e["extra_info"]["figure"]) for e in entries} == {
        (c, g) for c in cases for g in ("whole", "core")
    }
    rounds = {e["extra_info"]["case"]: e["stats"]["data"] for e in entries if e["extra_info"]["figure"] == "core"}
    for record in records:
        assert record.engine is not None
        assert rounds[record.case] == pytest.approx([r.core_seconds / r.items for r in record.engine.rounds])
    junit = suites(two_devices.root / "junit.xml")
    assert {name: properties(suite)["case"] for name, suite in junit.items()} == {f"inference/{c}": c for c in cases}
    page = (ran.run_dir / "report.html").read_text()
    assert all(case in page for case in cases)
    assert ran.output.count("VERDICT PASS") == 3
    assert two_devices.becomes_empty()


def test_a_full_disk_under_a_workers_files_takes_nothing_with_it(two_devices: House, make_disk: MakeDisk) -> None:
    disk = make_disk(64)
    fill(disk)
    ran = two_devices.run("-n", "2", "-k", "tiny or second", f"--alluredir={disk}")
    assert ran.code == 3, ran.output
    assert "Traceback" not in ran.output and "INTERNALERROR" not in ran.output
    assert "--alluredir: cannot be written: No space left on device" in ran.output.splitlines()
    assert ran.output.count("VERDICT PASS") == 2 and (ran.run_dir / "report.html").is_file()


def test_tests_of_a_case_stay_together_without_being_told_and_a_failure_loses_only_its_own_case(
    two_devices: House,
) -> None:
    two_devices.vendor_yaml("third").write_text("repeat: 3\nseed: 7\n")
    reports = ("--summary=told.md", "--annotations=told.txt", "--junitxml=junit.xml", "--alluredir=allure")
    ran = two_devices.run("-n", "2", *reports, trouble="second.call=SIGKILL")
    assert sorted(path.name for path in (ran.run_dir / "inference").iterdir()) == ["second", "third", "tiny"]
    assert ran.code == 17, ran.output
    assert ran.verdict("second")[0] == "ERROR"
    assert (ran.verdict("tiny")[0], ran.verdict("third")[0]) == ("PASS", "FAIL_LEGALITY")
    summary = (two_devices.root / "told.md").read_text()
    assert summary.startswith("## Proofmark&#58; 3 runs, exit code 17\n")
    assert [summary.count(f"&#47;{case} |") for case in ("tiny", "second", "third")] == [1, 1, 1]
    (annotation,) = (two_devices.root / "told.txt").read_text().splitlines()
    path = two_devices.vendor_yaml("third").relative_to(two_devices.root).as_posix()
    assert annotation.startswith(f"::error file={path},line=2,title=not legal::seed: ")
    assert set(suites(two_devices.root / "junit.xml")) == {f"inference/{case}" for case in ("tiny", "second", "third")}
    results = [json.loads(path.read_text()) for path in (two_devices.root / "allure").glob("*-result.json")]
    stops = {each["stop"] for each in results if "TestSecond#" in each["fullName"]}
    assert stops == {round(1000 * ran.record("second").started)}, "no moment of a worker's tests tells a speed"


def test_an_interrupt_of_all_processes_keeps_every_record(two_devices: House) -> None:
    """As Ctrl-C does it, which reaches the workers too. One that takes long to end, as it does where others use the
    cores, is waited for: xdist gives it ten seconds, and here two."""
    slow = "import time\nfrom xdist.workermanage import NodeManager\nNodeManager.EXIT_TIMEOUT = 2\n"
    slow += "def pytest_sessionfinish(session):\n"
    slow += "    time.sleep(3 if hasattr(session.config, 'workeroutput') else 0)\n"
    (two_devices.root / "ends_slowly.py").write_text(slow)
    session = two_devices.start(
        *("--vendor", "fake", "-n", "2", "-k", "Tiny or Second", "-p", "ends_slowly"), trouble="*.call=hang"
    )  # both: a sleep comes once, and the other case would end if it were not interrupted soon
    two_devices.wait_for_trouble(session)
    both_begin(two_devices)
    os.killpg(session.pid, signal.SIGINT)
    ran = two_devices.end(session)
    assert ran.code == 2, ran.output
    for case in ("tiny", "second"):
        kind, reasons = ran.verdict(case)
        assert (kind, reasons[:19]) == ("ERROR", "interrupted in step")
        assert f"ERROR  inference/{case} " in ran.output
    clean(ran)
    assert two_devices.becomes_empty()


def test_a_worker_that_replaces_one_which_was_killed_has_its_device(two_devices: House) -> None:
    """Beside another device's, which is in use: on neither of both would a speed be the case's own."""
    session = two_devices.start("--vendor", "fake", "-n", "2", trouble="second.call=held, third.call=held")
    two_devices.wait_for_trouble(session)
    both_begin(two_devices)
    started = sorted(psutil.Process(session.pid).children(), key=lambda process: process.create_time())
    _, gw1 = [process for process in started if "exec(eval" in " ".join(process.cmdline())]
    gw1.kill()
    results = two_devices.root / "results"
    until(lambda: bool(list(results.glob("[0-9]*/inference/tiny/record.json"))), "the case after those to be run")
    two_devices.release()
    ran = two_devices.end(session)
    assert ran.code == 1 and "replacing crashed worker gw1" in ran.output, ran.output
    assert "the case was begun before, and a session runs none twice" in ran.output and "File exists" not in ran.output
    held = [case for case in ("second", "third") if (ran.case_dir(case) / "record.json").exists()]
    assert [ran.record(case).device for case in (*held, "tiny")] == [0, 1], "gw0 had whichever it was ready for first"


def test_a_device_list_of_the_user_is_kept_to(two_devices: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_VISIBLE_DEVICES", "5")
    ran = two_devices.run("-k", "Tiny")
    assert ran.record().device == 5


def test_more_workers_than_devices_are_refused(house: House) -> None:
    ran = house.run("-n", "2")
    one_line_answer(ran, "more workers than devices: vendor fake has 1 here, so -n may be at most 1, not 2")
    assert not (house.root / "results").exists()
    assert house.becomes_empty()


def test_more_workers_than_can_be_given_a_device_are_refused(two_devices: House) -> None:
    """Without a variable that says which, all of them would compute on the first."""
    with (two_devices.root / "vendors/fake/__init__.py").open("a") as stream:
        stream.write("\nFake.visible_devices_variable = None\n")
    one_line_answer(two_devices.run("-n", "2"), "vendor fake has 1 here", "no visible_devices_variable", "at most 1")
    ran = two_devices.run("-k", "Tiny")
    assert ran.code == 0 and ran.record().device == 0, ran.output


def test_a_usage_error_is_one_line_here_too(house: House) -> None:
    one_line_answer(house.run("-n", "1", vendor="nobody"), "unknown vendor 'nobody'")
    for dist in ("worksteal", "each"):
        one_line_answer(house.run("-n", "1", "--dist", dist), f"--dist {dist}: expected one of load, loadscope, loadf")
    house.case_yaml.write_text("[")
    one_line_answer(house.run("-n", "1"), "tiny.yaml: not valid YAML")


def test_one_worker_is_as_good_as_none(house: House, tmp_path: Path) -> None:
    ran = house.run("-n", "1")
    assert ran.code == 0, ran.output
    assert ran.record().device == 0


def test_a_failure_that_stops_the_session_keeps_the_exit_code_of_its_verdict(house: House) -> None:
    """Of xdist -x comes as an interrupt, which it is not."""
    house.vendor_yaml().write_text("seed: 7\n")
    ran = house.run("-n", "1", "-x")
    assert ran.code == 16, ran.output
    assert ran.verdict()[0] == "FAIL_LEGALITY"
    assert "stopping after 1 failures" in ran.output and "interrupted" not in ran.output
    clean(ran)
