"""Jobs on disk: found by their id, looked at, ended, and never mistaken for somebody else's."""

from __future__ import annotations

import json
import os
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from proofmark import jobs
from proofmark.launch import job_file
from proofmark.launch import reattach as reattached
from proofmark.launch.job_file import JobFile, index_in, known_jobs
from proofmark.launch.reattach import reattach
from proofmark.process.identity import ProcessIdentity
from proofmark.process.lifetime import MARK

MARKED = "ab" * 16


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    """A process of a job."""
    with subprocess.Popen(["sleep", "600"], env={**os.environ, MARK: MARKED}) as process:
        yield process
        process.kill()


@pytest.fixture
def job(tmp_path: Path, sleeper: subprocess.Popen[bytes]) -> JobFile:
    """One that runs, led by this process."""
    (tmp_path / "run").mkdir()
    agent = ProcessIdentity.of(sleeper.pid)
    return JobFile.begin(
        index_in(str(tmp_path)), "training/tiny/1x1", "local", tmp_path / "run", agent=agent, mark=MARKED
    )


def run_command(
    job: JobFile, capsys: pytest.CaptureFixture[str], command: str, *arguments: str
) -> tuple[int, str, str]:
    """Exit code, output and errors of a command."""
    code = jobs.main(["--cache-dir", str(Path(job.directory).parent), command, *arguments])
    output, errors = capsys.readouterr()
    return code, output, errors


def refused(job: JobFile, capsys: pytest.CaptureFixture[str], identifier: str, words: str) -> None:
    """One clear line, and nothing done, whatever is asked."""
    for command in ("status", "logs", "stop"):
        code, output, errors = run_command(job, capsys, command, identifier)
        assert code == 4 and output == "" and errors.count("\n") == 1, errors
        assert errors.startswith("ERROR: ") and words in errors, errors


def test_a_job_that_runs_is_known_to_everybody_else(job: JobFile, capsys: pytest.CaptureFixture[str]) -> None:
    assert reattach(index_in(str(Path(job.directory).parent)), job.id).file == job
    code, output, _ = run_command(job, capsys, "list")
    assert code == 0 and job.id in output and "training/tiny/1x1" in output and "running" in output
    job.end("succeeded").end("failed")
    assert run_command(job, capsys, "list")[1] == ""
    assert "succeeded" in run_command(job, capsys, "list", "--all")[1]
    assert run_command(job, capsys, "status", job.id)[0] == 0


def test_hosts_are_to_come_only_while_it_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "run").mkdir()
    job = JobFile.begin(index_in(str(tmp_path)), "training/tiny/1x1", "ssh", tmp_path / "run")
    assert run_command(job, capsys, "list")[1].endswith("no host yet\n")
    job.end("failed")
    assert run_command(job, capsys, "list", "--all")[1].endswith("no host\n")


def test_logs_come_from_where_they_were_read_to(job: JobFile, capsys: pytest.CaptureFixture[str]) -> None:
    home = Path(job.directory)
    (home / "noderank0").mkdir()
    (home / "noderank0" / "agent.log").write_bytes(b"first\x1b[2J")
    (home / "worker.log").write_text("own\n")
    assert dict(job.logs({})) == {"noderank0/agent.log": b"first\x1b[2J", "worker.log": b"own\n"}
    assert dict(job.logs({"noderank0/agent.log": 5, "worker.log": 4})) == {"noderank0/agent.log": b"\x1b[2J"}
    code, output, _ = run_command(job, capsys, "logs", job.id)
    assert code == 0 and "==> noderank0/agent.log <==\nfirst?[2J\n" in output


def test_who_follows_a_job_waits_as_long_as_whoever_is_asked_can_bear(monkeypatch: pytest.MonkeyPatch) -> None:
    """A service is asked by all of a project; a session's own files are not."""
    pauses, states = list[float](), ["running", "running", "failed"]
    followed: Any = SimpleNamespace(pace=5.0, status=lambda: states.pop(0), logs=lambda since: [])
    monkeypatch.setattr(jobs.time, "sleep", pauses.append)
    assert jobs._logs(followed, follow=True) == 0 and pauses == [5.0, 5.0]


def test_a_service_is_asked_only_for_a_session_that_is_gone(job: JobFile) -> None:
    service: Any = None
    gone = job.note(session=ProcessIdentity(2**22 + 1, 1, "another boot"))
    paces = [reattached.ReattachedAtService(each, service).pace for each in (job, gone)]
    assert paces == [reattached.FOLLOWED, reattached.ASKED] and reattached.Reattached(gone).pace == reattached.FOLLOWED


