"""What can befall a training: who and why is named, what was measured is kept, nothing is left running."""

from __future__ import annotations

import os
import resource
import shutil
import signal
from pathlib import Path

import pytest

from harness import capped_log
from harness.training.record import TrainingRecord
from tests.e2e.conftest import House, Ran, clean

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
    "rank1.loss9=yes": (14, (1,), "rank 1: the loss of step 9 is not finite"),
}
"""Trouble in a run of two ranks, with exit code, ranks at fault, and what is said of it."""


def trained(ran: Ran, scale: str = "1x2") -> TrainingRecord:
    return TrainingRecord.load(ran.run_dir / "training" / "tiny" / scale / "record.json")


@pytest.mark.parametrize("trouble", FAULTS)
def test_rank_and_cause_are_named(house: House, trouble: str) -> None:
    code, ranks, told = FAULTS[trouble]
    timeouts = ("--hang-timeout", "5", "--setup-timeout", "25")
    ran = house.run("-k", "1x2", *timeouts, vendor="cpu", suite="training", trouble=f"tiny.{trouble}")
    assert house.becomes_empty(10)
    assert ran.code == code, ran.output
    record = trained(ran)
    (run,) = record.runs
    assert run.failure is not None and run.failure.ranks == ranks and told in run.failure.cause, ran.output
    assert record.verdict is not None and told in "\n".join(record.verdict.reasons)
    assert "withheld" in ran.output
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
    (failure,) = [run.failure for run in trained(ran).runs]
    assert failure is not None and failure.ranks == (1,) and failure.cause.endswith(cause), ran.output
    assert "last words" in failure.last_lines and ("trouble.py" in failure.last_lines) == (end == "hang")
    log = ran.run_dir / "training/tiny/1x2/round1/noderank0/rank1.log"
    assert capped_log.HEAD < log.stat().st_size < capped_log.HEAD + capped_log.TAIL + 100


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL], ids=lambda number: number.name)
def test_an_end_of_the_session_ends_the_ranks(house: House, number: signal.Signals) -> None:
    session = house.start("--vendor", "cpu", "-k", "1x2", suite="training", trouble="tiny.rank1.step20=hang")
    house.wait_for_trouble(session)
    os.kill(session.pid, number)
    ran = house.end(session, timeout=30)
    assert house.becomes_empty(15)
    if number is signal.SIGKILL:
        return
    assert ran.code == 2, ran.output
    record = trained(ran)
    assert record.interrupted == "round 1" and record.runs[0].losses
    assert record.verdict is not None and record.verdict.reasons == ("interrupted in round 1",)
    assert (ran.run_dir / "report.html").exists()
    clean(ran)


def test_a_killed_agent_takes_its_ranks_along(house: House) -> None:
    session = house.start("--vendor", "cpu", "-k", "1x2", suite="training", trouble="tiny.rank1.step20=hang")
    house.wait_for_trouble(session)
    (agent,) = [p for p in house.processes() if "harness.training.agent" in p.cmdline()]
    agent.kill()
    ran = house.end(session, timeout=30)
    assert house.becomes_empty(15)
    assert ran.code == 17 and trained(ran).verdict is not None, ran.output


def test_paths_with_spaces_quotes_and_dollars(tmp_path: Path) -> None:
    house = House(tmp_path / "a 'house' of \"$HOME\"; touch x")
    ran = house.run("-k", "1x2", vendor="cpu", suite="training")
    assert ran.code == 0, ran.output


def test_two_sessions_at_once(house: House) -> None:
    sessions = [
        house.start("--vendor", "cpu", "-k", "1x2", "--results-dir", f"results{n}", suite="training") for n in range(2)
    ]
    for number, session in enumerate(sessions):
        ran = house.end(session, results=f"results{number}")
        assert ran.code == 0, ran.output


CHECKPOINTED = "--vendor cpu --set checkpoint_steps=10 --set num_workers=1 --set learning_rate=0.002".split()
"""A training that takes some epochs."""


