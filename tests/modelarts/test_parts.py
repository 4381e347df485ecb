"""Places from platforms' variables, triplets, the first thing a node runs, and how the object store is spoken to."""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import socket
import ssl
import subprocess
import sys
import threading
import time
import tomllib
import types
import zipfile
import zlib
from calendar import timegm
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from proofmark.errors import UsageError
from proofmark.launch.cluster.code_tree import CodeTree
from proofmark.launch.launchers.modelarts import sdk, triplet, wire
from proofmark.launch.launchers.modelarts.boot import channels, packed_code
from proofmark.launch.launchers.modelarts.cloud_file import Cloud
from proofmark.launch.launchers.modelarts.credentials import Credentials, find_credentials
from proofmark.launch.launchers.modelarts.in_job import VARIABLES
from proofmark.launch.launchers.modelarts.jobs import ModelArts
from proofmark.launch.launchers.modelarts.obs import Obs, _moment
from proofmark.launch.launchers.modelarts.train_result_info import Measured
from proofmark.launch.rank_result import RankResult, rank_results
from proofmark.launch.service.contract import ServiceError, Task, View
from proofmark.launch.service.gathering import Gathered
from proofmark.launch.service.platform import NodeVariables, Place
from proofmark.launch.service.ticket import Manifest, filled
from proofmark.launch.service.transfer import Brought, packed
from tests.services import program

OTHERS = NodeVariables(node="RANK", nodes="WORLD_SIZE", devices="NPROC_PER_NODE", master="MASTER_ADDR")
"""Of Alibaba's PAI-DLC and of Baidu's AIHC."""

MODELARTS = {"VC_TASK_INDEX": "1", "MA_NUM_HOSTS": "2", "MA_NUM_GPUS": "8", "VC_WORKER_HOSTS": "job-0.a,job-1.a"}
DLC = {"RANK": "1", "WORLD_SIZE": "2", "NPROC_PER_NODE": "8", "MASTER_ADDR": "job-0.a", "MASTER_PORT": "23456"}


@pytest.mark.parametrize("table, environment", [(VARIABLES, MODELARTS), (OTHERS, DLC)])
def test_a_nodes_place(table: NodeVariables, environment: dict[str, str]) -> None:
    assert table.place(environment) == Place(1, 2, "job-0.a", 8)
    for name in environment.keys() - {"MASTER_PORT", table.devices}:
        with pytest.raises(ValueError, match=name):
            table.place({key: value for key, value in environment.items() if key != name})
    with pytest.raises(ValueError, match="expected a number below"):
        table.place({**environment, table.node: "2"})
    assert table.place({**environment, table.devices: ""}).devices == 0


def test_hosts_that_are_too_few() -> None:
    with pytest.raises(ValueError, match="VC_WORKER_HOSTS names 1 nodes where MA_NUM_HOSTS says 2"):
        VARIABLES.place({**MODELARTS, "VC_WORKER_HOSTS": "job-0.a"})


def test_where_a_nodes_folders_are() -> None:
    given = channels(
        ["--train_url=/o", "--data_url", "/d", "--other", "--job_url"], {"job_url": "/j", "data_url": "/x"}
    )
    assert given == {"train_url": "/o", "data_url": "/d", "job_url": ""}


def test_a_spec_is_filled_in_by_whole_paths() -> None:
    spec = '{"a": "${run}/x", "b": ["${run}", 1], "c": "${running}"}'
    assert filled(spec, {"${run}": '/r"'}) == '{"a": "/r\\"/x", "b": ["/r\\"", 1], "c": "${running}"}'


def result(rank: int, **changes: Any) -> RankResult:
    known = {
        "rank": rank,
        "node": 0,
        "world": 2,
        "steps": 1,
        "samples": 10.0,
        "began": 1.0,
        "ended": 2.0,
        "seconds": 4.0,
    }
    return RankResult(**{**known, "metric": None if rank else 0.75, **changes})