@pytest.mark.parametrize(
    "hosts, status, crashed, what",
    [
        ((), "running", False, None),
        (("a", "b"), "succeeded", False, None),
        (("a", "b"), "running", False, "its session, process {}, has yet to fetch it from a, b"),
        (("a", "b"), "running", True, "its session is gone, and with it what had not been fetched from a, b"),
    ],
)
def test_what_has_not_come_home_is_told(
    job: JobFile, hosts: tuple[str, ...], status: str, crashed: bool, what: str | None
) -> None:
    with subprocess.Popen(["true"]) as gone:
        session = ProcessIdentity.of(gone.pid) if crashed else job.session
    job.note(hosts=hosts, status=status, session=session)
    handle = reattach(index_in(str(Path(job.directory).parent)), job.id)
    assert handle.status() == ("lost" if crashed else status) and handle.news() == []
    assert handle.fetch(["*.onnx"]) == (what.format(os.getpid()) if what else None)
    assert handle.facts() == {"hosts": [{"name": host} for host in hosts]}


def test_a_job_is_ended_by_its_mark(
    job: JobFile, sleeper: subprocess.Popen[bytes], capsys: pytest.CaptureFixture[str]
) -> None:
    def session() -> None:
        sleeper.wait()
        job.end("failed")

    leading = threading.Thread(target=session)
    leading.start()
    code, output, _ = run_command(job, capsys, "stop", job.id)
    leading.join()
    assert (code, output) == (0, f"{job.id}  failed\n") and job.is_asked_to_stop()


