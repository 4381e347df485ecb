"""That nothing runs on unseen: a creation whose outcome nobody knows, a job that can't be ended, one stopped early."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from proofmark import jobs
from proofmark.launch import reattach
from proofmark.launch.job_file import read_job
from proofmark.launch.service import creation, handle, running
from proofmark.launch.service.contract import ServiceError
from proofmark.launch.service.handle import ServiceHandle
from proofmark.launch.service.transfer import Results
from proofmark.process.identity import ProcessIdentity
from tests.modelarts.bench import Bench, reasons
from tests.modelarts.stand_in import StandIn
from tests.waiting import PATIENCE


def stop_by_id(bench: Bench, job: ServiceHandle, capsys: pytest.CaptureFixture[str]) -> str:
    assert jobs.main(["--cache-dir", str(bench.cache), "stop", job.id]) == 0
    return capsys.readouterr().out


def test_a_job_that_could_not_be_ended_can_be_by_its_id(
    bench: Bench, stand_in: StandIn, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stand_in.held = "Running"
    job = bench.submit()
    bench.until(lambda: stand_in.jobs and stand_in.job.phase == "Running", "job that runs")
    stand_in.faults["stop"].extend([503] * 50)
    with monkeypatch.context() as brief:  # not for what ends it afterwards, which may take its time
        brief.setattr(running, "ENDING", 0.3)
        job.stop()
    refused, way_out = reasons(job)
    told = [line for line in job.news() if line.startswith("WARNING")]
    assert told == [f"WARNING {refused}", f"WARNING {way_out}"], "an interrupted run has no reasons but that"
    assert job.status() == "failed" and stand_in.job.phase == "Running"
    assert f"job {stand_in.job.id} could not be ended" in refused and f"proofmark.jobs stop {job.id}`" in way_out
    stand_in.faults["stop"].clear()
    stand_in.asked["stop"] = 0
    assert stop_by_id(bench, job, capsys) == f"{job.id}  stopped\n"
    assert stand_in.asked["stop"] == 1 and stand_in.job.phase == "Terminated"
    assert stop_by_id(bench, job, capsys) == f"{job.id}  stopped\n" and stand_in.asked["stop"] == 1


def test_a_job_said_to_have_failed_that_runs_is_ended(
    bench: Bench, stand_in: StandIn, capsys: pytest.CaptureFixture[str]
) -> None:
    """The service is asked, whatever its file says of its end."""
    stand_in.held = "Running"
    job = bench.submit()
    bench.until(lambda: job._file.service and job._file.service.id, "id in the journal")
    job._service.timing = job._service.timing.__class__(poll=(60.0, 60.0))
    job._file.end("failed")
    stop_by_id(bench, job, capsys)
    assert stand_in.asked["stop"] == 1 and stand_in.job.phase == "Terminated"


def test_a_job_that_was_never_submitted_is_settled_in_a_minute(
    bench: Bench,
    stand_in: StandIn,
    sending: tuple[threading.Event, threading.Event],
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Its session was killed while it sent code, or as it asked for the job, which may be shown a little late."""
    job = bench.submit()
    assert sending[0].wait(PATIENCE)
    gone = job._file.note(session=ProcessIdentity(2**22 + 1, 1, "another boot"))
    stop = ["--cache-dir", str(bench.cache), "stop", job.id]
    for noted in (0, 10_000):  # long ago, but not as lost; and just now
        os.utime(gone.path, (0, noted and gone.started + noted))
        assert jobs.main(stop) == 4 and "ask again in a minute" in capsys.readouterr().err
    os.utime(gone.path, (0, gone.started - 100))
    assert stop_by_id(bench, job, capsys) == f"{job.id}  failed\n" and stand_in.asked["search"] == 3
    job._stop.set()
    sending[1].set()
    bench.end(job)


def test_a_session_of_another_host_may_be_about_to_submit_it(
    bench: Bench, sending: tuple[threading.Event, threading.Event], capsys: pytest.CaptureFixture[str]
) -> None:
    job = bench.submit()
    assert sending[0].wait(PATIENCE)
    elsewhere = job._file.note(session=ProcessIdentity(2**22 + 1, 1, "another boot"), host="another")
    for _ in range(2):
        os.utime(elsewhere.path, (0, elsewhere.started - 100))
        assert jobs.main(["--cache-dir", str(bench.cache), "stop", job.id]) == 4
    assert read_job(elsewhere.path).ended is None
    job._stop.set()
    sending[1].set()
    bench.end(job)


