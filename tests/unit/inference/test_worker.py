"""The case's process: what it answers, how it dies, and that nothing of it is left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest

from proofmark.inference.node import worker
from proofmark.inference.node.worker import CaseWorker, WorkerLost, WorkerSpec
from proofmark.process import child as child_module
from proofmark.process.answering import pipe, silence
from proofmark.process.answering.silence import Patience
from proofmark.process.lifetime import MARK
from proofmark.process.output import capped_log
from proofmark.process.scratch import quota
from tests.waiting import PATIENCE as WAITING
from tests.waiting import name_of, until

PATIENCE = Patience()
PATIENCE_FOR_ONE = 600.0
"""Seconds of silence, more than any machine takes and less than a job is suspended for."""

CHILD = """
import faulthandler, json, os, signal, subprocess, sys, time
faulthandler.register(signal.SIGUSR1, all_threads=True)
open(os.path.join(os.environ["WORKER"], "up"), "w").close()
out = os.fdopen(int(sys.argv[1]), "wb", buffering=0)
def say(**message): out.write((json.dumps(message) + "\\n").encode())
spec = json.loads(sys.stdin.readline())
for line in sys.stdin:
    step = json.loads(line)["step"]
    if step is None: break
    what, _, how = step.partition(":")
    if what == "signal": os.kill(os.getpid(), getattr(signal, how))
    if what == "exit": sys.exit(int(how))
    if what == "sleep": time.sleep(float(how))
    while what == "until" and not os.path.exists(how): time.sleep(0.02)
    if what == "grandchild": subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    if what == "litter": open(os.path.join(os.environ["TMPDIR"], "litter"), "w").close()
    if what == "fill":
        os.mkdir(spec["own_directory"])
        with open(os.path.join(spec["own_directory"], "last"), "wb") as last: last.truncate(int(how))
    if what == "daemon" and os.fork() == 0:
        os.setsid()
        if os.fork() == 0: os.execvp("sleep", ["sleep", "300"])
        os._exit(0)
    if what == "daemon":
        os.wait()
        time.sleep(0.5)
    if what == "print":
        print("the beginning", flush=True)
        for _ in range(int(how)): os.write(1, b"x" * 65536)
        print("the end", flush=True)
    if what == "progress":
        for number in range(int(how)): say(step=number)
    if what == "rubbish": out.write(how.encode() + b"\\n")
    if what == "endless":
        while True: out.write(b"x" * 65536)
    if what == "stops":
        say(alive=how)
        time.sleep(60)
    if what in ("loading", "waiting"):
        say(alive="calls")
        while not os.path.exists(how):
            time.sleep(0.05)
            say(alive=what)
    if what == "long": say(outcome={"status": "done", "reason": "x" * int(how)})
    else: say(outcome={"status": "done", "case": spec["case_class"]})
if spec["case_class"] == "Stays": time.sleep(60)
"""


@pytest.fixture
def make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Workers whose child is the script above; all are gone afterwards."""
    (tmp_path / "proofmark/inference/node").mkdir(parents=True)
    for folder in ("proofmark", "proofmark/inference", "proofmark/inference/node"):
        (tmp_path / folder / "__init__.py").write_text("")
    (tmp_path / "proofmark/inference/node/worker_main.py").write_text(CHILD)
    monkeypatch.setattr(child_module, "STACKS", WAITING)  # on a busy machine it takes a while to write them
    made: list[CaseWorker] = []

    def start(
        case_class: str = "Net", patience: Patience = PATIENCE, config: dict[str, Any] | None = None
    ) -> CaseWorker:
        spec = WorkerSpec(
            "m",
            case_class,
            "acme",
            {},
            "vendors",
            None,
            config or {},
            str(tmp_path),
            str(tmp_path / "own"),
            (str(tmp_path),),
        )
        made.append(CaseWorker(spec, {"WORKER": str(tmp_path)}, patience))
        return made[-1]

    monkeypatch.chdir(tmp_path)
    yield start
    for each in made:
        each.kill()
    assert gone(tmp_path)


@pytest.mark.parametrize(
    "size, expected", [(1 << 19, None), (1 << 21, "the engine's process filled its own directory")]
)
def test_what_was_laid_down_at_the_very_end_is_looked_at_too(
    make: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int, expected: str | None
) -> None:
    monkeypatch.setattr(quota, "EVERY", 1e9)  # at the beginning, and then not before the end
    worker = make(config={"host": {"scratch_limit": 1 / 1024}})
    worker.run("fill:" + str(size), WAITING, lambda _: None)
    worker.dismiss()
    lost = worker.close()
    assert lost is None if expected is None else expected in lost
    assert (tmp_path / "own").exists() is (expected is None), "whoever comes after it needs the disk"


