"""What can befall a rank: who and why is named, what was measured is kept, nothing is left running."""

from __future__ import annotations

import shutil

import pytest

from proofmark.process.output import capped_log
from proofmark.training.outcome.record import Failure
from tests.e2e.conftest import House, Ran

FAULTS = {
    "leaves": ("rank1.step5=exit7", 1, "rank 1 ended with exit code 7"),
    "is_killed": ("rank1.step5=SIGKILL", 1, "rank 1 was killed by signal 9"),
    "raises": ("rank0.step5=raise", 0, "rank 0: RuntimeError: trouble in rank0.step5"),
    "wants_memory": ("rank1.step5=memory", 1, "rank 1: MemoryError: cannot allocate 1 TiB"),
    "has_no_model": ("rank1.model=raise", 1, "rank 1: RuntimeError: trouble in rank1.model"),
    "hangs_in_setup": ("rank1.model=hang", 1, "rank 1 hung while it set up, for"),
    "hangs_at_once": ("rank1.step1=hang", 1, "rank 1 hung in step 0, compute, for"),
    "hangs": ("rank1.step20=hang", 1, "rank 1 hung in step"),
    "loads_no_more": ("rank1.load20=hang", 1, "rank 1 hung in step"),
    "loses_its_loader": (
        *("rank1.load20=SIGKILL", 1),
        "rank 1: the process that loads its data died of signal 9 (SIGKILL)",
    ),
    "diverges": ("rank1.loss9=yes", 1, "rank 1: the loss of step 9 is not finite"),
}
"""By case: trouble in a run of two ranks, the rank at fault, and what is said of it."""

FLOODS = {"floods_and_is_killed": "SIGKILL", "floods_and_hangs": "hang"}
"""Cases in which a rank prints without end, and how it ends after that."""


@pytest.fixture(scope="module")
def faults(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    """All in one session, each in a case of its own."""
    house = House(tmp_path_factory.mktemp("faults") / "house")
    suite, trouble = house.root / "suites/training", []
    for case in (*FAULTS, *FLOODS):
        shutil.copy(suite / "tiny.yaml", suite / f"{case}.yaml")
        test = "from suites.training import test_tiny\n\n\nclass TestFault(test_tiny.TestTiny):\n    pass\n"
        (suite / f"test_{case}.py").write_text(test)
    trouble += [f"{case}.{ordered}" for case, (ordered, _, _) in FAULTS.items()]
    for case, end in FLOODS.items():
        trouble += [f"{case}.rank1.step10=flood", f"{case}.rank1.step20={end}"]
    options = ("-k", "TestFault and 1x2", "--hang-timeout", "15", "--setup-timeout", "30")  # a machine may stand still
    ran = house.run(*options, vendor="cpu", suite="training", trouble=",".join(trouble))
    assert house.becomes_empty()
    return ran


def failure(ran: Ran, case: str) -> Failure:
    """What befell a case's only run; it is no result."""
    record = ran.training("1x2", case)
    (run,) = record.runs
    assert run.failure is not None and record.verdict is not None, ran.output
    assert str(record.verdict.kind) == ("FAIL_ACCURACY" if case == "diverges" else "ERROR"), ran.output
    return run.failure


@pytest.mark.parametrize("case", FAULTS)
def test_rank_and_cause_are_named(faults: Ran, case: str) -> None:
    trouble, rank, expected = FAULTS[case]
    found, record = failure(faults, case), faults.training("1x2", case)
    assert found.ranks == (rank,) and expected in found.cause, faults.output
    assert record.verdict is not None and expected in "\n".join(record.verdict.reasons)
    if "raise" in trouble:
        reasons = "\n".join(record.verdict.reasons)
        assert f"{expected} (trouble.py:" in reasons and f", traceback in rank{rank}.log)" in reasons
    log = f"results/{faults.run_dir.name}/training/{case}/1x2/round1/noderank0/rank{rank}.log"
    assert f"its whole log: {log}" in faults.output
    if not trouble.startswith(("rank1.model", "rank1.step1=")):
        assert record.runs[0].losses and record.runs[0].evaluations, "what was measured is kept"
    if "hang" in trouble:
        assert "trouble.py" in found.last_lines, "Python stacks of where it hung"
        assert found.cause.endswith("waiting for it: rank 0"), found.cause


def test_a_session_of_them_is_told_in_few_words(faults: Ran) -> None:
    assert faults.code == 17, faults.output
    assert faults.output.count("withheld") >= len(FAULTS) + len(FLOODS), faults.output
    assert "Traceback" not in faults.output and "most recent call first" not in faults.output, "that is in the logs"
    assert "INTERNALERROR" not in faults.output


@pytest.mark.parametrize("case", FLOODS)
def test_a_rank_that_floods_its_log(faults: Ran, case: str) -> None:
    found, hangs = failure(faults, case), FLOODS[case] == "hang"
    assert found.ranks == (1,), faults.output
    assert found.cause.endswith("waiting for it: rank 0" if hangs else "rank 1 was killed by signal 9"), found.cause
    assert "last words" in found.last_lines and ("trouble.py" in found.last_lines) == hangs
    log = faults.run_dir / f"training/{case}/1x2/round1/noderank0/rank1.log"
    assert capped_log.HEAD < log.stat().st_size < capped_log.HEAD + capped_log.TAIL + 100


def test_a_rank_that_leaves_as_if_all_were_well_is_named(house: House) -> None:
    """All that is missing follows from it."""
    ran = house.run("-k", "1x1", vendor="cpu", suite="training", trouble="tiny.rank0.step5=exit0")
    record = ran.training("1x1")
    assert record.verdict is not None and str(record.verdict.kind) == "ERROR", ran.output
    assert "rank 0 ended with exit code 0 before its training did" in record.verdict.reasons[0], ran.output
    assert len(record.verdict.reasons) == 1, record.verdict.reasons


def test_a_reading_of_memory_that_fails_ends_no_training(house: House) -> None:
    with (house.root / "vendors/cpu/__init__.py").open("a") as stream:
        stream.write("\nCpu.memory = lambda self: 1 / 0\n")
    ran = house.run("-k", "1x1", vendor="cpu", suite="training")
    record = ran.training("1x1")
    assert record.verdict is not None and str(record.verdict.kind) == "PASS", ran.output
    (rank,) = record.runs[0].ranks
    assert rank.host_peak_bytes and rank.device_peak_bytes is None
    log = ran.run_dir / "training/tiny/1x1/round1/noderank0/rank0.log"
    assert "no reading of the device's memory: memory() failed: ZeroDivisionError" in log.read_text()
