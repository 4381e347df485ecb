"""What a vendor declares in its environment.yaml: applied, recorded, and looked for before anything runs."""

from __future__ import annotations

import os

import pytest

from tests.e2e.conftest import House, one_line_answer

FILE = """\
variables: {FAKE_SHOWN: of all, OMP_NUM_THREADS: 3}
cases:
  inference/tiny: {variables: {FAKE_SHOWN: of tiny}, requirements: [packaging]}
"""
SHOWS = "\n\nimport os, torch\nprint('SHOWN', os.environ.get('FAKE_SHOWN'), torch.get_num_threads())\n"


def test_variables_reach_the_vendors_code_and_the_record(house: House) -> None:
    vendor = house.root / "vendors/fake"
    vendor.joinpath("environment.yaml").write_text(FILE)
    vendor.joinpath("__init__.py").write_text(vendor.joinpath("__init__.py").read_text() + SHOWS)
    ran = house.run()
    assert ran.code == 0, ran.output
    made = ran.record().provenance
    assert made is not None and list(made.requirements) == ["packaging"]
    assert made.environment == {"FAKE_SHOWN": "of tiny", "OMP_NUM_THREADS": "3"}
    assert "SHOWN of tiny 3" in (ran.case_dir() / "worker.log").read_text()
    assert "FAKE_SHOWN=of tiny" in (ran.run_dir / "report.html").read_text()
    trained = house.run("-k", "1x1", suite="training")
    assert trained.code == 0, trained.output
    (log,) = (trained.run_dir / "training/tiny/1x1").glob("round1/noderank0/rank0.log")
    assert "SHOWN of all 3" in log.read_text()
    made = trained.training("1x1").provenance
    assert made is not None and made.environment == {"FAKE_SHOWN": "of all", "OMP_NUM_THREADS": "3"}


def test_what_is_not_there_is_told_before_anything_runs(house: House) -> None:
    path = house.root / "vendors/fake/environment.yaml"
    path.write_text("requirements: ['fake-runtime>=2']\n")
    ran = house.run()
    one_line_answer(ran, "vendors/fake/environment.yaml: requirements: not installed", "pip install 'fake-runtime>=2'")
    assert not ran.results.exists()
    path.write_text("variables: {LD_PRELOAD: /opt/fake.so}\n")
    one_line_answer(house.run(), "environment.yaml: variables.LD_PRELOAD: LD_PRELOAD changes which code runs")
    path.write_text("cases: {inference/tinny: {}}\n")
    one_line_answer(house.run(), "cases.inference/tinny: there is no such case; did you mean 'inference/tiny'?")


ADAPTER = """\
from proofmark.vendor import TrainingAdapter


class Own(TrainingAdapter):
    def backward(self, loss):
        print("OWN BACKWARD")
        loss.backward()


adapter = Own()
"""


def test_a_case_may_have_steps_of_its_own(house: House) -> None:
    vendor = house.root / "vendors/fake"
    vendor.joinpath("training.py").rename(vendor / "chosen_training.py")
    init = vendor / "__init__.py"
    others = init.read_text().replace("monitors, training,", "chosen_training, monitors,")
    init.write_text(others.replace("training.chosen()", "chosen_training.chosen()"))
    vendor.joinpath("training").mkdir()
    path = vendor / "training/tiny.py"
    path.write_text(ADAPTER)
    ran = house.run("-k", "1x1", suite="training")
    assert ran.code == 0, ran.output
    assert ran.training("1x1").adapted == ("backward",)
    assert "OWN BACKWARD" in (ran.run_dir / "training/tiny/1x1/round1/noderank0/rank0.log").read_text()
    path.write_text("adapter = 1\n")
    one_line_answer(house.run("-k", "1x1", suite="training"), "training/tiny.py: expected 'adapter', an instance of")
    theirs = path.rename(path.with_name("config_A100x1x8.py"))
    expected = "training/config_A100x1x8.py: expected 'adapter', an instance of a TrainingAdapter; it is never read"
    one_line_answer(house.run("-k", "1x1", suite="training"), expected)
    theirs.rename(path.with_name("tinny.py")).write_text(ADAPTER)
    expected = "training/tinny.py: is not named after a case; did you mean 'training/tiny'?"
    one_line_answer(house.run("-k", "1x1", suite="training"), expected)


LOGS = """

import logging
logging.getLogger("fake").debug("A WORD FOR DEBUGGING")
logging.getLogger("fake").error("A WORD OF ERROR")
"""


@pytest.mark.parametrize("level, debug", [("DEBUG", True), ("ERROR", False)])
def test_a_host_file_says_what_is_logged_and_whether_caches_are_cleared(house: House, level: str, debug: bool) -> None:
    vendor = house.root / "vendors/fake/__init__.py"
    vendor.write_text(vendor.read_text() + LOGS)
    house.root.joinpath("host.yaml").write_text(f"FLAGPERF_LOG_LEVEL: {level}\nCLEAR_CACHES: {debug}\n")
    ran = house.run("--host-config", "host.yaml", "--set", "log_freq=1")
    assert ran.code == 0 and "no effect" not in ran.output, ran.output
    log = (ran.case_dir() / "worker.log").read_text()
    assert "A WORD OF ERROR" in log
    assert ("A WORD FOR DEBUGGING" in log, "engine round 1/2: 1/" in log) == (debug, debug)
    record = ran.record()
    if os.access("/proc/sys/vm/drop_caches", os.W_OK):
        assert (record.caches_cleared, record.caches_kept) == (True if debug else None, None)
    else:
        assert record.caches_cleared is (False if debug else None)
        assert ("WARNING caches are not cleared" in ran.output) == debug == ("not cleared: " in ran.output)