def test_triplets_are_written_and_read(tmp_path: Path) -> None:
    triplet.write(tmp_path, [result(0), result(1)], None)
    found = {path.name: None for path in tmp_path.iterdir()}
    assert sorted(found) == ["accuracy.json", "ranksize.json", "throughput_0.json", "throughput_1.json"]
    keys = triplet.keys_of(found, 2, None)
    assert triplet.read(tmp_path, keys, 2, None) == [triplet.Instance(5.0, 0.75)]
    for server in (0, 1):
        triplet.write(tmp_path / "servers", [result(0, world=1, seconds=4.0 + server)], server)
    there = {p.relative_to(tmp_path / "servers").as_posix(): None for p in (tmp_path / "servers").rglob("*.json")}
    instances = triplet.read(tmp_path / "servers", triplet.keys_of(there, 1, 2), 1, 2)
    assert instances == [triplet.Instance(2.5, 0.75), triplet.Instance(2.0, 0.75)]


@pytest.mark.parametrize(
    "key, text, expected",
    [
        ("throughput_1.json", "", "'' is not a number"),
        ("throughput_1.json", "inf", "'inf' is not a finite number"),
        ("throughput_1.json", "0", "'0' is not a finite number above 0"),
        ("throughput_1.json", "-5", "is not a finite number above 0"),
        ("accuracy.json", "nan", "'nan' is not a finite number"),
        ("ranksize.json", "4", "it says 4 ranks, and the job has 2"),
    ],
)
def test_a_number_that_is_none_names_its_key(tmp_path: Path, key: str, text: str, expected: str) -> None:
    triplet.write(tmp_path, [result(0), result(1)], None)
    (tmp_path / key).write_text(text)
    with pytest.raises(ServiceError, match=f"result {key}: .*{expected}"):
        triplet.read(tmp_path, ["throughput_0.json", "throughput_1.json", "accuracy.json", "ranksize.json"], 2, None)


@pytest.mark.parametrize("extra", ["throughput_2.json", "1/throughput_0.json"])
def test_results_of_ranks_that_the_job_has_not(extra: str) -> None:
    found = dict.fromkeys(["throughput_0.json", "accuracy.json", "ranksize.json", extra])
    with pytest.raises(ServiceError, match=f"result {extra}: the job has no such rank or server"):
        triplet.keys_of(found, 1, None)


def test_a_rank_result_that_is_none_is_named(tmp_path: Path) -> None:
    (tmp_path / "result0.json").write_text('{"rank": 0}')
    with pytest.raises(ValueError, match=r"result0\.json: node: Field required"):
        rank_results(tmp_path)


def test_a_job_as_the_service_shows_it() -> None:
    job = wire.read(
        b'{"metadata": {"id": "j", "create_time": 1000}, "status": {"phase": "Running", "start_time": 2500, "tasks":'
        b'["worker-10", "worker-9"], "running_records": [{"recover_records": [1, 2]}, {}], "secondary_phase": "new"}}',
        wire.Job,
        "a job",
    )
    view = job.view()
    assert [task.name for task in view.tasks] == ["worker-9", "worker-10"] and view.restarts == 1
    assert (view.created, view.started, view.state) == (1.0, 2.5, "running")
    for content in (b"", b"{", b'{"metadata": {"id": "../x"}}', b"[]"):
        with pytest.raises(ServiceError, match="a job: the service sent an invalid answer"):
            wire.read(content, wire.Job, "a job")


def answering(answer: object) -> Any:
    """A service whose clients are handed the same answer each time, or raise it."""

    def ask(_: object) -> Any:
        if isinstance(answer, Exception):
            raise answer
        return types.SimpleNamespace(status_code=200, raw_content=answer)

    service: Any = ModelArts.__new__(ModelArts)
    requests = ("ShowTrainingJobDetailsRequest", "ListTrainingJobsRequest", "ShowTrainingJobLogsPreviewRequest")
    service._theirs = types.SimpleNamespace(**dict.fromkeys(requests, dict))
    service._clients = types.SimpleNamespace(ask=ask)
    service._cloud = types.SimpleNamespace(workspace_id="0")
    return service