def living(directory: Path) -> list[psutil.Process]:
    """Processes of the workers made in a directory."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get("WORKER") == str(directory) and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except psutil.Error:
            continue
    return found


def names(directory: Path) -> set[str]:
    """Of those processes."""
    return {name_of(process) for process in living(directory)}


def gone(directory: Path) -> bool:
    """Whether all of them end in time: a killed process takes a moment."""
    until(lambda: not living(directory), "their end")
    return True


def nothing(message: dict[str, Any]) -> None:
    pass


def test_steps_are_answered_in_order(make: Any) -> None:
    child = make()
    for _ in range(3):
        assert child.run("step", None, nothing) == {"status": "done", "case": "Net"}
    child.close()


def test_progress_comes_before_the_outcome(make: Any) -> None:
    messages: list[dict[str, Any]] = []
    assert make().run("progress:500", None, messages.append)["status"] == "done"
    assert [message["step"] for message in messages] == list(range(500))


def test_an_answer_longer_than_a_pipe(make: Any) -> None:
    assert make().run("long:300000", None, nothing)["reason"] == "x" * 300_000


@pytest.mark.parametrize(
    "line, expected",
    [
        ("{", "not JSON"),
        ("[1]", "valid dictionary"),
        ("[" * 5000, "not JSON"),
        ('{"outcome": 1}', "outcome"),
        ('{"outcome": {}}', "outcome.status"),
        ('{"outcome": {"status": "done", "kind": "\\u001b"}}', "outcome.kind"),
        ('{"phase": "p"}', "a phase without its steps"),
        ('{"phase": "p", "step": "1", "steps": 1e400}', "step"),
        ('{"step": 99999999999999999999}', "step"),
    ],
)
def test_an_answer_that_is_none_ends_the_child(make: Any, line: str, expected: str) -> None:
    child = make()
    with pytest.raises(WorkerLost, match=expected) as caught:
        child.run(f"rubbish:{line}", None, nothing)
    assert len(str(caught.value).splitlines()) == 1
    with pytest.raises(WorkerLost):
        child.run("step", None, nothing)


def test_a_line_without_end_is_no_answer(make: Any) -> None:
    with pytest.raises(WorkerLost, match="without an end of line"):
        make().run("endless", None, nothing)


@pytest.mark.parametrize("name", ["SIGSEGV", "SIGKILL", "SIGABRT", "SIGBUS"])
def test_death_by_signal_is_told_by_name(make: Any, name: str) -> None:
    child = make()
    with pytest.raises(WorkerLost, match=rf"died of signal {signal.Signals[name].value} \({name}\)"):
        child.run(f"signal:{name}", None, nothing)
    with pytest.raises(WorkerLost):
        child.run("step", None, nothing)


@pytest.mark.parametrize("code", [0, 3])
def test_leaving_without_an_answer(make: Any, code: int) -> None:
    with pytest.raises(WorkerLost, match=f"ended with exit code {code}"):
        make().run(f"exit:{code}", None, nothing)


@pytest.mark.quiet
def test_timeout(make: Any) -> None:
    child, begun = make(), time.monotonic()
    with pytest.raises(WorkerLost, match=r"took longer than the 0.5 s of --step-timeout"):
        child.run("sleep:60", 0.5, nothing)
    assert time.monotonic() - begun < 60


def test_what_goes_on_though_it_was_killed_is_named(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child_module.Child, "left", "; process 7 goes on")
    with pytest.raises(WorkerLost, match=r"was ended; process 7 goes on; where it was is in worker\.log"):
        make().run("sleep:60", 0.5, nothing)


def test_progress_does_not_prolong_the_timeout(make: Any) -> None:
    child = make()
    child.run("step", None, nothing)
    with pytest.raises(WorkerLost, match="took longer"):
        child.run("progress:100000000", 0.5, nothing)


@pytest.mark.parametrize(
    "doing, patience, option",
    [
        ("calls", Patience(hang=0.5, setup=600), "--hang-timeout"),
        ("setup", Patience(600, setup=0.5), "--setup-timeout"),
    ],
)
def test_a_hang_is_told_with_where_it_was(
    make: Any, tmp_path: Path, doing: str, patience: Patience, option: str
) -> None:
    child = make(patience=patience)
    until((tmp_path / "up").exists, "it to begin")
    with pytest.raises(WorkerLost, match=rf"gave no sign of life for \d+ s and was ended \({option}\)") as lost:
        child.run(f"stops:{doing}", None, nothing)
    for expected in (lost.value.detail or "", (tmp_path / "worker.log").read_text()):
        assert "most recent call first" in expected and "worker_main.py" in expected
    assert not living(tmp_path)


def test_a_hang_of_more_loaders_than_cores_says_so(make: Any) -> None:
    child = make(patience=Patience(hang=0.5), config={"configurations": {"num_workers": 5000}})
    with pytest.raises(
        WorkerLost, match=r"hang-timeout\); num_workers is 5000, and there are \d+ cores: try --set num_workers="
    ):
        child.run("stops:calls", None, nothing)


def test_a_loader_that_works_on_a_batch_does_not_hang_and_one_that_sleeps_does(
    make: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a clock that only its signs move: how long they take to come is the machine's."""
    now, enough = [0.0], tmp_path / "enough"
    monkeypatch.setattr(silence, "time", SimpleNamespace(monotonic=lambda: now[0]))

    def heard(message: dict[str, Any]) -> None:
        now[0] += 0.25 if message.get("alive") in silence.OF_A_LOADER else 0.0
        if now[0] >= 4:
            enough.touch()

    child = make(patience=Patience(hang=2, setup=60))
    assert child.run(f"loading:{enough}", None, heard)["status"] == "done"
    with pytest.raises(
        WorkerLost, match=r"\(--hang-timeout\); its data loader gave no batch, and nothing computed for it"
    ):
        child.run("waiting:for ever", None, heard)


