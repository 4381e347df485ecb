"""A job that runs is not ended because nobody can be asked about it: it runs on, and is found again."""

from __future__ import annotations

from dataclasses import replace

import pytest

from proofmark.launch.service import handle, running
from proofmark.launch.service.handle import ServiceHandle
from tests.modelarts.bench import Bench, reasons
from tests.modelarts.stand_in import StandIn


def seen(bench: Bench, stand_in: StandIn, **changes: object) -> ServiceHandle:
    """A job that runs until it is let go, and was seen to."""
    stand_in.held = "Running"
    job = bench.submit(nnodes=1, **changes)
    bench.until(lambda: any("Running" in line for line in job._news), "job that is seen to run")
    return job


def warnings(job: ServiceHandle) -> list[str]:
    return [line for line in job.news() if line.startswith("WARNING job")]


def test_an_outage_beyond_the_budget_ends_no_job_that_runs(bench: Bench, stand_in: StandIn) -> None:
    stand_in.fate = "Failed"
    job = seen(bench, stand_in, error_budget=0.3)
    stand_in.faults["look"].extend([503] * 9)
    bench.until(lambda: not stand_in.faults["look"], "service that is back")
    stand_in.job._held = None
    assert bench.end(job) == "failed" and reasons(job) == [f"the service ended job {stand_in.job.id}: Failed"]
    (warning,) = warnings(job)
    assert "503" in warning and "it may well run on, and it is asked for, for up to 24 h" in warning
    assert not stand_in.asked["stop"]


def test_an_outage_that_lasts_beyond_a_jobs_own_end_is_its_end(bench: Bench, stand_in: StandIn) -> None:
    job = seen(bench, stand_in, error_budget=0.3)
    job._service.timing = replace(job._service.timing, life=0.5)
    stand_in.faults["look"].extend([503] * 30)
    bench.until(lambda: job.status() != "running" or stand_in.asked["stop"], "end")
    stand_in.faults["look"].clear()
    assert bench.end(job) == "failed" and "503" in reasons(job)[0]
    assert stand_in.asked["stop"] == 1 and stand_in.job.phase == "Terminated"


def test_a_job_that_its_service_shows_a_little_late_is_followed(bench: Bench, stand_in: StandIn) -> None:
    stand_in.fate = "Failed"
    stand_in.faults["look"].extend([400, 404, 400])
    _, job = bench.run(nnodes=1)
    assert reasons(job) == [f"the service ended job {stand_in.job.id}: Failed"] and warnings(job) == []


def test_a_job_that_its_service_does_not_show_is_given_up(
    bench: Bench, stand_in: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(handle, "LAST_LOOK", 0.3)
    monkeypatch.setattr(running, "ENDING", 0.3)
    stand_in.held = "Running"
    stand_in.faults["look"].extend([400] * 1000)
    stand_in.faults["stop"].extend([400] * 1000)
    status, job = bench.run(nnodes=1)
    assert status == "failed" and "400" in reasons(job)[0] and "may still run" in reasons(job)[-1]


def test_a_refusal_ends_the_job_at_once(bench: Bench, stand_in: StandIn) -> None:
    job = seen(bench, stand_in)
    stand_in.faults["look"].append(400)
    assert bench.end(job) == "failed" and "400" in reasons(job)[0] and warnings(job) == []
    assert stand_in.asked["stop"] == 1 and stand_in.job.phase == "Terminated"


def test_a_stop_by_its_id_is_heeded_in_an_outage(bench: Bench, stand_in: StandIn) -> None:
    job = seen(bench, stand_in, error_budget=0.3)
    stand_in.faults["look"].extend([503] * 1000)
    bench.until(lambda: any("it may well run on" in line for line in job._news), "warning")
    job._file.ask_to_stop()
    bench.until(lambda: stand_in.asked["stop"], "request to end it")
    stand_in.faults["look"].clear()
    assert bench.end(job) == "failed" and reasons(job) == [f"job {job.id} was stopped by its id"]
    assert stand_in.job.phase == "Terminated"