@pytest.mark.parametrize("scale", ["1x1", "1x2"])
def test_resumes_to_the_very_same_weights(house: House, scale: str) -> None:
    whole = house.end(house.start(*CHECKPOINTED, "-k", scale, suite="training"))
    killed = house.start(*CHECKPOINTED, "-k", scale, suite="training", trouble="tiny.rank0.step35=sleep")
    house.wait_for_trouble(killed)
    killed.kill()
    broken = house.end(killed)
    assert house.becomes_empty(15)
    assert whole.run_dir != broken.run_dir
    house.mark.unlink()
    again = house.end(house.start(*CHECKPOINTED, "-k", scale, "--resume", str(broken.run_dir), suite="training"))
    assert again.code == whole.code, again.output
    one, other = trained(whole, scale).runs[0], trained(again, scale).runs[0]
    # the one of step 30 may still have been under way
    assert other.resumed_from in (20, 30) and trained(again, scale).resumed
    assert [e.metric for e in other.evaluations][1:] == [e.metric for e in one.evaluations][
        -len(other.evaluations) + 1 :
    ]
    assert dict(one.losses) | dict(other.losses) == dict(one.losses), "the same losses from the same samples"
    assert one.metric == other.metric and one.samples == other.samples


@pytest.mark.parametrize("damage", ["cut", "foreign"])
def test_a_corrupt_checkpoint_is_refused(house: House, damage: str) -> None:
    ran = house.end(house.start(*CHECKPOINTED, "-k", "1x1", suite="training"))
    (newest, *_) = sorted((ran.run_dir / "training/tiny/1x1/round1/checkpoints").iterdir(), reverse=True)
    if damage == "cut":
        shard = next(newest.glob("*.safetensors"))
        shard.write_bytes(shard.read_bytes()[:-1])
    else:
        shutil.copy(newest / "progress.json", newest / "extra.json")
    again = house.end(house.start(*CHECKPOINTED, "-k", "1x1", "--resume", str(ran.run_dir), suite="training"))
    record = trained(again, "1x1")
    assert again.code == 17, again.output
    assert record.verdict is not None and f"checkpoint {newest.name} is corrupt" in record.verdict.reasons[0]
    assert "Traceback" not in again.output


def test_a_checkpoint_of_other_data_is_refused(house: House) -> None:
    ran = house.end(house.start(*CHECKPOINTED, "-k", "1x1", suite="training"))
    resumed = (*CHECKPOINTED, "-k", "1x1", "--resume", str(ran.run_dir))
    again = house.end(house.start(*resumed, suite="training", trouble="tiny.train_data=other"))
    record = trained(again, "1x1")
    assert again.code == 17 and record.verdict is not None, again.output
    assert "is of another run: train data is" in record.verdict.reasons[0]
    assert "config" not in record.verdict.reasons[0] and "validation" not in record.verdict.reasons[0]


def test_a_full_disk_is_named(house: House, tmp_path: Path) -> None:
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))

    options = (*CHECKPOINTED, "-k", "1x1", "--set", "log_freq=1")
    session = house.start(*options, suite="training", preexec_fn=limit)
    ran = house.end(session)
    assert ran.code not in (0, 1), ran.output
    assert "rank 0: OSError: [Errno 2" in ran.output and "rank0.jsonl" in ran.output, "its own event log is full"
    assert house.becomes_empty(10)
    clean(ran)


def test_nothing_to_resume_is_one_line(house: House) -> None:
    ran = house.run("--resume", "nowhere", vendor="cpu", suite="training")
    assert ran.code == 4 and "--resume nowhere: there are no checkpoints" in ran.output
    assert not [line for line in ran.output.splitlines() if "Traceback" in line]


@pytest.mark.parametrize(
    "mood, kind, told",
    [
        ("good", "PASS", "J/point"),
        ("dies", "PASS", "the monitor ended by itself with code 7"),
        ("hangs", "PASS", "the monitor did not answer and was killed"),
        ("throttles", "AMBIGUOUS", "a device was throttled during training: heat"),
        ("shares", "AMBIGUOUS", "other processes used the device during training: 1"),
    ],
)
def test_a_monitor_loses_no_result(
    house: House, monkeypatch: pytest.MonkeyPatch, mood: str, kind: str, told: str
) -> None:
    monkeypatch.setenv("FAKE_MONITOR", mood)
    ran = house.run("-k", "1x1", "--monitor-interval", "0.05", suite="training", trouble="tiny.pause=0.1")
    record = trained(ran, "1x1")
    assert record.verdict is not None and str(record.verdict.kind) == kind, ran.output
    assert told in " ".join(ran.output.split()), ran.output
    assert record.runs[0].converged
