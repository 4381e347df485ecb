"""Jobs at the stand-in: what comes home, what goes wrong, and that it is told."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from proofmark import jobs
from proofmark.launch.job_file import AtService, index_in
from proofmark.launch.launchers.modelarts.obs import Obs
from proofmark.launch.launchers.modelarts.train_result_info import Measured
from proofmark.launch.reattach import reattach
from proofmark.launch.service import handle as handle_module
from proofmark.launch.service import transfer
from proofmark.launch.service.contract import LogPart, Task, View
from proofmark.launch.service.handle import ServiceHandle
from proofmark.launch.service.running import RunningJob
from proofmark.process.identity import ProcessIdentity
from tests.modelarts import platform_job
from tests.modelarts.bench import LEAVES, Bench, reasons
from tests.modelarts.buckets import BUCKET
from tests.modelarts.platform_job import PlatformJob
from tests.modelarts.stand_in import DROP, SK, StandIn


def test_two_nodes(bench: Bench, stand_in: StandIn) -> None:
    status, handle = bench.run()
    assert status == "succeeded", (handle.facts(), handle.news())
    facts = handle.facts()
    assert [host["name"] for host in facts["hosts"]] == ["worker-0", "worker-1"]
    assert facts["hosts"][0]["chip"]["name"] and "chip" not in facts["hosts"][1]
    instances = facts["instances"]
    assert instances["throughputs"] == [pytest.approx(100 / 2 + 100 / 3)] and instances["accuracies"] == [0.5]
    assert instances["utilisation"] == pytest.approx(0.5), "minutes without a reading are none"
    folder = Path(handle._job.directory)
    assert (folder / "noderank1/rank1.log").read_text() == "rank 1\n"
    block = json.loads((folder / "train_result_info.json").read_text())["train_result_info"]
    assert block["throughput_ratio"] == instances["throughput"] and block["accuracy"] == 0.5
    assert block["average_power"] is None and "power" in block["reasons"]["average_power"]
    assert block["queue_seconds"] >= 0 and block["run_seconds"] > 0 and block["total_seconds"] > 0
    for task in stand_in.job.tasks:
        assert (folder / f"log/modelarts-job-{stand_in.job.id}-{task}.log").read_bytes() == stand_in.job.log(
            task
        ).read_bytes()
    no_secret_below(bench.folder)
    nodes = [stand_in.job.folder / f"node{index}" for index in (0, 1)]
    assert [list((node / where).iterdir()) for node in nodes for where in ("home", "tmp")] == [[], [], [], []]


def no_secret_below(folder: Path) -> None:
    """Nor in a file's name."""
    for path in folder.rglob("*"):
        if path.is_file() and not path.is_symlink() and "tree" not in path.relative_to(folder).parts:
            assert SK.encode() not in path.read_bytes(), path


def test_code_is_sent_once_and_compared_before_it_is_run(bench: Bench, stand_in: StandIn) -> None:
    stand_in.fate = "Completed"
    bench.run()
    pack = stand_in.job.body["algorithm"]["code_dir"].removeprefix(f"/{BUCKET}/") + "code.zip"
    bench.buckets.write(pack, bench.buckets.read(pack)[:-1] + b"x")  # as long as before
    stand_in.fate = None
    status, handle = bench.run(nnodes=1)
    assert bench.buckets.read(pack).endswith(b"x"), "it is not sent again"
    bench.buckets.remove(pack)
    assert status == "failed" and "code.zip is not what was sent: delete it from the bucket" in reasons(handle)[0]


def test_independent_servers(bench: Bench, stand_in: StandIn) -> None:
    """Each runs the whole job; the run's own files are the first one's."""
    status, handle = bench.run(nnodes=1, nodes=2, aggregate="per_server_mean", servers=2)
    assert status == "succeeded", handle.facts()
    instances = handle.facts()["instances"]
    assert instances["mode"] == "per_server_mean" and instances["throughputs"] == [50.0, 50.0]
    assert (handle._job.directory / "server1/noderank0/result0.json").exists()
    assert len(handle.facts()["hosts"]) == 1


