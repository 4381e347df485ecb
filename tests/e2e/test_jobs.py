"""What a session runs on this machine is known to others by its id, after a crash too."""

from __future__ import annotations

from collections.abc import Callable

from tests.e2e.conftest import House

Ask = Callable[..., tuple[int, str]]


def test_a_case_is_stopped_by_its_id(house: House, ask_jobs: Ask) -> None:
    session = house.start("--vendor", "fake", trouble="tiny.data=sleep")
    house.wait_for_trouble(session)
    job = house.job("inference/tiny")
    assert f"{job}  running " in ask_jobs("list")[1]
    assert ask_jobs("stop", job) == (0, f"{job}  failed\n")
    assert ask_jobs("list") == (0, "no job is running\n")
    ran = house.end(session)
    reason = ran.record().step("data_and_model").reason
    assert ran.code == 17 and reason is not None and "died of signal 9" in reason, ran.output


def test_a_training_is_stopped_by_its_id(house: House, ask_jobs: Ask) -> None:
    session = house.start("--vendor", "cpu", "-k", "1x2", suite="training", trouble="tiny.rank0.step12=hang")
    house.wait_for_trouble(session)
    job = house.job("training/tiny/1x2/round1")
    assert ask_jobs("stop", job) == (0, f"{job}  failed\n")
    failure = house.end(session).training("1x2").runs[0].failure
    assert failure is not None and failure.cause == f"job {job} was stopped by its id"


def test_a_training_whose_session_crashed_is_known_as_lost(house: House, ask_jobs: Ask) -> None:
    options = ("--vendor", "cpu", "-k", "1x1")
    session = house.start(*options, suite="training", trouble="tiny.rank0.step12=sleep")
    house.wait_for_trouble(session)
    job = house.job("training/tiny/1x1/round1")
    assert f"{job}  running " in ask_jobs("list")[1]
    session.kill()
    house.end(session)
    code, output = ask_jobs("status", job)
    assert code == 1 and " lost " in output and "training/tiny/1x1" in output
    assert ask_jobs("stop", job) == (0, f"{job}  lost\n")
    assert house.becomes_empty()