def test_what_is_left_of_a_session_that_crashed_is_ended(
    job: JobFile,
    sleeper: subprocess.Popen[bytes],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(reattached, "LEAVING", 0.2)
    with subprocess.Popen(["true"]) as gone:
        session = ProcessIdentity.of(gone.pid)
    job.note(session=session)
    assert run_command(job, capsys, "list")[1] == "" and "lost" in run_command(job, capsys, "list", "--all")[1]
    assert run_command(job, capsys, "status", job.id)[0] == 1
    assert run_command(job, capsys, "stop", job.id)[:2] == (0, f"{job.id}  lost\n")
    assert sleeper.wait() == -9


def test_a_job_of_another_host_is_neither_lost_nor_ended(
    job: JobFile,
    sleeper: subprocess.Popen[bytes],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Login nodes share a home: what of it only the other one can see is not judged here."""
    there = ProcessIdentity(1, 7, "the boot of another machine")
    job = job.note(session=there, agent=there, host="login2")
    code, output, _ = run_command(job, capsys, "list")
    assert code == 0 and "unseen" in output and "; of host login2, cannot be seen from here\n" in output
    code, output, errors = run_command(job, capsys, "stop", job.id)
    assert code == 4 and output == "" and "is of host login2, and cannot be seen from here: end it there" in errors
    assert not job.is_asked_to_stop() and sleeper.poll() is None
    monkeypatch.setattr(job_file, "MOST", 0)
    known = index_in(str(Path(job.directory).parent))
    job_file._forget(known / str(job.user))
    assert [each.id for each in known_jobs(known)[0]] == [job.id]


def test_a_session_of_another_host_is_asked_to_end_its_job_on_hosts(
    job: JobFile, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    there = ProcessIdentity(1, 7, "the boot of another machine")
    job = job.note(session=there, agent=None, mark=None, hosts=("a",), host="login2")
    monkeypatch.setattr(reattached, "PATIENCE", 0.2)
    code, _, errors = run_command(job, capsys, "stop", job.id)
    assert code == 4 and "its session, process 1 of host login2, has not ended it" in errors
    assert job.is_asked_to_stop()


def test_a_process_of_somebody_else_is_not_touched(
    job: JobFile, sleeper: subprocess.Popen[bytes], capsys: pytest.CaptureFixture[str]
) -> None:
    assert job.agent is not None and job.agent.ticks is not None
    job.note(agent=ProcessIdentity(sleeper.pid, job.agent.ticks - 1, job.agent.boot))
    code, output, errors = run_command(job, capsys, "stop", job.id)
    assert code == 4 and output == "" and errors.count("\n") == 1
    assert f"its process id {sleeper.pid} belongs to another process now; nothing was ended" in errors
    assert sleeper.poll() is None


def test_ids_that_are_nobodys_or_anothers(job: JobFile, capsys: pytest.CaptureFixture[str]) -> None:
    refused(job, capsys, "0" * 12, "there is no job 000000000000")
    refused(job, capsys, "../../etc", "is not a job id")
    refused(job, capsys, "\x1b[2J", "is not a job id")
    own = index_in(str(Path(job.directory).parent)) / str(os.getuid())
    own.rename(own.with_name("77"))
    refused(job, capsys, job.id, "is another user's (uid 77)")


@pytest.mark.parametrize(
    "damage, words",
    [
        (lambda content: "{", "not a job's file"),
        (lambda content: json.dumps(content | {"mark": "x"}), "mark"),
        (lambda content: json.dumps(content | {"user": 12345}), "it is the file of another job"),
        (lambda content: json.dumps(content | {"started": 1e300}), "started"),
        (lambda content: json.dumps({}), "not a job's file: id: Field required"),
    ],
)
def test_a_damaged_file_is_named(job: JobFile, capsys: pytest.CaptureFixture[str], damage: object, words: str) -> None:
    assert callable(damage)
    job.path.write_text(damage(json.loads(job.path.read_text())))
    refused(job, capsys, job.id, words)


@pytest.mark.parametrize("cache", ["none", ""])
def test_a_cache_that_is_not_there_is_not_one_without_jobs(
    cache: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert jobs.main(["list", "--cache-dir", cache]) == 4
    expected = f"ERROR: --cache-dir {cache}: no such directory; expected the sessions' own\n"
    assert capsys.readouterr() == ("", expected)
    assert jobs.main(["list"]) == 0, "no session has been here yet"


def test_jobs_whose_results_were_removed_are_forgotten(job: JobFile, tmp_path: Path) -> None:
    job.path.unlink()
    assert known_jobs(index_in(str(tmp_path))) == ([], [])
    (tmp_path / "next").mkdir()
    JobFile.begin(index_in(str(tmp_path)), "next", "local", tmp_path / "next")
    assert len(list((index_in(str(tmp_path)) / str(os.getuid())).iterdir())) == 1


def test_a_job_whose_results_only_its_own_host_sees_is_not_forgotten(
    job: JobFile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The cache lies in a home that login nodes share, the results on a disk of one of them."""
    (tmp_path / "run").rename(tmp_path / "unseen")
    (tmp_path / "next").mkdir()
    with monkeypatch.context() as there:
        there.setattr(job_file.socket, "gethostname", lambda: "login2")
        JobFile.begin(index_in(str(tmp_path)), "next", "local", tmp_path / "next")
    (tmp_path / "unseen").rename(tmp_path / "run")
    assert {each.name for each in known_jobs(index_in(str(tmp_path)))[0]} == {job.name, "next"}
    assert run_command(job, capsys, "status", job.id)[0] == 0


def test_a_link_as_older_versions_made_them_is_found(job: JobFile, capsys: pytest.CaptureFixture[str]) -> None:
    index = index_in(str(Path(job.directory).parent))
    (link,) = (index / str(os.getuid())).iterdir()
    link.rename(link.with_name(job.id))
    assert run_command(job, capsys, "status", job.id)[0] == 0 and job.id in run_command(job, capsys, "list")[1]


def test_what_runs_is_forgotten_last(job: JobFile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a service it goes on without its session."""
    monkeypatch.setattr(job_file, "MOST", 2)
    index = index_in(str(tmp_path))
    for number in range(4):
        (tmp_path / f"next{number}").mkdir()
        JobFile.begin(index, f"next{number}", "local", tmp_path / f"next{number}").end("succeeded")
    names = [known.name for known in known_jobs(index)[0]]
    assert job.name in names and "next0" not in names and "next3" in names


def test_a_number_that_was_given_again_is_another_process() -> None:
    this = ProcessIdentity.of(os.getpid())
    assert this.lives() and not this.is_anothers()
    assert this.ticks is not None
    for other in (
        ProcessIdentity(this.pid, this.ticks + 1, this.boot),
        ProcessIdentity(this.pid, this.ticks, "another boot"),
        ProcessIdentity(this.pid, None, this.boot),
    ):
        assert not other.lives() and other.is_anothers()


def test_a_job_runs_unremembered_where_the_cache_may_only_be_read(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "cache").write_text("a file, not a directory")
    job = JobFile.begin(index_in(str(tmp_path / "cache")), "training/tiny/1x1", "local", tmp_path / "run")
    assert job.path.is_file() and known_jobs(index_in(str(tmp_path / "cache"))) == ([], [])