def test_the_platforms_own_frameworks_start_the_boot_file(bench: Bench) -> None:
    engine = {"name": "PyTorch", "version": "2.1"}
    bench.file.with_name("first.py").write_text(
        "import pathlib, runpy, sys\nprint('first of all', flush=True)\n"
        "sys.path.insert(0, str(pathlib.Path(__file__).parent))\n"
        "runpy.run_path(str(pathlib.Path(__file__).with_name('boot.py')), run_name='__main__')\n"
    )
    status, handle = bench.run(nnodes=1, image=None, engine=engine, boot_file=f"/{BUCKET}/code/first.py")
    assert status == "succeeded", handle.facts()
    (log,) = (handle._job.directory / "log").iterdir()
    assert log.read_text().startswith("first of all")
    own = {"image": None, "engine": engine, "boot_file": f"/{BUCKET}/code/first.py"}
    before = bench.service(**own).places("name", "tree").code
    first = bench.file.with_name("first.py")
    first.write_text(first.read_text().replace("first of all", "first of ALL"))
    assert bench.service(**own).places("name", "tree").code != before, "as long as before, and another"


def test_bursts_while_it_runs_are_borne(bench: Bench, stand_in: StandIn) -> None:
    stand_in.faults["look"].extend([429, 503, 503, DROP, 429, DROP, 500])
    stand_in.faults["search"].append(503)
    status, handle = bench.run(nnodes=1)
    assert status == "succeeded", handle.facts()
    assert not stand_in.faults["look"]


def test_errors_beyond_the_budget_end_a_job_that_nobody_has_seen(bench: Bench, stand_in: StandIn) -> None:
    stand_in.held = "Running"
    stand_in.faults["look"].extend([503] * 6)
    handle = bench.submit(nnodes=1, error_budget=0.3)
    assert bench.end(handle) == "failed"
    assert "503" in reasons(handle)[0] and stand_in.asked["stop"] == 1 and stand_in.job.phase == "Terminated"


@pytest.mark.parametrize("fault", [lambda: 503, 503, 429], ids=["after it was accepted", "before", "throttled"])
def test_a_creation_whose_answer_is_lost_makes_one_job(
    bench: Bench, stand_in: StandIn, fault: int | Callable[[], int]
) -> None:
    stand_in.fate = "Failed"
    stand_in.faults["create"].append(fault)
    bench.run()
    assert len(stand_in.jobs) == 1 and stand_in.asked["search"] == 1


