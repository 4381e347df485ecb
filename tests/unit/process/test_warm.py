"""The warm process: what it forks is as if it had been started anew, less the imports; and nothing of it is left."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from proofmark.process.child import Child
from proofmark.process.lifetime import MARK, WITHIN, Leader, end_group, end_marked, wait_without_reaping
from proofmark.process.warm import main
from proofmark.process.warm import modules as warm
from proofmark.process.warm.imports import SET_BY_LIBRARIES, surroundings
from tests.waiting import PATIENCE, until

CHILD = """
import gc, json, os, random, signal, sys, tempfile, threading, weakref
from proofmark.process.memory import heap_left_alone
with heap_left_alone():
    frozen = gc.get_freeze_count()
import numpy, threadpoolctl
facts = {
    "heap": [frozen, gc.get_freeze_count()],
    "at_exit": sum(each.atexit for each in list(weakref.finalize._registry)),
    "pid": os.getpid(), "parent": os.getppid(), "group": os.getpgid(0), "session": os.getsid(0),
    "arguments": sys.argv[1:-1], "loaded": getattr(sys.modules.get("large"), "made_by", None),
    "environment": dict(os.environ), "temporary": tempfile.gettempdir(), "path": sys.path,
    "chance": [random.random(), float(numpy.random.random())], "threads": threading.active_count(),
    "tasks": len(os.listdir("/proc/self/task")),
    "torch_threads": "torch" in sys.modules and sys.modules["torch"].get_num_threads(),
    "pools": "torch" in sys.modules and sorted({pool["num_threads"] for pool in threadpoolctl.threadpool_info()}),
    "module": sys.modules["__main__"].__spec__.name, "descriptors": len(os.listdir("/proc/self/fd")),
}
print("printed", flush=True)
os.write(int(sys.argv[-1]), json.dumps(facts).encode() + b"\\n")
for line in sys.stdin:
    what, _, how = line.strip().partition(" ")
    if what == "exit": sys.exit(int(how))
    if what == "signal": os.kill(os.getpid(), getattr(signal, how))
    if what == "raise": raise ValueError(how)
    if what == "daemon" and os.fork() == 0:
        os.setsid()
        signal.pause()
    if what == "heed":
        from proofmark.process.threads import heed_environment
        heed_environment()
        sys.modules["torch"].ones(1 << 20).exp()
        os.write(int(sys.argv[-1]), b'{"torch_threads": %d}\\n' % sys.modules["torch"].get_num_threads())
        continue
    if what == "compile":
        kept = sys.modules["torch._inductor.runtime.cache_dir_utils"]
        facts = {"places": [kept.cache_dir(), kept.triton_cache_dir(0)]}
        os.write(int(sys.argv[-1]), json.dumps(facts).encode() + b"\\n")
        continue
    os.write(int(sys.argv[-1]), b"{}\\n")
