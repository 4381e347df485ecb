"""Whatever ends a session early: what was measured is kept, what was started is ended."""

from __future__ import annotations

import os
import secrets
import signal
import time

import pytest

from tests.e2e.conftest import House, Ran, clean
from tests.reports.xunit2 import ended, properties, suites
from tests.waiting import PATIENCE

STEPS = {
    "init": "parent.init",
    "data_and_model": "tiny.data",
    "framework_validation": "worker.framework",
    "export": "tiny.export",
    "compile": "tiny.compile",
    "engine_inference": "tiny.call",
    "summary": "tiny.exit",
}
"""Where trouble sleeps in each of the seven steps. The last: the case's process takes its time to leave."""


ENDS = [
    *((step, signal.SIGINT) for step in STEPS),
    *(("engine_inference", signal.SIGTERM), ("framework_validation", signal.SIGHUP)),
]
"""Ctrl-C in each step. Others are heard alike: they come once, SIGHUP from a terminal that is gone."""


@pytest.mark.parametrize("step, number", ENDS, ids=lambda part: getattr(part, "name", part))
def test_interrupt_in_each_step(house: House, step: str, number: signal.Signals) -> None:
    session = house.start("--vendor", "fake", "--compiler", "onnx", trouble=f"{STEPS[step]}=sleep")
    house.wait_for_trouble(session)
    for _ in range(2 if number is signal.SIGHUP else 1):  # the kernel sends it, and so does the shell
        os.kill(session.pid, number)
        time.sleep(0.05)
    ran = house.end(session)
    assert house.becomes_empty()
    assert ran.code == 2, ran.output
    kind, reasons = ran.verdict()
    assert (kind, reasons) == ("ERROR", f"interrupted in step {step}")
    assert number is signal.SIGINT or f"interrupted by {number.name}" in ran.output
    ends_with(ran, f"interrupted in step {step}")
    assert (ran.run_dir / "report.html").exists()
    clean(ran)
    assert folders_of(ran) <= {"engine"}
    if step in ("compile", "engine_inference"):
        assert ran.record().framework is not None
        kept = {entry.what: ran.case_dir() / entry.path for entry in ran.record().kept}
        assert {"the trained weights", "the exported model", "all that was measured"} <= kept.keys()
        assert all(path.exists() for path in kept.values())


def folders_of(ran: Ran) -> set[str]:
    """What the case's folder has of folders, without what of their names is drawn."""
    return {path.name.partition("-")[0] for path in ran.case_dir().iterdir() if path.is_dir()}


def test_an_interrupt_while_the_export_is_rehearsed_leaves_no_model(house: House) -> None:
    house.cache = house.root / ".cache"  # where nothing was trained yet
    session = house.start("--vendor", "fake", "--compiler", "onnx", trouble="tiny.export=sleep")
    house.wait_for_trouble(session)
    os.kill(session.pid, signal.SIGINT)
    ran = house.end(session)
    assert ran.verdict() == ("ERROR", "interrupted in step data_and_model")
    assert folders_of(ran) <= {"engine"}


BETWEEN = """
import os, signal
def pytest_runtest_teardown(item):
    if item.originalname == "test_overrides_legal":
        os.kill(os.getpid(), signal.SIGINT)
"""


@pytest.mark.parametrize("suite, place", [("inference", "step data_and_model"), ("training", "its beginning")])
def test_an_interrupt_between_a_cases_tests(house: House, suite: str, place: str) -> None:
    """It is not said that nobody had selected the others."""
    (house.root / "interrupts.py").write_text(BETWEEN)
    ran = house.run("-p", "interrupts", suite=suite)
    assert ran.code == 2, ran.output
    ends_with(ran, f"interrupted in {place}", suite)
    assert "were selected" not in ran.output and house.becomes_empty()


SUBMITTING = """
import os, signal
from proofmark.training import run
run.submit = lambda *_: os.kill(os.getpid(), signal.SIGINT)
"""


def test_an_interrupt_while_a_training_is_being_started(house: House) -> None:
    """Which takes seconds, in which its modules are imported."""
    (house.root / "interrupts.py").write_text(SUBMITTING)
    ran = house.run("-p", "interrupts", suite="training")
    assert ran.code == 2, ran.output
    ends_with(ran, "interrupted in round 1", "training")


@pytest.mark.parametrize("place", ["tiny.exit", "tiny.call"])
def test_three_interrupts_are_no_worse_than_one(house: House, place: str) -> None:
    session = house.start("--vendor", "fake", "--junitxml=junit.xml", trouble=f"{place}=sleep")
    house.wait_for_trouble(session)
    for _ in range(3):
        session.send_signal(signal.SIGINT)
        time.sleep(0.05)
    ran = house.end(session)
    assert house.becomes_empty()
    assert ran.code == 2, ran.output
    ends_with(ran, "interrupted in step")
    (suite,) = suites(house.root / "junit.xml").values()
    assert suite.attrib["tests"] == "7" and "interrupted" in ended(suite, "error")[0][1]
    assert properties(suite)["verdict"] == "ERROR"


COLLECTING = """
import os, signal
def pytest_collect_file(file_path, parent):
    os.kill(os.getpid(), signal.SIGTERM)
"""