def test_a_wrong_secret(bench: Bench, stand_in: StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HUAWEICLOUD_SDK_SK", "wrong" + SK[5:])
    status, handle = bench.run()
    (why,) = reasons(handle)
    assert status == "failed" and "401" in why and "verify aksk signature fail" in why and SK[5:] not in why
    assert not stand_in.jobs


def test_an_upload_that_is_refused_half_way_creates_nothing(bench: Bench, stand_in: StandIn) -> None:
    status, handle = bench.run(out_url="/nobodys-bucket/runs/")
    (why,) = reasons(handle)
    assert status == "failed" and "writing nobodys-bucket/runs/" in why and "ticket.json: 404 NoSuchBucket" in why
    assert bench.buckets.keys("code/") and not stand_in.asked["create"]


def test_a_worker_that_ends_badly(
    bench: Bench, stand_in: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other one, which does not end, has nothing to say."""
    monkeypatch.setattr(platform_job, "GRACE", 2.0)
    python = tmp_path / "python"
    python.write_text(
        '#!/bin/bash\n[ "$VC_TASK_INDEX" = 1 ] && { echo starting; echo no such device; exit 3; }\nsleep 600\n'
    )
    python.chmod(0o755)
    status, handle = bench.run(python=str(python))
    assert status == "failed" and handle.facts()["lost"] == [
        {"node": 1, "reason": "worker-1 ended with exit code 3: starting | no such device"}
    ]
    assert len(list((handle._job.directory / "log").iterdir())) == 2


@pytest.mark.parametrize("fate", ["Failed", "Abnormal"])
def test_what_the_service_says_of_an_end(bench: Bench, stand_in: StandIn, fate: str) -> None:
    stand_in.fate = fate
    status, handle = bench.run()
    assert (status, reasons(handle)) == ("failed", [f"the service ended job {stand_in.job.id}: {fate}"])


def test_a_job_that_somebody_else_terminates(bench: Bench, stand_in: StandIn) -> None:
    stand_in.held = "Running"
    handle = bench.submit()
    bench.until(lambda: stand_in.jobs and stand_in.job.phase == "Running", "job that runs")
    stand_in.job.terminate()
    assert bench.end(handle) == "failed" and not stand_in.asked["stop"]
    (why,) = reasons(handle)
    ended = f"the service ended job {stand_in.job.id}: Terminated"
    assert why == f"{ended}, as somebody asked for, or as it had run for 24 h (`auto_stop`)"


def test_a_job_that_stays_in_the_queue(bench: Bench, stand_in: StandIn) -> None:
    stand_in.held = "Pending"
    handle = bench.submit(queue_timeout=0.5)
    assert bench.end(handle) == "failed" and "is still Pending after" in reasons(handle)[0]
    assert stand_in.asked["stop"] == 1 and stand_in.job.phase == "Terminated"


def full(*_: object) -> None:
    raise OSError(28, "No space left on device")


def test_a_disk_that_is_full_while_it_runs_is_told_of_and_ends_no_job(
    bench: Bench, stand_in: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There may be room again when it has ended."""
    monkeypatch.setattr(RunningJob, "sync_logs", full)
    status, handle = bench.run()
    assert status == "succeeded" and not stand_in.asked["stop"], reasons(handle)
    (warning,) = [line for line in handle.news() if line.startswith("WARNING")]
    assert "No space left on device" in warning and stand_in.job.id in warning, "once"


@pytest.mark.parametrize("status", [403, 404, 503])
def test_a_log_that_is_refused_ends_no_job(bench: Bench, stand_in: StandIn, status: int) -> None:
    """Nor does a look, or an end, come as late as a service's errors are borne."""
    stand_in.held = "Running"
    stand_in.faults["preview"].extend([status] * 1000)
    handle = bench.submit(nnodes=1, error_budget=1000)
    bench.until(lambda: stand_in.asked["look"] > 5, "further looks")
    assert handle.status() == "running" and stand_in.job.phase == "Running" and not stand_in.asked["stop"]
    handle.stop()
    (warning,) = [line for line in handle.news() if line.startswith("WARNING")]
    assert f"the log of worker-0 of job {stand_in.job.id}: {status}" in warning and reasons(handle) == []


def test_one_that_is_stopped_and_its_namesake(bench: Bench, stand_in: StandIn) -> None:
    stand_in.held = "Running"
    handle = bench.submit()
    bench.until(lambda: stand_in.jobs and stand_in.job.phase == "Running", "job that runs")
    ours = stand_in.job
    body = {**ours.body, "metadata": {"name": f"{ours.name}-2"}}
    other = stand_in.jobs["other"] = PlatformJob(body, bench.buckets, "Running", None)
    handle.stop()
    assert handle.status() == "failed" and ours.phase == "Terminated" and reasons(handle) == []
    assert stand_in.asked["stop"] == 1 and other.phase == "Running"


def test_a_log_that_grows(bench: Bench, stand_in: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No byte of it is asked for twice."""
    read, plain = [], Obs.read

    def counted(self: Obs, key: str, since: int = 0) -> bytes:
        content = plain(self, key, since)
        read.append(len(content) if key.endswith(".log") and "/log/" in key else 0)
        return content

    monkeypatch.setattr(Obs, "read", counted)
    stand_in.preview_ready = False
    python = tmp_path / "python"
    python.write_text(
        "#!/bin/bash\nfor piece in 1 2 3; do head -c 2000000 /dev/urandom | base64 -w 80; sleep 0.3; done\nexit 5\n"
    )
    python.chmod(0o755)
    status, handle = bench.run(nnodes=1, python=str(python))
    assert status == "failed"
    written = stand_in.job.log("worker-0").read_bytes()
    (log,) = (handle._job.directory / "log").iterdir()
    assert len(written) > 5 << 20 and log.read_bytes() == written and sum(read) == len(written)


@pytest.mark.parametrize(
    "preview, taken",
    [
        ({"content": "gr\u00fc\u00dfe\n", "full_size": 8}, "gr\u00fc\u00dfe\n"),
        ({"content": "\ufffd\u00dfe\n", "full_size": 7}, ""),
        ({"content": "gr\u00fc\u00dfe\n", "full_size": 6}, ""),
        ({"content": "later\n", "full_size": 100}, ""),
    ],
    ids=["whole", "cut within a letter", "longer than it says", "an end alone"],
)
def test_a_preview_is_taken_where_it_has_the_logs_own_bytes(
    bench: Bench, stand_in: StandIn, monkeypatch: pytest.MonkeyPatch, preview: dict[str, object], taken: str
) -> None:
    monkeypatch.setattr(stand_in, "_preview", lambda *_: (200, preview))
    at = AtService(name=bench.prefix, id="0a", nodes=1, settings={})
    assert bench.service().log(at, Task("worker-0"), 0) == LogPart(0, taken.encode())


def test_a_log_that_began_with_a_preview_is_the_buckets_in_the_end(
    bench: Bench, stand_in: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From its first byte, though the preview looked sound."""
    monkeypatch.setattr(stand_in, "_preview", lambda *_: (200, {"content": "first\nsecond\n", "full_size": 13}))
    at = AtService(name=bench.prefix, id="0b", nodes=1, settings={})
    running, view = RunningJob(bench.service(), at, bench.folder), View("Running", "running", [Task("worker-0")])
    name = f"{bench.prefix}/runs/{bench.prefix}/log/modelarts-job-0b-worker-0.log"
    for content in (b"first\nsecond\n", b"First\n", b"First\nsecond\n", b"First\nsecond\nthird\n"):
        if content[:1] == b"F":
            bench.buckets.write(name, content)
        running.sync_logs(view)
        assert running.log(view.tasks[0]).read_bytes() == content


def test_another_session_takes_no_preview_for_the_buckets(
    bench: Bench, stand_in: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What lies here when a job is found again may be the preview that the session before had."""
    monkeypatch.setattr(stand_in, "_preview", lambda *_: (200, {"content": "first\n", "full_size": 6}))
    at, view = (
        AtService(name=bench.prefix, id="0c", nodes=1, settings={}),
        View("Running", "running", [Task("worker-0")]),
    )
    RunningJob(bench.service(), at, bench.folder).sync_logs(view)
    bench.buckets.write(f"{bench.prefix}/runs/{bench.prefix}/log/modelarts-job-0c-worker-0.log", b"First\nsecond\n")
    again = RunningJob(bench.service(), at, bench.folder)
    again.sync_logs(view)
    assert again.log(view.tasks[0]).read_bytes() == b"First\nsecond\n"


def test_a_log_in_utf_8_grows_from_its_preview_to_the_buckets(bench: Bench, stand_in: StandIn, tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text('#!/bin/bash\nfor line in 1 2 3; do echo "gr\u00fc\u00dfe $line"; sleep 0.2; done\nexit 5\n')
    python.chmod(0o755)
    status, handle = bench.run(nnodes=1, python=str(python))
    (log,) = (handle._job.directory / "log").iterdir()
    assert status == "failed" and log.read_text("utf-8") == "".join(f"gr\u00fc\u00dfe {line}\n" for line in (1, 2, 3))


@pytest.mark.parametrize(
    "changes, metrics, expected",
    [
        ({"cards": 1}, [40, 60], "the platform has measured no npuUtil or gpuUtil"),
        ({}, [40, None], "metrics of worker-0: the service sent an invalid answer"),
        ({}, [40, 60], None),
    ],
    ids=["of cards", "one that is none", "of the processor"],
)
def test_whose_utilisation_it_is(
    bench: Bench, stand_in: StandIn, changes: dict[str, int], metrics: list[Any], expected: str | None
) -> None:
    """The processor's is never told as the cards', and a metric that can't be read fails no run."""
    replay(bench, stand_in)
    stand_in.metrics = metrics
    status, handle = bench.run(**changes)
    assert status == "succeeded", reasons(handle)
    assert handle.facts()["instances"]["utilisation"] == (None if expected else 0.5)
    block = json.loads((handle._job.directory / "train_result_info.json").read_text())["train_result_info"]
    assert expected is None or any(expected in reason for reason in block["reasons"].values())


@pytest.mark.parametrize("faults, expected", [([503, DROP], 0.5), ([400], None)], ids=["for now", "for good"])
def test_metrics_that_are_refused(
    bench: Bench, stand_in: StandIn, faults: list[int | str], expected: float | None
) -> None:
    replay(bench, stand_in)
    stand_in.faults["metrics"].extend(faults)
    status, handle = bench.run()
    assert status == "succeeded" and handle.facts()["instances"]["utilisation"] == expected, reasons(handle)
    assert stand_in.asked["metrics"] >= len(faults) and not stand_in.faults["metrics"]


def key_of(job: PlatformJob, name: str) -> str:
    prefix: str = job.body["algorithm"]["outputs"][0]["remote"]["obs"]["obs_url"]
    return prefix.removeprefix(f"/{BUCKET}/") + name


def deleted(bench: Bench, job: PlatformJob) -> None:
    bench.buckets.remove(key_of(job, "throughput_1.json"))


def not_a_number(bench: Bench, job: PlatformJob) -> None:
    bench.buckets.write(key_of(job, "throughput_1.json"), b"nan")


def twice(bench: Bench, job: PlatformJob) -> None:
    bench.buckets.write(key_of(job, "throughput_01.json"), b"1.0")


def higher(bench: Bench, job: PlatformJob) -> None:
    bench.buckets.write(key_of(job, "throughput_0.json"), b"1000.0")


def large(bench: Bench, job: PlatformJob) -> None:
    bench.buckets.write(key_of(job, "accuracy.json"), b"0.5" + 70 * b" " + b"junk")


def miscounted(bench: Bench, job: PlatformJob) -> None:
    bench.buckets.write(key_of(job, "ranksize.json"), b"3")


def damaged(bench: Bench, job: PlatformJob) -> None:
    bench.buckets.write(key_of(job, "noderank1/rank1.log"), b"rank 2\n")


def cut(bench: Bench, job: PlatformJob) -> None:
    bench.buckets.write(key_of(job, "noderank1/rank1.log"), b"rank")


def without_a_node(bench: Bench, job: PlatformJob) -> None:
    bench.buckets.remove(key_of(job, "noderank1/manifest.json"))


def anothers(bench: Bench, job: PlatformJob) -> None:
    manifest = json.loads(bench.buckets.read(key_of(job, "noderank1/manifest.json")))
    bench.buckets.write(key_of(job, "noderank1/manifest.json"), json.dumps(manifest | {"job": "older"}).encode())


def stale(bench: Bench, job: PlatformJob) -> None:
    job.created += 3600


def without_a_date(bench: Bench, job: PlatformJob) -> None:
    job.created = 0


def recovered(bench: Bench, job: PlatformJob) -> None:
    job.records.append({"start_at": 1, "start_type": "restart", "recover_records": []})


LEFT: dict[str, bytes] = {}
"""What a job of two nodes left, once it has run."""


def replay(bench: Bench, stand_in: StandIn) -> None:
    """Jobs without a process, whose results are those of one that ran, under their own name."""
    if not LEFT:
        assert bench.run()[0] == "succeeded"
        home = key_of(stand_in.job, "")
        LEFT.update({key.removeprefix(home): bench.buckets.read(key) for key in bench.buckets.keys(home)})
        LEFT["of"] = stand_in.job.name.encode()

    def lay_down(job: PlatformJob) -> None:
        for name, content in LEFT.items():
            bench.buckets.write(key_of(job, name), content.replace(LEFT["of"], job.name.encode()))

    stand_in.fate, stand_in.after_export = "Completed", lay_down


@pytest.mark.parametrize(
    "trouble, expected",
    [
        (deleted, "result throughput_1.json is missing"),
        (not_a_number, "result throughput_1.json: 'nan' is not a finite number above 0"),
        (twice, "result throughput_01.json: it is throughput_1.json a second time"),
        (higher, "result throughput_0.json: it says 1000.0, and its rank said 50.0"),
        (large, "result accuracy.json: it has 77 bytes, and a number has 64 at most"),
        (miscounted, "result ranksize.json: it says 3 ranks, and the job has 2"),
        (damaged, "noderank1/rank1.log: it is not what its node left there"),
        (cut, "noderank1/rank1.log has 4 bytes, its node left 7"),
        (without_a_node, "noderank1/manifest.json is missing"),
        (anothers, "noderank1/manifest.json: it is of another job, older"),
        (stale, "noderank0/manifest.json is 3"),
        (
            without_a_date,
            "noderank0/manifest.json may be older than the job: the service does not say when that was created",
        ),
        (recovered, "was recovered 1 time while it ran"),
    ],
)
def test_results_that_are_not_what_they_should_be(
    bench: Bench, stand_in: StandIn, trouble: Callable[[Bench, PlatformJob], None], expected: str
) -> None:
    replay(bench, stand_in)
    assert bench.run()[0] == "succeeded"
    plain = stand_in.after_export
    stand_in.after_export = lambda job: (plain(job), trouble(bench, job))
    status, handle = bench.run()
    assert status == "failed"
    assert any(expected in why for why in reasons(handle)), reasons(handle)


def test_a_disk_that_is_full_once_the_nodes_files_are_here_is_told_so(
    bench: Bench, stand_in: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    replay(bench, stand_in)
    monkeypatch.setattr(Measured, "save", full)
    status, handle = bench.run()
    (why,) = reasons(handle)
    assert status == "failed" and "No space left on device" in why
    assert why.endswith(f"what the nodes of job {list(stand_in.jobs)[-1]} left is here all the same")


@pytest.mark.parametrize("limit, key", [("MANIFEST", "noderank0/manifest.json"), ("FILE", "agent.log"), ("JOB", "")])
def test_what_is_too_large_is_not_fetched(
    bench: Bench, stand_in: StandIn, limit: str, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    replay(bench, stand_in)
    fetched, plain = [], Obs.fetch
    monkeypatch.setattr(Obs, "fetch", lambda self, key, path: (fetched.append(key), plain(self, key, path)))
    monkeypatch.setattr(transfer, f"LARGEST_{limit}", 5)
    status, handle = bench.run()
    assert status == "failed" and any("bytes, and 5 may come home" in why and key in why for why in reasons(handle))
    assert limit == "FILE" or not fetched


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_job_whose_session_crashed(
    bench: Bench, stand_in: StandIn, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It runs on, and is known, heard and ended by its id."""
    stand_in.held = "Running"
    monkeypatch.setattr(ServiceHandle, "_follow", lambda self, running: sys.exit())  # its thread, without a word
    handle = bench.submit()
    bench.until(lambda: not handle._thread.is_alive(), "crash")
    bench.until(lambda: stand_in.job.phase == "Running", "job that runs")
    assert handle._file.service.id == stand_in.job.id
    stand_in.job.log("worker-0").write_bytes(b"still here\n")
    gone = handle._file.note(session=ProcessIdentity(2**22 + 1, 1, "another boot"))

    def asked(*arguments: str) -> tuple[int, str]:
        code = jobs.main(["--cache-dir", str(bench.cache), *arguments])
        return code, capsys.readouterr().out

    code, listed = asked("list")
    assert code == 0 and gone.id in listed and " running " in listed and f"job {stand_in.job.id}" in listed
    assert asked("status", gone.id)[0] == 0
    assert "still here" in asked("logs", gone.id)[1]
    stand_in.faults["preview"].extend([403] * 4)
    assert asked("status", gone.id)[0] == 0 and asked("logs", gone.id) == (4, ""), "its state does not hang on its logs"
    assert asked("stop", gone.id) == (0, f"{gone.id}  stopped\n")
    assert stand_in.asked["stop"] == 1 and stand_in.job.phase == "Terminated"
    assert asked("list")[1] == "" and " stopped " in asked("list", "--all")[1]


def test_what_a_job_left_whose_session_crashed_comes_home(bench: Bench, stand_in: StandIn) -> None:
    replay(bench, stand_in)
    status, handle = bench.run()
    assert status == "succeeded"
    home = handle._job.directory
    shutil.rmtree(home / "noderank1")
    lost = handle._file.note(session=ProcessIdentity(2**22 + 1, 1, "another boot"), status="running", ended=None)
    again = reattach(index_in(str(bench.cache)), lost.id)
    assert again.status() == "succeeded" and again.fetch(LEAVES) is None
    assert (home / "noderank1/rank1.log").read_text() == "rank 1\n"
    deleted_node = key_of(list(stand_in.jobs.values())[-1], "noderank0/manifest.json")
    bench.buckets.remove(deleted_node)
    assert again.fetch(LEAVES) is None, "it is all here"
    (home / "noderank0/manifest.json").unlink()
    assert again.fetch(LEAVES) == f"{BUCKET}/{deleted_node} is missing"


def test_a_log_comes_into_its_place_as_a_whole(
    bench: Bench, stand_in: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who follows it would take how long it is in coming for how long something took."""
    replay(bench, stand_in)
    there, plain = [], Obs.fetch

    def half(self: Obs, key: str, path: Path) -> None:
        path.write_bytes(b"ra")
        there.extend(each for each in path.parent.glob("rank*.log") if len(each.read_bytes()) < len(b"rank 0\n"))
        plain(self, key, path)

    monkeypatch.setattr(Obs, "fetch", half)
    status, handle = bench.run()
    assert status == "succeeded" and not there, reasons(handle)
    assert not list(handle._job.directory.rglob("*.arriving"))


def test_what_is_here_is_not_replaced_by_what_its_node_did_not_leave(bench: Bench, stand_in: StandIn) -> None:
    replay(bench, stand_in)
    _, handle = bench.run()
    home, job = handle._job.directory, list(stand_in.jobs.values())[-1]
    bench.buckets.write(key_of(job, "noderank0/rank0.log"), b"RANK 0\n")
    (home / "noderank1/rank1.log").unlink()
    before = {path: path.read_bytes() for path in home.glob("noderank*/*")}
    handle._file.note(session=ProcessIdentity(2**22 + 1, 1, "another boot"))
    again = reattach(index_in(str(bench.cache)), handle.id)
    assert "noderank0/rank0.log: it is not what its node left there" in str(again.fetch(LEAVES))
    after = {path: path.read_bytes() for path in home.glob("noderank*/*")}
    assert after == before | {home / "noderank1/rank1.log": b"rank 1\n"}


def test_what_had_no_room_here_comes_home_by_its_id(
    bench: Bench, stand_in: StandIn, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its session lives and runs others."""
    replay(bench, stand_in)
    with monkeypatch.context() as disk:
        disk.setattr(handle_module, "gather", full)
        status, handle = bench.run()
    (why,) = reasons(handle)
    fetch = ["--cache-dir", str(bench.cache), "fetch", handle.id]
    assert status == "failed" and "No space left on device" in why and f"jobs {' '.join(fetch[2:])}`" in why
    home = handle._job.directory
    assert not (home / "noderank1/rank1.log").exists()
    assert jobs.main(fetch) == 0 and capsys.readouterr().out == f"{handle.id}  is in {home}\n"
    assert (home / "noderank1/rank1.log").read_text() == "rank 1\n"
    shutil.rmtree(home / "noderank0")
    bench.buckets.remove(key_of(list(stand_in.jobs.values())[-1], "noderank0/manifest.json"))
    assert jobs.main(fetch) == 1 and "noderank0/manifest.json is missing" in capsys.readouterr().err


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_what_is_not_fetched(
    bench: Bench, stand_in: StandIn, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a job has yet to leave, and what its session is about to fetch; of one that is not there, nothing."""
    stand_in.held = "Running"
    monkeypatch.setattr(ServiceHandle, "_follow", lambda self, running: sys.exit())
    handle = bench.submit()
    bench.until(lambda: not handle._thread.is_alive(), "crash")
    bench.until(lambda: stand_in.job.phase == "Running", "job that runs")

    def refused() -> str:
        assert jobs.main(["--cache-dir", str(bench.cache), "fetch", handle.id]) == 1
        return capsys.readouterr().err

    assert "has yet to fetch it" in refused()
    gone = handle._file.note(session=ProcessIdentity(2**22 + 1, 1, "another boot"))
    assert f"job {stand_in.job.id} is Running: what it leaves can be had when it has ended" in refused()
    assert gone.service and not list(handle._job.directory.glob("noderank*/*"))
    gone.note(service=gone.service.model_copy(update={"id": None, "name": "another"}))
    assert "its service has no such job" in refused()


def test_what_was_asked_for_can_be_had(bench: Bench, stand_in: StandIn) -> None:
    line, limit = bench.service().examine(2, 1)
    assert "2 x modelarts.vm.cpu.2u can be asked for" in line
    assert limit == "the platform ends a job that has run for 24 h (`auto_stop`)"
    for changes, expected in (
        (
            {"flavor": "modelarts.vm.cpu.8u"},
            "there is no flavor modelarts.vm.cpu.8u here; there are modelarts.vm.cpu.2u",
        ),
        ({"nodes": 9}, "9 nodes of modelarts.vm.cpu.2u, and a job may have 4"),
    ):
        with pytest.raises(Exception, match=expected):
            bench.service(**changes).examine(changes.get("nodes", 1), 1)