"""


class Started:
    """A child with its end of a pipe."""

    def __init__(self, directory: Path, mark: str, *imports: str, **environment: str) -> None:
        read, write = os.pipe()
        with (directory / "output").open("wb") as output:
            variables = {**os.environ, **environment, MARK: mark}
            self.child: Leader = warm.start_module("child", ["a", "b"], [write], output.fileno(), variables, imports)
        os.close(write)
        self._answers = os.fdopen(read, "rb")
        self.facts: dict[str, Any] = self.next()

    def next(self) -> dict[str, Any]:
        return dict(json.loads(self._answers.readline()))

    def tell(self, line: str) -> None:
        assert self.child.stdin is not None
        self.child.stdin.write(f"{line}\n".encode())
        self.child.stdin.flush()

    @property
    def is_forked(self) -> bool:
        return not isinstance(self.child, subprocess.Popen)

    def close(self) -> None:
        end_group(self.child)
        self._answers.close()
        if self.child.stdin:
            self.child.stdin.close()


@pytest.fixture
def start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Children of a warm process of the test's own."""
    if sys.platform != "linux":
        pytest.skip("there is no warm process")
    (tmp_path / "child.py").write_text(CHILD)
    (tmp_path / "large.py").write_text("import os\nmade_by = os.getpid()\n")
    (tmp_path / "broken.py").write_text("raise RuntimeError('broken')\n")
    (tmp_path / "threads.py").write_text(
        "import threading, time\nthreading.Thread(target=time.sleep, args=(60,), daemon=True).start()\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    monkeypatch.setattr(warm, "_warm", None)
    made: list[Started] = []

    def make(*imports: str, mark: str = "f" * 32, **environment: str) -> Started:
        made.append(Started(tmp_path, mark, *imports, **environment))
        return made[-1]

    yield make
    for each in made:
        each.close()
    if warm._warm:
        warm._warm.close()


def living(processes: list[psutil.Process]) -> list[psutil.Process]:
    found = []
    for each in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            found += [each] if each.is_running() and each.status() != psutil.STATUS_ZOMBIE else []
    return found


def warm_pid() -> int:
    assert warm._warm is not None
    return warm._warm.pid


def test_what_passes_by_name_is_imported_anew_for_only_where_it_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """A vendor's variables are known when it has introduced itself; torch is imported by then."""
    monkeypatch.setenv("PROOFMARK_PASSES", "")
    monkeypatch.setenv("ACME_THERE", "1")
    before = surroundings()
    monkeypatch.setenv("PROOFMARK_PASSES", "ACME_VISIBLE_DEVICES,BELL_*")
    assert surroundings() == before
    monkeypatch.setenv("PROOFMARK_PASSES", "ACME_*")
    assert surroundings() != before


def test_the_second_pays_for_no_import(start: Any) -> None:
    warm.warm_up(["large"], {})
    one, two = start(), start()
    assert one.is_forked and two.is_forked
    assert one.facts["loaded"] == two.facts["loaded"] == warm_pid()


def test_no_collection_walks_over_what_was_imported(start: Any) -> None:
    """Not even after a span that is free of them: each would copy what was shared, and take a third of a second."""
    warm.warm_up(["torch"], {})
    within, afterwards = start().facts["heap"]
    assert afterwards == pytest.approx(within, rel=0.01) and within > 50_000


def test_what_was_imported_is_not_taken_apart_by_each_fork(start: Any) -> None:
    warm.warm_up(["torch"], {})
    assert start().facts["at_exit"] == 0


def test_what_one_asks_for_is_there_for_the_next_too(start: Any) -> None:
    warm.warm_up([], {})
    assert [start().facts["loaded"], start("large").facts["loaded"], start().facts["loaded"]] == [
        None, warm_pid(), warm_pid(),
    ]  # fmt: skip


def test_it_is_as_if_it_had_been_started_anew(start: Any, tmp_path: Path) -> None:
    cold = start(TMPDIR=str(tmp_path), OWN="1").facts
    warm.warm_up(["large", "numpy"], {})
    one = start(TMPDIR=str(tmp_path), OWN="1").facts
    two = start(mark="e" * 32).facts
    alike = ("arguments", "environment", "path", "temporary", "threads", "module", "descriptors", "parent")
    assert {key: one[key] for key in alike} == {key: cold[key] for key in alike}
    assert one["parent"] == os.getpid() and one["temporary"] == str(tmp_path)
    assert one["pid"] == one["group"] == one["session"] != two["pid"]
    assert len({*one["chance"], *two["chance"], *cold["chance"]}) == 6
    assert "OWN" not in two["environment"] and "OWN" not in os.environ
    assert (tmp_path / "output").read_text() == "printed\n"


@pytest.mark.parametrize(
    "order, code", [("exit 0", 0), ("exit 7", 7), ("raise x", 1), ("signal SIGSEGV", -11), ("signal SIGKILL", -9)]
)
def test_its_end_is_its_parents_to_know(start: Any, tmp_path: Path, order: str, code: int) -> None:
    warm.warm_up([], {})
    started = start()
    started.tell(order)
    assert wait_without_reaping(started.child.pid, PATIENCE)
    assert started.is_forked and started.child.wait() == started.child.returncode == code
    assert ("ValueError: x" in (tmp_path / "output").read_text()) == (order == "raise x")


def test_what_it_forks_in_turn_is_known_by_its_mark(start: Any) -> None:
    warm.warm_up([], {})
    one, other = start(mark="1" * 32), start(mark="2" * 32)
    for each in (one, other):
        each.tell("daemon")
        each.next()
    daemons = [child for each in (one, other) for child in psutil.Process(each.child.pid).children()]
    assert len(daemons) == 2
    end_marked("1" * 32)
    until(lambda: living(daemons) == [daemons[1]], "its end")
    end_marked("2" * 32)


GRANDPARENT = """
import sys, time
from proofmark.process.child import Child
from proofmark.process.warm.modules import warm_up
if "within" in sys.argv:
    print("within", flush=True)
    time.sleep(600)
warm_up([], {})
child = Child("child_of_a_child", ["within"], log=__import__("pathlib").Path(sys.argv[1]))
print(child._process.__class__.__name__, child.pid, flush=True)
time.sleep(600)
"""


@pytest.mark.parametrize("is_warm", [True, False])
def test_a_childs_child_is_known_by_its_grandparents_mark(
    start: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_warm: bool
) -> None:
    """So is one that is forked by a process which was forked itself, or was not."""
    (tmp_path / "child_of_a_child.py").write_text(GRANDPARENT)
    monkeypatch.delenv(MARK, raising=False)
    if is_warm:
        warm.warm_up([], {})
    log, within = tmp_path / "log", tmp_path / "within"
    child = Child("child_of_a_child", [str(within)], log=log)
    try:
        until(lambda: log.exists() and log.read_text().endswith("\n"), "its child")
        kind, pid = log.read_text().split()
        assert kind == "Forked"
        grandchild = psutil.Process(int(pid))
        assert grandchild.environ()[WITHIN] == child.mark != grandchild.environ()[MARK]
    finally:
        child.kill()
    until(lambda: not living([grandchild]), "its end, which on a busy machine follows its kill later")


def test_where_it_has_died_another_way_is_found(start: Any) -> None:
    warm.warm_up(["large"], {})
    os.kill(warm_pid(), signal.SIGKILL)
    started = start()
    assert not started.is_forked and started.facts["loaded"] is None
    warm.warm_up(["large"], {})
    assert start().is_forked


@pytest.mark.parametrize("modules", [["threads"], []])
def test_with_a_thread_it_is_not_fit(start: Any, modules: list[str]) -> None:
    warm.warm_up(modules, {})
    assert not start("threads").is_forked


def test_a_thread_that_has_begun_to_end_is_none(tmp_path: Path) -> None:
    """Though the kernel lists it until it is cleared away, on a busy machine for some time."""
    for name, flags in (("1", 0x400000), ("2", 0x400044), ("3", 0x400000)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "stat").write_text(f"{name} (a name) R 1 1 1 0 -1 {flags} 0 0\n")
    (tmp_path / "4").mkdir()  # it has ended since
    assert main.threads(tmp_path) == 2 and main.threads() >= 1


def test_what_cannot_be_imported_is_left_to_who_needs_it(start: Any) -> None:
    warm.warm_up(["nonesuch", "broken", "large"], {})
    started = start("nonesuch.either")
    assert started.is_forked and started.facts["loaded"] == warm_pid()


def test_other_surroundings_want_another(start: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    warm.warm_up([], {})
    first = warm_pid()
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    assert not start().is_forked
    warm.warm_up([], {})
    assert warm_pid() != first and not psutil.pid_exists(first)
    assert start().facts["environment"]["OMP_NUM_THREADS"] == "7"


def test_what_a_library_sets_here_makes_no_difference(start: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in SET_BY_LIBRARIES:
        monkeypatch.delenv(name, raising=False)
    warm.warm_up(["large"], {})
    first = warm_pid()
    for name, value in SET_BY_LIBRARIES.items():  # as scikit-learn does
        monkeypatch.setenv(name, value)
    warm.warm_up(["large"], {})
    assert warm_pid() == first and start().is_forked
    monkeypatch.setenv("KMP_INIT_AT_FORK", "TRUE")
    warm.warm_up(["large"], {})
    assert warm_pid() != first


def test_it_is_not_where_torch_has_extensions(start: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warm, "installed", lambda group: [group] if group == "torch.backends" else [])
    warm.warm_up([], {})
    assert warm._warm is None and not start().is_forked


@pytest.mark.parametrize("change", [
    {"OMP_NUM_THREADS": "none"}, {"OMP_NUM_THREADS": "0"}, {"OMP_PROC_BIND": "close"}, {"PYTHONHASHSEED": "1"},
    {"TORCH_CPP_LOG_LEVEL": "INFO"}, {"LD_PRELOAD": ""}, {"ONEDNN_DEFAULT_FPMATH_MODE": "BF16"},
    {"TORCH_BLAS_PREFER_HIPBLASLT": "1"},
])  # fmt: skip
def test_what_only_a_new_process_can_take_on_gets_one(start: Any, change: dict[str, str]) -> None:
    warm.warm_up([], {})
    assert not start(**change).is_forked
    assert start(CUDA_VISIBLE_DEVICES="1", LOCAL_RANK="1").is_forked


def test_cores_that_an_import_left_alone_are_not_set(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sandbox may refuse that."""
    monkeypatch.setattr(os, "sched_setaffinity", lambda *given: pytest.fail("asked"))
    with main.cores_kept():
        pass


def test_where_compilers_keep_what_they_made_is_known_to_what_is_forked(start: Any, tmp_path: Path) -> None:
    places = {name: str(tmp_path / name) for name in ("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR")}
    warm.warm_up(["torch._inductor.runtime.cache_dir_utils"], dict.fromkeys(places, str(tmp_path / "elsewhere")))
    started = start(**places)
    assert started.is_forked
    started.tell("compile")
    assert started.next() == {"places": list(places.values())}


def test_threads_are_as_many_as_a_new_process_would_have(start: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    warm.warm_up(["numpy", "torch"], {})
    one = start(OMP_NUM_THREADS="1")
    assert one.is_forked and one.facts["environment"]["OMP_NUM_THREADS"] == "1"
    assert (one.facts["torch_threads"], one.facts["pools"]) == (1, [1])
    assert start(OMP_NUM_THREADS="2").facts["torch_threads"] == 2


def test_several_threads_are_not_started_before_a_wall_can_be_put_on(start: Any) -> None:
    warm.warm_up(["numpy", "torch"], {})
    three = start(OMP_NUM_THREADS="3")
    assert three.is_forked and three.facts["tasks"] == 1
    three.tell("heed")
    assert three.next()["torch_threads"] == 3


SPLIT = """
import os, sys
from proofmark.process.warm import modules as warm
warm.split_off(["large"])
read, write = os.pipe()
forked = warm.fork_module("child", [], (0, 1, 2, write), dict(os.environ))
print(os.getpid(), warm._warm.pid, forked is not None, flush=True)
print(os.read(read, 65536).decode(), flush=True)
forked.send_signal(9)
assert forked.wait(120) == forked.poll() == -9
failing = warm.fork_module("nonesuch", [], (0, 1, 2), dict(os.environ))
assert failing.wait(120) == 1
"""


def test_one_that_is_split_off_knows_what_its_process_had_imported(start: Any, tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}
    command = [sys.executable, "-c", SPLIT]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    assert ran.returncode == 0 and "No module named nonesuch" in ran.stderr, ran.stderr
    own, its, forked = next(line for line in ran.stdout.splitlines() if line != "printed").split()
    facts = json.loads(next(line for line in ran.stdout.splitlines() if line.startswith("{")))
    assert forked == "True" and facts["parent"] == facts["loaded"] == int(own) != int(its)
    assert not psutil.pid_exists(int(its))


def test_an_interrupted_start_leaves_it_unused(start: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "slow.py").write_text("import time\ntime.sleep(60)\n")
    warm.warm_up(["slow"], {})
    pid = warm_pid()

    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(json, "dumps", lambda orders: signal.raise_signal(signal.SIGALRM) or "")
    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        with pytest.raises(KeyboardInterrupt):
            start()
    finally:
        signal.signal(signal.SIGALRM, before)
    monkeypatch.undo()
    assert not psutil.pid_exists(pid)


SESSION = """
import os, signal, sys, time
from proofmark.process.warm import modules as warm
warm.warm_up([sys.argv[1]], {})
print(warm._warm.pid, flush=True)
if sys.argv[1] == "json":
    read, write = os.pipe()
    child = warm.start_module("child", [], [write], 2, dict(os.environ))
    os.read(read, 65536)
    print(child.pid, flush=True)
signal.pause()
"""


@pytest.mark.parametrize("module", ["json", "slow"])
def test_it_ends_with_its_session_even_while_it_imports(tmp_path: Path, module: str) -> None:
    importing = tmp_path / "importing"
    (tmp_path / "slow.py").write_text(f"import time\nopen({str(importing)!r}, 'x')\ntime.sleep(600)\n")
    (tmp_path / "child.py").write_text(CHILD)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}
    command = [sys.executable, "-c", SESSION, module]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment) as session:
        assert session.stdout is not None
        pids = [int(session.stdout.readline()) for _ in range(1 if module == "slow" else 2)]
        processes = [psutil.Process(pid) for pid in pids]
        until(lambda: module != "slow" or importing.exists(), "an import")
        session.kill()
    until(lambda: not living(processes), "their end")


def test_what_cases_will_need_is_imported_before_a_process_is_asked_for(start: Any, tmp_path: Path) -> None:
    noted = tmp_path / "imported"
    (tmp_path / "noted.py").write_text(
        f"import os\nopen({str(noted) + '.new'!r}, 'x').write(str(os.getpid()))\n"
        f"os.rename({str(noted) + '.new'!r}, {str(noted)!r})\n"
    )
    warm.warm_up([], {})
    warm.warm_up(["noted"], {})
    until(noted.exists, "its import")
    assert noted.read_text() == str(warm_pid())
    assert start().is_forked
