"""An access key that ends before the job: another one is taken up once it is there, and nothing is ended meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from proofmark.errors import UsageError
from proofmark.launch.launchers.modelarts.access import Access
from proofmark.launch.launchers.modelarts.credentials import Credentials
from proofmark.launch.launchers.modelarts.obs import Obs
from proofmark.launch.launchers.modelarts.sdk import Denied
from proofmark.launch.service import running
from proofmark.launch.service.contract import ServiceError
from tests.modelarts.bench import Bench, reasons
from tests.modelarts.stand_in import StandIn
from tests.modelarts.test_outages import seen, warnings
from tests.modelarts.test_parts import WHO, serving

OTHER = ("AKOFTHENEXTDAY", "sk-of-the-next-day-0123456789")


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The SDK's credential file, which is not there."""
    path = tmp_path / "credentials"
    monkeypatch.setenv("HUAWEICLOUD_SDK_CREDENTIALS_FILE", str(path))
    return path


def written(file: Path, ak: str, sk: str) -> None:
    file.write_text(f"[basic]\nak = {ak}\nsk = {sk}\n")


def test_a_key_that_ends_is_renewed_in_its_file(bench: Bench, stand_in: StandIn, file: Path) -> None:
    """The one in a running process's environment can't be."""
    stand_in.fate = "Failed"
    job = seen(bench, stand_in, error_budget=0.3)
    stand_in.key = OTHER
    bench.until(lambda: any("it may well run on" in line for line in job._news), "warning")
    (warning,) = warnings(job)
    assert "401" in warning and f"put a new one into {file}, and it is used" in warning
    written(file, *OTHER)
    looked = stand_in.asked["look"]
    bench.until(lambda: stand_in.asked["look"] > looked, "look by another key")
    stand_in.job._held = None
    assert bench.end(job) == "failed" and reasons(job) == [f"the service ended job {stand_in.job.id}: Failed"]
    assert not stand_in.asked["stop"] and warnings(job) == []


def test_a_key_that_ends_for_good_leaves_the_way_to_end_the_job(
    bench: Bench, stand_in: StandIn, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "ENDING", 0.3)
    job = seen(bench, stand_in, error_budget=0.3)
    job._service.timing = replace(job._service.timing, life=0.5)
    stand_in.key = OTHER
    assert bench.end(job) == "failed" and stand_in.job.phase == "Running"
    assert "401" in reasons(job)[0] and f"put a new one into {file}" in reasons(job)[0]
    assert f"`python -m proofmark.jobs stop {job.id}` ends what may be left of it" in reasons(job)[-1]


def test_a_key_that_was_never_good_is_refused_at_once(bench: Bench, stand_in: StandIn, file: Path) -> None:
    """Whoever sets it in the environment is not answered by another one."""
    stand_in.key = OTHER
    written(file, *OTHER)
    status, job = bench.run()
    (why,) = reasons(job)
    assert status == "failed" and "401" in why and str(file) not in why and not stand_in.jobs


def test_a_temporary_key_is_told_of_before_the_job(
    bench: Bench, stand_in: StandIn, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not any("access key" in line for line in bench.service().examine(1, 1))
    monkeypatch.setenv("HUAWEICLOUD_SDK_SECURITY_TOKEN", "token-of-an-hour")
    note = bench.service(auto_stop=3).examine(1, 1)[1]
    assert "may run for 3 h (`auto_stop`)" in note and str(file) in note and "token-of" not in note
    stand_in.fate = "Failed"
    _, job = bench.run(auto_stop=3)
    assert job.news()[0] == note


A, B, C = (Credentials(name, f"{name}-secret") for name in "ABC")


class Keys:
    """Clients are their keys' names; of some, requests are refused."""

    def __init__(self, *known: Credentials) -> None:
        self.known, self.answers = list(known), dict[str, Exception]()
        self.access = Access(A, lambda who: who.ak, self.all)

    def all(self) -> Iterator[Credentials]:
        yield from self.known

    def ask(self) -> str:
        def request(name: str) -> str:
            if name in self.answers:
                raise self.answers[name]
            return name

        return self.access.ask(request)


def test_the_next_key_that_is_of_use_is_kept() -> None:
    keys = Keys(A, B, C)
    assert keys.ask() == "A"
    keys.answers |= {"A": Denied("expired", of_key=True), "B": ServiceError("404: of another account")}
    assert keys.ask() == "C"
    del keys.answers["A"]
    assert keys.ask() == "C", "until that is refused"
    keys.answers["C"] = Denied("expired", of_key=True)
    assert keys.ask() == "A"


@pytest.mark.parametrize(
    "answer, transient",
    [(Denied("no", of_key=True), True), (Denied("no", of_key=False), False), (ServiceError("no"), False)],
    ids=["of the key", "of a right", "of something else"],
)
def test_what_no_key_is_granted(answer: ServiceError, transient: bool) -> None:
    keys = Keys(A, B)
    assert keys.ask() == "A"
    keys.answers |= {"A": answer, "B": Denied("older", of_key=True)}
    with pytest.raises(ServiceError, match="^no") as caught:
        keys.ask()
    assert caught.value.transient is transient


def test_another_key_that_gets_no_answer_may_get_one_later() -> None:
    keys = Keys(A, B)
    assert keys.ask() == "A"
    keys.answers |= {"A": Denied("no", of_key=True), "B": ServiceError("503", transient=True)}
    with pytest.raises(ServiceError, match="503"):
        keys.ask()


def test_a_file_of_keys_that_cannot_be_read_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = Keys(A)
    assert keys.ask() == "A"

    def damaged() -> Iterator[Credentials]:
        yield A
        raise UsageError("cannot be read")

    monkeypatch.setattr(keys.access, "_known", damaged)
    keys.answers["A"] = Denied("no", of_key=True)
    with pytest.raises(ServiceError, match="no") as caught:
        keys.ask()
    assert caught.value.transient


def test_a_new_key_that_stands_in_the_cloud_file_is_not_taken(bench: Bench, stand_in: StandIn, file: Path) -> None:
    service = bench.service(description=OTHER[0])
    assert service.find("none") is None
    stand_in.key = OTHER
    written(file, *OTHER)
    with pytest.raises(ServiceError, match="401"):
        service.find("none")


class Refusing(BaseHTTPRequestHandler):
    """A store that says why."""

    status, code = 403, "AccessDenied"

    def do_PUT(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        body = f"<Error><Code>{self.code}</Code><Message>no</Message></Error>".encode()
        self.send_response(self.status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.mark.parametrize(
    "status, code, of_key",
    [(403, "AccessDenied", False), (403, "InvalidAccessKeyId", True), (400, "ExpiredToken", True), (401, "", True)],
)
def test_what_a_store_says_of_a_key(status: int, code: str, of_key: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("obs")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    kind = type("Kind", (Refusing,), {"status": status, "code": code})
    with serving(kind) as plain, pytest.raises(Denied, match=f"writing bench/a: {status}") as caught:
        Obs(plain, WHO).put("bench/a", b"")
    assert caught.value.of_key is of_key and not caught.value.transient