def test_an_interrupt_before_there_is_a_test_is_an_error(house: House) -> None:
    (house.root / "interrupts.py").write_text(COLLECTING)
    ran = house.run("-p", "interrupts", "--junitxml=junit.xml", "--summary=summary.md")
    assert ran.code == 2, ran.output
    (suite,) = suites(house.root / "junit.xml").values()
    assert ended(suite, "error") == [("session", "interrupted by SIGTERM")]
    assert "interrupted by SIGTERM" in (house.root / "summary.md").read_text()


BEGINNING = """
import os, pytest, signal
@pytest.hookimpl(trylast=True)
def {}():
    os.kill(os.getpid(), signal.SIGINT)
"""


@pytest.mark.parametrize("hook", ["pytest_configure", "pytest_sessionstart"])
def test_an_interrupt_before_the_session_has_begun_is_an_error(house: House, hook: str) -> None:
    """While a vendor introduces itself, say, or parallel workers are started."""
    (house.root / "interrupts.py").write_text(BEGINNING.format(hook))
    ran = house.run("-p", "interrupts", "--junitxml=junit.xml", "--summary=summary.md")
    assert ran.code == 2, ran.output
    (suite,) = suites(house.root / "junit.xml").values()
    assert ended(suite, "error") == [("session", "the session was interrupted")]
    assert "the session was interrupted" in (house.root / "summary.md").read_text()


def ends_with(ran: Ran, reason: str, suite: str = "inference") -> None:
    """In a few calm lines, the last ones."""
    lines = ran.output.rpartition("\n====")[2].splitlines()[2:]
    assert len(lines) <= 12, lines
    assert lines[0].split()[:2] == ["ERROR", f"{suite}/tiny"] and reason in lines[1], lines
    assert lines[-1] == f"results in results/{ran.run_dir.name}, exit code 2"
    assert "KeyboardInterrupt" not in ran.output and "profile embedded -" not in ran.output
    clean(ran)


@pytest.mark.parametrize("trouble", ["vendor.units=sleep", "tiny.data=sleep", "tiny.call=sleep"])
def test_kill_of_the_session_ends_the_case_too_and_frees_its_device(
    house: House, monkeypatch: pytest.MonkeyPatch, trouble: str
) -> None:
    monkeypatch.setenv("FAKE_VISIBLE_DEVICES", f"GPU-{secrets.token_hex(8)}")
    house.has_a_device_apart()
    session = house.start("--vendor", "fake", "--device-wait=9", trouble=trouble)
    house.wait_for_trouble(session)
    assert len(house.processes()) > 1
    if "call" in trouble:
        other = house.run("--device-wait=0", "--results-dir=others")
        assert other.code == 4 and f"of vendor fake is in use by process {session.pid} of" in other.output
    session.kill()
    assert house.becomes_empty()
    session.communicate()
    if "call" in trouble:
        assert house.run("--device-wait=0", "--no-header", "-q").code == 0


def test_a_reader_who_leaves_costs_nothing(house: House) -> None:
    """As in `pytest ... | head -1`: the session goes on to its end, and its exit code is the verdict's."""
    session = house.start("--vendor", "fake", "--benchmark-json=b.json")
    assert session.stdout is not None and "test session starts" in session.stdout.readline()
    session.stdout.close()
    assert session.wait(timeout=5 * PATIENCE) == 0
    ran = Ran(0, "", (house.root / "results/latest").resolve())
    assert ran.verdict()[0] == "PASS"
    assert (ran.run_dir / "report.html").exists() and (house.root / "b.json").exists()
    assert house.becomes_empty()


def test_a_session_without_standard_output(house: House) -> None:
    session = house.start("--vendor", "fake", "--collect-only", before=("sh", "-c", 'exec "$@" >&-', "sh"))
    ran = house.end(session)
    assert (ran.code, ran.output) == (0, "")


LONG_IN_COMING = """
import time

from suites.inference import test_tiny


class TestOther(test_tiny.TestTiny):
    def build_dataloader(self, config, split="validation"):
        loader = super().build_dataloader(config, split)
        if split == "validation":
            loader.dataset.__class__ = type("Points", (Slow, type(loader.dataset)), {})
        return loader


class Slow:
    loaded = 0

    def __getitem__(self, item):
        Slow.loaded += 1
        if Slow.loaded == 500:
            begun = time.monotonic()
            while time.monotonic() - begun < 40:
                WAIT
        return super().__getitem__(item)
"""


@pytest.mark.parametrize("wait, expected", [("pass", "PASS"), ("time.sleep(600)", "ERROR")])
def test_a_batch_that_is_long_in_coming(house: House, wait: str, expected: str) -> None:
    house.add_case("other")
    house.case_yaml.with_name("test_other.py").write_text(LONG_IN_COMING.replace("WAIT", wait))
    ran = house.run("--hang-timeout", "25", "-k", "other")  # a machine may well stand still for ten seconds
    kind, reasons = ran.verdict("other")
    assert kind == expected, reasons
    if kind == "ERROR":
        assert "(--hang-timeout)" in reasons and "its data loader gave no batch, and nothing computed for it" in reasons


def test_an_engine_that_hangs(house: House) -> None:
    house.add_case("other")
    ran = house.run("--hang-timeout", "25", trouble="tiny.call=hang20")
    kind, reasons = ran.verdict()
    assert kind == "ERROR"
    assert "step engine_inference failed: gave no sign of life for" in reasons and "(--hang-timeout)" in reasons
    assert 'honest.py", line' in (ran.record().step("engine_inference").detail or ""), "where it hangs"
    assert ran.verdict("other")[0] == "PASS"
    assert ran.code == 17 and "INTERNALERROR" not in ran.output, ran.output