def test_a_job_that_was_suspended_does_not_hang(make: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Though its process is slower to speak again than this one is to look."""
    later, go_on = [0.0], tmp_path / "go on"
    for module in (worker, silence, pipe):
        monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: time.monotonic() + later[0]))

    monkeypatch.setattr(worker, "SILENCE", 0.1)

    def heard(message: dict[str, Any]) -> None:
        if not later[0]:
            later[0] = 3600.0
            threading.Timer(0.5, go_on.touch).start()

    child = make(patience=Patience(setup=PATIENCE_FOR_ONE))
    assert child.run(f"until:{go_on}", None, heard)["status"] == "done"


@pytest.mark.parametrize("sign", ["loading", "waiting"])
def test_a_loader_that_gives_no_batch_is_told_to_be_still_at_its_step(
    make: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sign: str
) -> None:
    monkeypatch.setattr(worker, "LOOK", 0.05)
    monkeypatch.setattr(worker, "SILENCE", 0.1)
    told: list[dict[str, Any]] = []

    def heard(message: dict[str, Any]) -> None:
        told.extend([message] if "silent" in message else [])
        if len(told) == 2:
            (tmp_path / "enough").touch()

    make().run(f"{sign}:{tmp_path / 'enough'}", None, heard)
    assert {message["silent"] for message in told} == {f"{sign}:{tmp_path / 'enough'}"}


@pytest.mark.quiet
def test_each_step_begins_with_what_may_take_long(make: Any) -> None:
    child = make(patience=Patience(hang=0.2, setup=60))
    assert child.run("progress:1", None, nothing)["status"] == "done"
    assert child.run("sleep:0.6", None, nothing)["status"] == "done"


@pytest.mark.parametrize("end", ["close", "kill"])
def test_grandchildren_end_too(make: Any, tmp_path: Path, end: str) -> None:
    child = make()
    child.run("grandchild", None, nothing)
    until(lambda: len(living(tmp_path)) == 2, "both")  # in the middle of its start it has no environment yet
    getattr(child, end)()
    assert gone(tmp_path)


@pytest.mark.parametrize("end", ["close", "kill", "die"])
def test_a_daemon_in_a_session_of_its_own_ends_too(make: Any, tmp_path: Path, end: str) -> None:
    child = make()
    child.run("daemon", None, nothing)
    until(lambda: names(tmp_path) > {"sleep"}, "its daemon")
    if end == "die":
        with pytest.raises(WorkerLost):
            child.run("signal:SIGSEGV", None, nothing)
    else:
        getattr(child, end)()
    assert gone(tmp_path)


def test_a_daemon_of_another_child_lives_on(make: Any, tmp_path: Path) -> None:
    one, other = make(), make()
    one.run("daemon", None, nothing)
    other.close()
    until(lambda: "sleep" in names(tmp_path), "the other's daemon")
    one.close()


def test_a_dead_leader_takes_its_group_along(make: Any, tmp_path: Path) -> None:
    child = make()
    child.run("grandchild", None, nothing)
    with pytest.raises(WorkerLost):
        child.run("signal:SIGSEGV", None, nothing)
    assert gone(tmp_path)


def test_one_that_does_not_leave_is_ended(make: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = child_module.wait_without_reaping
    monkeypatch.setattr(child_module, "wait_without_reaping", lambda pid, seconds: real(pid, min(seconds, 0.3)))
    child = make("Stays")
    child.run("step", None, nothing)
    child.close()
    assert gone(tmp_path)


def test_ending_twice_is_no_mistake(make: Any) -> None:
    child = make()
    child.close()
    child.kill()
    child.close()


def test_a_silent_child_is_reported_at_its_step(make: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(worker, "SILENCE", 0.1)
    messages: list[dict[str, Any]] = []

    def heard(message: dict[str, Any]) -> None:
        messages.append(message)
        if len(messages) == 2:
            (tmp_path / "heard").touch()

    step = f"until:{tmp_path / 'heard'}"
    assert make().run(step, 60, heard)["status"] == "done"
    assert len(messages) >= 2 and {message["silent"] for message in messages} == {step}
    assert messages[-1]["seconds"] > messages[0]["seconds"] > 0.05


@pytest.mark.parametrize("end", ["close", "kill"])
def test_what_it_leaves_in_its_temporary_directory_goes_with_it(make: Any, end: str) -> None:
    child = make()
    child.run("litter", None, nothing)
    folder = psutil.Process(child.child.pid).environ()["TMPDIR"]
    assert [path.name for path in Path(folder).iterdir()] == ["litter"]
    getattr(child, end)()
    assert not Path(folder).exists()


def test_output_goes_to_the_log(make: Any, tmp_path: Path) -> None:
    with pytest.raises(WorkerLost, match="worker.log"):
        make().run("exit:nonsense", None, nothing)
    assert "ValueError" in (tmp_path / "worker.log").read_text()


def test_endless_output_is_cut_in_the_middle(make: Any, tmp_path: Path) -> None:
    child = make()
    child.run("print:512", 60, nothing)
    child.close()
    content = (tmp_path / "worker.log").read_bytes()
    printed = 512 * 65536 + len("the beginning\nthe end\n")
    left_out = printed - capped_log.HEAD - capped_log.TAIL
    assert content.startswith(b"the beginning\n") and content.endswith(b"the end\n")
    assert f"[{left_out} bytes left out here".encode() in content
    assert len(content) < capped_log.HEAD + capped_log.TAIL + 100


def test_output_that_no_disk_takes_holds_nobody_up(tmp_path: Path) -> None:
    log = capped_log.CappedLog(Path("/dev/full"))
    with os.fdopen(log.descriptor, "wb") as stream:
        stream.write(bytes(10**6))
    log.finish()
    assert not log.is_alive()


def test_what_came_last_can_be_read_at_any_time(tmp_path: Path) -> None:
    log = capped_log.CappedLog(tmp_path / "log")
    with os.fdopen(log.descriptor, "wb", buffering=0) as stream:
        for size in (5, capped_log.HEAD, 3 * capped_log.TAIL):
            position = log.received
            for start in range(0, size, 4096):
                stream.write(b"." * min(4096, size - start))
            stream.write(b"end")
            until(lambda count=position + size + 3: log.received >= count, "what was written")
            content = log.since(position)
            assert content.endswith(b".end")
            assert size > capped_log.TAIL or len(content) == size + 3
            assert log.since(log.received - 3) == b"end"
    log.finish()


def test_the_real_child_ends_with_its_parent(tmp_path: Path) -> None:
    """The real worker_main: its command pipe closes, and the group ends, whatever runs in it."""
    from proofmark.inference.node import worker_main

    root = str(Path(worker_main.__file__).parents[2])
    read, write = os.pipe()
    code = (
        f"import os, sys; sys.argv[1:] = ['{write}']\n"
        "import proofmark.inference.node.worker_main as m, threading, subprocess, time\n"
        "subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        "subprocess.Popen(['sleep', '300'], start_new_session=True)\n"
        f"os.write({write}, b'up')\n"
        "m.main()\n"
    )
    environment = {**os.environ, "WORKER": str(tmp_path), "PYTHONPATH": root, MARK: str(tmp_path)}
    child = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, pass_fds=[write], start_new_session=True, env=environment
    )
    os.close(write)
    assert os.read(read, 2) == b"up"
    until(lambda: len(living(tmp_path)) == 3, "all three")  # one may be in the middle of its start
    assert child.stdin is not None
    child.stdin.close()
    threading.Thread(target=child.wait, daemon=True).start()
    assert gone(tmp_path)
    os.close(read)