@pytest.mark.parametrize("answer", [b"<html>", b'{"metadata": {"id": "../x"}}', TypeError("of their client's")])
def test_one_answer_that_cannot_be_read_ends_no_training(answer: object) -> None:
    with pytest.raises(ServiceError, match="looking at job j: the service sent an invalid answer") as caught:
        answering(answer).look("j")
    assert caught.value.transient


@pytest.mark.parametrize(
    "request_for", [lambda s: s.find("n"), lambda s: s._previewed(types.SimpleNamespace(id="j"), Task("worker-0"), 0)]
)
def test_what_their_client_raises_as_it_reads_may_be_read_at_the_next_try(request_for: Callable[[Any], object]) -> None:
    with pytest.raises(ServiceError, match="the service sent an invalid answer: ValueError") as caught:
        request_for(answering(ValueError("of their client's")))
    assert caught.value.transient


@pytest.mark.parametrize("left", [True, False], ids=["with what its nodes left", "without"])
@pytest.mark.parametrize("independent", [True, False], ids=["servers", "one training"])
def test_a_job_that_was_ended_is_no_fault_of_its_nodes(left: bool, independent: bool) -> None:
    """The platform does so at the job's limit: by what its nodes and ranks say, they were killed."""
    tasks = [Task(f"worker-{node}", 137) for node in (0, 1)]
    manifest = Manifest(job="j", code=143, began=1.0, ended=2.0, files={}, host={})
    gathered = Gathered(Brought({0: manifest, 1: manifest} if left else {}), tasks, 2, independent)
    running: Any = types.SimpleNamespace(id="j", last_lines=lambda task: "")
    lost = list(gathered.lost(running, View("Terminated", "stopped", tasks, message="at its limit")))
    assert lost == [(None, "the service ended job j: Terminated, at its limit")]


@pytest.mark.parametrize("independent", [True, False], ids=["servers", "one training"])
def test_times_are_those_of_one_clock(independent: bool) -> None:
    """The second node's shows five minutes more."""

    def manifest(ahead: float) -> Manifest:
        return Manifest(job="j", code=0, began=10.0 + ahead, ended=20.0 + ahead, files={}, host={})

    brought = Brought({0: manifest(0.0), 1: manifest(300.0)})
    facts = Gathered(brought, [], 2, independent).facts()
    assert (facts["started"], facts["ended"]) == (10.0, 20.0)
    servers = [{"started": 10.0, "ended": 20.0}, {"started": 310.0, "ended": 320.0}]
    assert facts.get("servers") == (servers if independent else None)
    results = [
        result(0, node=0, began=11.0, ended=19.0),
        result(1, node=0 if independent else 1, began=311.0, ended=319.0),
    ]
    ended: Any = None
    measured = Measured(ended, "sum", [], results, None, "")
    assert (measured.began, measured.trained) == (11.0, 319.0 if independent else 19.0)


def test_without_the_clients_one_line_says_how_to_get_them() -> None:
    with pytest.raises(UsageError, match=r"pip install huaweicloudsdkmodelarts esdk-obs-python$"):
        sdk.sdk_module("huaweicloudsdk_that_is_not_there")
    extras = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    assert tuple(extras["optional-dependencies"]["modelarts"]) == sdk.PACKAGES


@pytest.fixture
def certificate(tmp_path: Path) -> Callable[[str], Path]:
    """Makes one that nobody has signed, for a name; its key lies beside it."""

    def made(name: str) -> Path:
        path = tmp_path / "public.pem"
        options = f"req -x509 -newkey rsa:2048 -nodes -days 1 -subj /CN=localhost -addext subjectAltName={name}"
        command = [program("openssl"), *options.split(), "-keyout", str(tmp_path / "key.pem"), "-out", str(path)]
        subprocess.run(command, check=True, capture_output=True)
        return path

    return made


