"""What can befall a rank: who and why is named, what was measured is kept, nothing is left running."""

from __future__ import annotations

import pytest

from proofmark.process import capped_log
from tests.e2e.conftest import House

FAULTS = {
    "rank1.step5=exit7": (17, (1,), "rank 1 ended with exit code 7"),
    "rank1.step5=SIGKILL": (17, (1,), "rank 1 was killed by signal 9"),
    "rank0.step5=raise": (17, (0,), "rank 0: RuntimeError: trouble in rank0.step5"),
    "rank1.step5=memory": (17, (1,), "rank 1: MemoryError: cannot allocate 1 TiB"),
    "rank1.model=raise": (17, (1,), "rank 1: RuntimeError: trouble in rank1.model"),
    "rank1.model=hang": (17, (1,), "rank 1 hung while it set up, for"),
    "rank1.step1=hang": (17, (1,), "rank 1 hung in step 0, compute, for"),
    "rank1.step20=hang": (17, (1,), "rank 1 hung in step"),
    "rank1.load20=hang": (17, (1,), "rank 1 hung in step"),
    "rank1.load20=SIGKILL": (17, (1,), "rank 1: the process that loads its data died of signal 9 (SIGKILL)"),
    "rank1.loss9=yes": (14, (1,), "rank 1: the loss of step 9 is not finite"),
}
"""Trouble in a run of two ranks, with exit code, ranks at fault, and what is said of it."""


@pytest.mark.parametrize("trouble", FAULTS)
def test_rank_and_cause_are_named(house: House, trouble: str) -> None:
    code, ranks, expected = FAULTS[trouble]
    timeouts = ("--hang-timeout", "5", "--setup-timeout", "12")
    ran = house.run("-k", "1x2", *timeouts, vendor="cpu", suite="training", trouble=f"tiny.{trouble}")
    assert house.becomes_empty(10)
    assert ran.code == code, ran.output
    record = ran.training("1x2")
    (run,) = record.runs
    assert run.failure is not None and run.failure.ranks == ranks and expected in run.failure.cause, ran.output
    assert record.verdict is not None and expected in "\n".join(record.verdict.reasons)
    if "raise" in trouble:
        reasons = "\n".join(record.verdict.reasons)
        assert f"{expected} (trouble.py:" in reasons and f", traceback in rank{ranks[0]}.log)" in reasons
    assert "withheld" in ran.output
    log = f"results/{ran.run_dir.name}/training/tiny/1x2/round1/noderank0/rank{ranks[0]}.log"
    assert f"its whole log: {log}" in ran.output
    assert "Traceback" not in ran.output and "most recent call first" not in ran.output, "that is in the log"
    if not trouble.startswith(("rank1.model", "rank1.step1=")):
        assert run.losses and run.evaluations, "what was measured is kept"
    if "hang" in trouble:
        assert "trouble.py" in run.failure.last_lines, "Python stacks of where it hung"
        assert run.failure.cause.endswith("waiting for it: rank 0"), run.failure.cause
    assert "INTERNALERROR" not in ran.output


@pytest.mark.parametrize(
    "end, cause", [("SIGKILL", "rank 1 was killed by signal 9"), ("hang", "waiting for it: rank 0")]
)
def test_a_rank_that_floods_its_log(house: House, end: str, cause: str) -> None:
    trouble = f"tiny.rank1.step10=flood,tiny.rank1.step20={end}"
    ran = house.run("-k", "1x2", "--hang-timeout", "5", vendor="cpu", suite="training", trouble=trouble)
    assert house.becomes_empty(10)
    (failure,) = [run.failure for run in ran.training("1x2").runs]
    assert failure is not None and failure.ranks == (1,) and failure.cause.endswith(cause), ran.output
    assert "last words" in failure.last_lines and ("trouble.py" in failure.last_lines) == (end == "hang")
    log = ran.run_dir / "training/tiny/1x2/round1/noderank0/rank1.log"
    assert capped_log.HEAD < log.stat().st_size < capped_log.HEAD + capped_log.TAIL + 100