def test_a_job_whose_session_does_not_answer_is_ended(
    bench: Bench, stand_in: StandIn, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It was stopped itself, say, or looks at its job but rarely."""
    stand_in.held = "Running"
    monkeypatch.setattr(reattach, "PATIENCE", 0.1)
    monkeypatch.setattr(ServiceHandle, "_heed", lambda self: None)
    job = bench.submit()
    bench.until(lambda: job._file.service and job._file.service.id, "id in the journal")
    stop_by_id(bench, job, capsys)
    assert stand_in.asked["stop"] == 1 and stand_in.job.phase == "Terminated"
    assert bench.end(job) == "failed" and len(reasons(job)) == 1


def test_a_session_that_does_not_answer_before_there_is_a_job(
    bench: Bench,
    sending: tuple[threading.Event, threading.Event],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """It heeds that later. Until then nothing has come home."""
    monkeypatch.setattr(reattach, "PATIENCE", 0.1)
    job = bench.submit()
    assert sending[0].wait(PATIENCE)
    assert jobs.main(["--cache-dir", str(bench.cache), "stop", job.id]) == 4
    assert f"job {job.id}: its session, process {os.getpid()}, has not ended it" in capsys.readouterr().err
    assert jobs.main(["--cache-dir", str(bench.cache), "fetch", job.id]) == 1
    assert f"its session, process {os.getpid()}, has yet to hand it over" in capsys.readouterr().err
    sending[1].set()
    assert bench.end(job) == "failed" and reasons(job) == [f"job {job.id} was stopped by its id"]


def lagging(stand_in: StandIn, monkeypatch: pytest.MonkeyPatch, times: int) -> None:
    """Searches find nothing that often."""
    plain, blind = stand_in._search, [None] * times

    def search(**body: Any) -> Any:
        if blind:
            blind.pop()
            return 200, {"total": 0, "count": 0, "limit": 50, "offset": 0, "items": []}
        return plain(**body)

    monkeypatch.setattr(stand_in, "_search", search, raising=False)


def unreadable(stand_in: StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    plain, answers = stand_in._create, [{"metadata": {}}]

    def create(**body: Any) -> Any:
        status, content = plain(**body)
        return status, answers.pop() if answers else content

    monkeypatch.setattr(stand_in, "_create", create, raising=False)


def test_a_creation_whose_answer_cannot_be_read_makes_one_job(
    bench: Bench, stand_in: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in.fate = "Failed"
    unreadable(stand_in, monkeypatch)
    _, job = bench.run()
    assert reasons(job) == [f"the service ended job {stand_in.job.id}: Failed"]


def test_a_job_is_looked_for_in_its_own_workspace(bench: Bench, stand_in: StandIn) -> None:
    stand_in.fate = "Failed"
    stand_in.faults["create"].append(lambda: 503)
    bench.run(workspace_id="2f1b")
    assert stand_in.asked["create"] == 1 and stand_in.job.body["metadata"]["workspace_id"] == "2f1b"


def test_a_job_that_a_search_shows_late_is_found(
    bench: Bench, stand_in: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in.fate = "Failed"
    stand_in.faults["create"].append(lambda: 503)
    lagging(stand_in, monkeypatch, 2)
    _, job = bench.run()
    assert reasons(job) == [f"the service ended job {stand_in.job.id}: Failed"] and stand_in.asked["create"] == 3


def test_a_stop_while_nobody_knows_whether_there_is_a_job_ends_it(
    bench: Bench, stand_in: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in.held = "Running"
    stopped = threading.Event()
    stand_in.faults["create"].append(lambda: 503 if stopped.wait(PATIENCE) else 500)
    lagging(stand_in, monkeypatch, 2)
    job = bench.submit()
    bench.until(lambda: stand_in.asked["create"], "request for a job")
    job._stop.set()
    stopped.set()
    assert bench.end(job) == "failed" and reasons(job) == []
    assert stand_in.asked["stop"] == 1 and stand_in.job.phase == "Terminated"


def test_a_creation_in_doubt_stays_in_the_journal(
    bench: Bench, stand_in: StandIn, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(creation, "LAST_LOOK", 0.3)
    stand_in.held = "Running"
    stand_in.faults["create"].append(lambda: 503)
    stand_in.faults["search"].extend([503] * 50)
    status, job = bench.run(error_budget=0.3)
    assert status == "failed" and read_job(job._file.path).status == "lost"
    name = stand_in.job.body["metadata"]["name"]
    doubt = f"whether it was created is in doubt: look for {name} among the service's jobs"
    way_out = f"`python -m proofmark.jobs stop {job.id}`"
    assert "503" in reasons(job)[0] and f"may still run ({doubt}): {way_out}" in reasons(job)[1]
    stand_in.faults["search"].clear()
    with monkeypatch.context() as unseen:
        lagging(stand_in, unseen, 1)
        assert jobs.main(["--cache-dir", str(bench.cache), "stop", job.id]) == 4
    assert capsys.readouterr().err == f"ERROR: job {job.id}: {doubt}; nothing was ended: ask again in a minute\n"
    assert stop_by_id(bench, job, capsys) == f"{job.id}  stopped\n"
    assert stand_in.asked["stop"] == 1 and stand_in.job.phase == "Terminated"


@pytest.fixture
def sending(monkeypatch: pytest.MonkeyPatch) -> tuple[threading.Event, threading.Event]:
    """That code is being sent, and that it may have been."""
    begun, done = threading.Event(), threading.Event()
    plain = handle.send

    def send(*arguments: Any) -> None:
        plain(*arguments)
        begun.set()
        assert done.wait(PATIENCE)

    monkeypatch.setattr(handle, "send", send)
    return begun, done


@pytest.mark.parametrize(
    "stop, expected",
    [(lambda job: job._stop.set(), []), (lambda job: job._file.ask_to_stop(), ["job {} was stopped by its id"])],
    ids=["here", "by its id"],
)
def test_a_stop_while_code_is_sent_creates_nothing(
    bench: Bench,
    stand_in: StandIn,
    sending: tuple[threading.Event, threading.Event],
    stop: Callable[[ServiceHandle], None],
    expected: list[str],
) -> None:
    job = bench.submit()
    assert sending[0].wait(PATIENCE)
    stop(job)
    sending[1].set()
    assert bench.end(job) == "failed" and reasons(job) == [line.format(job.id) for line in expected]
    assert not stand_in.asked["create"] and read_job(job._file.path).status == "failed"


def test_an_interrupt_as_its_thread_begins_creates_nothing(
    bench: Bench,
    stand_in: StandIn,
    sending: tuple[threading.Event, threading.Event],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nobody has the job then, to end it."""
    begun = list[threading.Thread]()

    class Interrupted(threading.Thread):
        def start(self) -> None:
            super().start()
            begun.append(self)
            raise KeyboardInterrupt

    with monkeypatch.context() as thread:
        thread.setattr(handle, "threading", SimpleNamespace(Thread=Interrupted, Event=threading.Event))
        with pytest.raises(KeyboardInterrupt):
            bench.submit()
    sending[1].set()
    begun[0].join(PATIENCE)
    assert not begun[0].is_alive() and not stand_in.asked["create"]


def test_a_thread_that_does_not_end_is_told_of(
    bench: Bench, sending: tuple[threading.Event, threading.Event], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(handle, "ENDING", 0.01)
    job = bench.submit()
    assert sending[0].wait(PATIENCE)
    job.stop()
    facts = job.facts()
    (why,) = reasons(job)
    assert "has not ended" in why and f"`python -m proofmark.jobs stop {job.id}`" in why
    facts["lost"].clear()
    assert reasons(job) == [why], "what is handed out is a copy"
    sending[1].set()
    assert bench.end(job) == "failed"


def test_who_interrupts_the_end_of_a_job_is_told_of_it(
    bench: Bench, sending: tuple[threading.Event, threading.Event], monkeypatch: pytest.MonkeyPatch
) -> None:
    job = bench.submit()
    assert sending[0].wait(PATIENCE)

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as impatient:
        impatient.setattr(job._thread, "join", interrupted)
        with pytest.raises(KeyboardInterrupt):
            job.stop()
    (why,) = reasons(job)
    assert f"`python -m proofmark.jobs stop {job.id}`" in why and f"WARNING {why}" in job.news()
    sending[1].set()
    assert bench.end(job) == "failed"


def test_who_stops_while_results_come_home_is_told_how_to_have_them(
    bench: Bench, stand_in: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    coming, goes_on, gather = threading.Event(), threading.Event(), handle.gather

    def slow(*given: Any) -> Any:
        coming.set()
        assert goes_on.wait(PATIENCE)
        return gather(*given)

    monkeypatch.setattr(handle, "gather", slow)
    job = bench.submit()
    assert coming.wait(PATIENCE)
    with monkeypatch.context() as brief:
        brief.setattr(handle, "ENDING", 0.1)
        job.stop()
    (left,) = reasons(job)
    assert f"has ended, and not all of its results were here; `python -m proofmark.jobs fetch {job.id}`" in left
    goes_on.set()
    bench.end(job)


def test_who_stops_in_an_outage_while_results_come_home_is_told_how_to_have_them(
    bench: Bench, stand_in: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Waiting for the next try is over at once, and so is the job's thread."""
    asked = threading.Event()

    def unreachable(*_: object) -> None:
        asked.set()
        raise ServiceError("503", transient=True)

    monkeypatch.setattr(Results, "bring_home", lambda self, *_: self._patience.ask(unreachable))
    stand_in.fate = "Completed"
    job = bench.submit(poll=[60, 60])
    assert asked.wait(PATIENCE)
    job.stop()
    (left,) = reasons(job)
    assert job.status() == "failed" and f"WARNING {left}" in job.news()
    assert f"has ended, and not all of its results were here; `python -m proofmark.jobs fetch {job.id}`" in left