@contextlib.contextmanager
def serving(handler: type[BaseHTTPRequestHandler], certificate: Path | None = None) -> Iterator[Cloud]:
    """A server on this machine, as a cloud's endpoints."""
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate, certificate.with_name("key.pem"))
            server.socket = context.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http{'s' if certificate else ''}://127.0.0.1:{server.server_address[1]}"
        known = {"endpoint": address, "obs_endpoint": address, "ca_file": None, "region": "r", "project_id": "p"}
        yield Cloud.model_construct(**known)
        server.shutdown()


WHO = Credentials("A", "sk-of-nobody", "token-of-nobody")


def test_certificates_are_verified(certificate: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """By both clients; one of a private cloud has to be named, one that the system trusts has not."""
    pytest.importorskip("obs")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    known = certificate("IP:127.0.0.1")
    with serving(Recorder, known) as plain:
        with pytest.raises(ServiceError, match="CERTIFICATE_VERIFY_FAILED") as caught:
            Obs(plain, WHO).put("bench/a", b"")
        assert not caught.value.transient
        client, theirs = sdk.modelarts_client(plain, WHO), sdk.sdk_module("huaweicloudsdkmodelarts.v1")
        with pytest.raises(ServiceError, match="looking: its certificate is not trusted: .*self-signed") as caught:
            sdk.asked("looking", WHO, lambda: client.show_training_job_flavors(theirs.ShowTrainingJobFlavorsRequest()))
        assert not caught.value.transient
        Obs(plain.model_copy(update={"ca_file": str(known)}), WHO).put("bench/a", b"")
        monkeypatch.setenv("SSL_CERT_FILE", str(known))
        Obs(plain, WHO).put("bench/a", b"")


def test_a_certificate_of_another_host(certificate: Callable[[str], Path]) -> None:
    """It is trusted, and its name is not the one that was asked."""
    pytest.importorskip("obs")
    known = certificate("DNS:obs.example.org")
    expected = "writing bench/a: .*IP address mismatch"
    with serving(Recorder, known) as plain, pytest.raises(ServiceError, match=expected) as caught:
        Obs(plain.model_copy(update={"ca_file": str(known)}), WHO).put("bench/a", b"")
    assert not caught.value.transient


@pytest.mark.parametrize(
    "said", ["EOF occurred in violation of protocol (_ssl.c:992)", "[SSL: WRONG_VERSION_NUMBER] wrong version number"]
)
def test_a_handshake_that_is_cut_ends_no_training(said: str) -> None:
    """Their client has one kind of error for that and for a certificate that is not trusted."""
    errors = pytest.importorskip("huaweicloudsdkcore.exceptions.exceptions")

    def cut() -> None:
        raise errors.SslHandShakeException(said)

    with pytest.raises(ServiceError, match="looking: no answer: SslHandShakeException") as caught:
        sdk.asked("looking", WHO, cut)
    assert caught.value.transient


def test_a_file_of_certificates_that_has_none(tmp_path: Path) -> None:
    pytest.importorskip("obs")
    (tmp_path / "none.pem").write_text("none")
    cloud = Cloud.model_construct(obs_endpoint="https://127.0.0.1:1", ca_file=str(tmp_path / "none.pem"), region="r")
    with pytest.raises(UsageError, match=r"none\.pem: holds no certificates"):
        Obs(cloud, WHO)


def test_nobody_is_led_elsewhere() -> None:
    """A signed request with its token would be made anew for any host, in the clear too."""
    pytest.importorskip("obs")
    before = len(Recorder.asked)
    with (
        serving(Elsewhere) as plain,
        pytest.raises(ServiceError, match="307 .*redirects are not followed: set `obs_endpoint`") as caught,
    ):
        Obs(plain, WHO).put("bench/a", b"")
    assert len(Recorder.asked) == before + 1 and not caught.value.transient


def test_nothing_secret_is_told() -> None:
    """Neither half of what is secret, by either client, whatever the other side says."""
    pytest.importorskip("obs")
    errors = sdk.sdk_module("huaweicloudsdkcore.exceptions.exceptions")
    said = f"{WHO.sk} and {WHO.token}"

    def refuse(error: Exception) -> None:
        raise error

    refusal = errors.SdkError("r", "c", said)
    for error in (errors.ClientRequestException(403, refusal), errors.SslHandShakeException(said), OSError(said)):
        with pytest.raises(ServiceError, match=r"looking: .*\*\*\* and \*\*\*$"):
            sdk.asked("looking", WHO, lambda error=error: refuse(error))
    store = Obs(Cloud.model_construct(obs_endpoint="http://127.0.0.1:1", ca_file=None, region="r"), WHO)
    answer = types.SimpleNamespace(status=403, errorCode="Denied", errorMessage=said, reason="")
    for request in (lambda: refuse(OSError(said)), lambda: refuse(ssl.SSLCertVerificationError(said)), lambda: answer):
        with pytest.raises(ServiceError, match=r"writing: .*\*\*\* and \*\*\*"):
            store._ask("writing", request)


def test_an_object_that_is_cut_and_a_disk_that_is_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The one may be there at the next try, the other is no matter of the store's."""
    pytest.importorskip("obs")
    monkeypatch.setattr(Halved, "promised", len(Halved.content))
    with serving(Halved) as plain:
        Obs(plain, WHO).fetch("bench/a", tmp_path / "a")
        assert (tmp_path / "a").read_bytes() == Halved.content
        with pytest.raises(OSError, match="No space left"):
            Obs(plain, WHO).fetch("bench/a", Path("/dev/full"))
        monkeypatch.setattr(Halved, "promised", 2 * len(Halved.content))
        with pytest.raises(ServiceError, match="reading bench/a: no answer: .*premature end") as caught:
            Obs(plain, WHO).fetch("bench/a", tmp_path / "a")
    assert caught.value.transient


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"<ListBucketResult><Name>bench</Name><Contents><Key>a</K",
        b"<html><body>Who are you?</body></html>",
        b"<ListBucketResult><Name>bench</Name><IsTruncated>true</IsTruncated></ListBucketResult>",
    ],
    ids=["nothing", "cut", "a proxy's page", "an end without a mark"],
)
def test_a_list_that_cannot_be_read_may_be_whole_at_the_next_try(
    content: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("obs")
    monkeypatch.setattr(Halved, "content", content)
    monkeypatch.setattr(Halved, "promised", len(content))
    with (
        serving(Halved) as plain,
        pytest.raises(ServiceError, match="listing bench/a/: the store sent an invalid answer") as caught,
    ):
        Obs(plain, WHO).list("bench/a/")
    assert caught.value.transient


ZONE = "CET-1CEST,M3.5.0,M10.5.0/3"


@pytest.mark.parametrize(
    "written",
    ["2026-01-15T12:00:00", "2026-07-15T12:00:00", "2026-07-15T23:30:00", "2026-03-29T00:30:00", "2026-03-29T04:00:00"],
)
def test_an_objects_time_where_clocks_are_changed(written: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their client shows it by the local clock, an hour off in summer."""
    model = pytest.importorskip("obs.model")
    try:
        with monkeypatch.context() as there:
            there.setenv("TZ", ZONE)
            time.tzset()
            shown = model.DateTime.UTCToLocal(f"{written}.000Z")
            assert _moment(shown) == timegm(time.strptime(written, "%Y-%m-%dT%H:%M:%S"))
    finally:
        time.tzset()


def test_code_that_is_not_what_was_sent(tmp_path: Path) -> None:
    """Not a byte of it is unpacked."""
    (tmp_path / "code.zip").write_bytes(b"packed")
    ticket = tmp_path / "ticket.json"
    ticket.write_text(json.dumps({"packed": hashlib.sha256(b"packed").hexdigest()}))
    assert packed_code(tmp_path, tmp_path) == b"packed"
    (tmp_path / "code.zip").write_bytes(b"Packed")
    with pytest.raises(ValueError, match=r"code\.zip is not what was sent: delete it"):
        packed_code(tmp_path, tmp_path)
    ticket.write_text("{}")
    with pytest.raises(ValueError, match="is not what was sent"):
        packed_code(tmp_path, tmp_path)


def test_packed_code_is_the_same_whatever_machine_packs_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two zlibs may write one content differently, and a node unpacks no archive but the one that its job knows."""
    (tmp_path / "p").mkdir()
    (tmp_path / "p" / "m.py").write_text("x = 0\n" * 100)
    code, plain = CodeTree.of(tmp_path, ("p",)), zlib.compressobj
    here = packed(code)
    monkeypatch.setattr(zlib, "compressobj", lambda _, *how: plain(0, *how))
    assert packed(code) == here
    with zipfile.ZipFile(io.BytesIO(here)) as pack:
        assert pack.read("p/m.py") == (tmp_path / "p" / "m.py").read_bytes()


def test_an_access_key_of_the_keyring(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a ring of the test's own in the place of the user's."""
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("AK", "SK"):
        monkeypatch.delenv(f"HUAWEICLOUD_SDK_{name}", raising=False)
    monkeypatch.setitem(sys.modules, "keyring", None)
    with pytest.raises(UsageError, match="pip install keyring"):
        find_credentials("lab")
    ring = types.ModuleType("keyring")
    ring.get_password = lambda service, name: {"lab": {"ak": "A", "sk": "s"}}.get(service, {}).get(name)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "keyring", ring)
    assert find_credentials("lab").sk == "s"
    with pytest.raises(UsageError, match="'ak' and 'sk' of 'other' in the keyring"):
        find_credentials("other")


class Recorder(BaseHTTPRequestHandler):
    """What was asked of which host."""

    asked: list[tuple[str, str, dict[str, str]]] = []

    def do_PUT(self) -> None:
        self.asked.append((self.headers["Host"], self.path, {k.lower(): v for k, v in self.headers.items()}))
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def do_HEAD(self) -> None:
        self.do_PUT()

    def log_message(self, *_: object) -> None:
        pass


class Elsewhere(Recorder):
    """Sends whoever asks to where it is itself, by a plain address."""

    def do_PUT(self) -> None:
        self.asked.append((self.headers["Host"], self.path, {}))
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.send_response(307)
        self.send_header("Location", f"http://127.0.0.1:{self.server.server_port}/elsewhere")  # type: ignore[attr-defined]
        self.send_header("Content-Length", "0")
        self.end_headers()


class Halved(Recorder):
    """An object of several pieces, and as many bytes as are promised of it."""

    content, promised = bytes(3 << 20), 0

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(self.promised))
        self.end_headers()
        self.wfile.write(self.content)


def test_a_bucket_has_a_host_name_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """OBS takes neither paths with a bucket in them nor checksums in pieces."""
    pytest.importorskip("obs")
    plain = socket.getaddrinfo
    monkeypatch.setattr(socket, "getaddrinfo", lambda host, *rest, **named: plain("127.0.0.1", *rest, **named))
    with ThreadingHTTPServer(("127.0.0.1", 0), Recorder) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        endpoint = f"http://obs.cn-north-4.example.org:{server.server_address[1]}"
        cloud = Cloud.model_construct(obs_endpoint=endpoint, ca_file=None, region="cn-north-4")
        Obs(cloud, Credentials("A", "s")).put("bench/a/b.txt", b"content")
        server.shutdown()
    host, path, headers = Recorder.asked[-1]
    assert host.startswith("bench.obs.cn-north-4.example.org") and path == "/a/b.txt"
    assert not [name for name in headers if "checksum" in name] and "chunked" not in str(headers.values())
