"""What a session runs on this machine is known to others by its id, after a crash too."""

from __future__ import annotations

import pytest

from proofmark import jobs
from tests.e2e.conftest import House


def asked(house: House, capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    """Exit code and output of a command."""
    code = jobs.main(["--cache-dir", str(house.cache), *arguments])
    return code, capsys.readouterr().out


def of(house: House, capsys: pytest.CaptureFixture[str]) -> str:
    """The id of the house's only job that runs."""
    found = []
    for line in asked(house, capsys, "list")[1].splitlines():
        identifier = line.split()[0]
        if str(house.root) in asked(house, capsys, "status", identifier)[1]:
            found.append(identifier)
    (identifier,) = found
    return identifier


def test_a_case_is_stopped_by_its_id(house: House, capsys: pytest.CaptureFixture[str]) -> None:
    session = house.start("--vendor", "fake", trouble="tiny.data=sleep")
    house.wait_for_trouble(session)
    job = of(house, capsys)
    assert asked(house, capsys, "stop", job) == (0, f"{job}  failed\n")
    ran = house.end(session)
    reason = ran.record().step("data_and_model").reason
    assert ran.code == 17 and reason is not None and "died of signal 9" in reason, ran.output


def test_a_training_whose_session_crashed_is_known_as_lost(house: House, capsys: pytest.CaptureFixture[str]) -> None:
    options = ("--vendor", "cpu", "-k", "1x1")
    session = house.start(*options, suite="training", trouble="tiny.rank0.step12=sleep")
    house.wait_for_trouble(session)
    job = of(house, capsys)
    session.kill()
    house.end(session)
    code, output = asked(house, capsys, "status", job)
    assert code == 1 and " lost " in output and "training/tiny/1x1" in output
    assert asked(house, capsys, "stop", job) == (0, f"{job}  lost\n")
    assert house.becomes_empty(15)
