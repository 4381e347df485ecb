"""The speed gate's base, and what two sides must have in common."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import site
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack, nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import hypothesis
import psutil
import pytest

from fixtures.cases.suites import SUITES
from fixtures.gate import comparing
from fixtures.gate import revision as revision_module
from fixtures.gate.baseline import Subject, begun_comparison
from fixtures.gate.comparing import found_baseline
from fixtures.gate.recorded import RecordedBaseline
from fixtures.gate.revision import PASSED_ON, Revision
from fixtures.options.policy import POLICY
from fixtures.options.settings import SETTINGS
from fixtures.options.table import _ADDED
from proofmark.errors import UsageError
from proofmark.flagperf.host_file import HostFile, load_host_file
from proofmark.gate import sides as sides_module
from proofmark.gate.alike import other_settings, other_task, unlike, unsound
from proofmark.gate.base_tree import Repository, python_of
from proofmark.gate.decision import StoppingRule
from proofmark.gate.race import SideLost
from proofmark.gate.recorded import against
from proofmark.gate.session import PIPES, Session, Task, Tree
from proofmark.gate.sides import NO_RUN, BaseLacks, Sides
from proofmark.inference.outcome.figures import figures
from proofmark.inference.outcome.verdict import judge
from proofmark.process.lifetime import MARK, end_marked
from proofmark.record.compared import Compared, Outcome
from proofmark.record.integrity.own_key import KEY, OwnKey
from proofmark.record.parts import Identity, VerdictKind
from proofmark.record.policy import default_policy
from proofmark.record.provenance import Host, Known, Launched
from proofmark.training.outcome.record import TrainingRecord
from reports.content.variant import machine
from suites.inference import suite
from suites.training import runs
from suites.training import suite as training
from suites.training.test_glm import TestGlm as Glm
from tests.training_records import make_run, make_training
from tests.unit.records import measurement, record


def git(folder: Path, *arguments: str) -> str:
    command = [
        "git",
        "-c",
        "maintenance.auto=false",  # which git 2.47 does behind itself: it would have a lock, for a moment
        "-c",
        "user.name=a",
        "-c",
        "user.email=a@b",
        "-c",
        "protocol.file.allow=always",
        "-C",
        str(folder),
    ]
    return subprocess.run([*command, *arguments], check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def history(tmp_path: Path) -> Path:
    """A house in a folder of a repository, of two commits, with a file that is not committed."""
    top = tmp_path / "repository"
    house = top / "house"
    house.mkdir(parents=True)
    git(top, "init", "-q")
    for number in (1, 2):
        (house / "conftest.py").write_text(f"# {number}\n")
        (house / "run.sh").write_text("#!/bin/sh\n")
        (house / "run.sh").chmod(0o755)
        (house / "conftest.link").unlink(missing_ok=True)
        (house / "conftest.link").symlink_to("/nowhere")
        git(top, "add", "-A")
        git(top, "commit", "-qm", str(number))
    return house


def test_a_revision_is_checked_out_and_the_repository_is_as_before(history: Path, tmp_path: Path) -> None:
    (history / "conftest.py").write_text("# mine\n")
    metadata = history.parent / ".git"
    before = {path: path.read_bytes() for path in metadata.rglob("*") if path.is_file()}
    for folder in [metadata, *(path for path in metadata.rglob("*") if path.is_dir())]:
        folder.chmod(0o555)
    try:
        repository = Repository.of(history)
        assert repository.dirty
        house = repository.extract(repository.commit("HEAD~1"), tmp_path / "out")
    finally:
        for folder in [metadata, *(path for path in metadata.rglob("*") if path.is_dir())]:
            folder.chmod(0o755)
    assert (house / "conftest.py").read_text() == "# 1\n"
    assert (house / "run.sh").stat().st_mode & stat.S_IXUSR and (house / "conftest.link").is_symlink()
    assert (history / "conftest.py").read_text() == "# mine\n"
    assert {path: path.read_bytes() for path in metadata.rglob("*") if path.is_file()} == before


PLANTED = 'if "Id$" in "$Id$":\r\n    time.sleep(1)\n'
RULES = (
    "*.py ident",
    "*.py text eol=lf",
    "*.py text eol=crlf",
    "*.py filter=blank",
    "*.py working-tree-encoding=UTF-16",
)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("where", [".gitattributes", "house/.gitattributes", ".git/info/attributes"])
def test_no_attribute_of_the_head_rewrites_the_base(history: Path, tmp_path: Path, rule: str, where: str) -> None:
    """With `*.py ident` in the head's folder the base's engine, planted before, would sleep: the head is no slower."""
    engine, name = history / "engine.py", "a\nname \u00e9"
    engine.write_bytes(PLANTED.encode())
    (history / name).write_text(name)
    git(history, "add", "-A")
    git(history, "commit", "-qm", "planted")
    git(history, "config", "filter.blank.smudge", f"touch {tmp_path}/ran; echo pass")
    (history.parent / where).parent.mkdir(exist_ok=True)
    (history.parent / where).write_text(f"{rule}\n")
    repository = Repository.of(history)
    house = repository.extract(repository.commit("HEAD"), tmp_path / "out")
    assert (house / "engine.py").read_bytes() == PLANTED.encode()
    assert (house / name).read_text() == name
    assert not (tmp_path / "ran").exists()


def test_a_tree_of_many_files_is_written(history: Path, tmp_path: Path) -> None:
    """More names than a pipe holds, twice the same content, and none."""
    contents = {f"deep/{n % 7}/{n}": b"\0\n" * (n % 5) for n in range(3000)}
    contents["large"] = os.urandom(3 << 20)
    for path, content in contents.items():
        (history / path).parent.mkdir(parents=True, exist_ok=True)
        (history / path).write_bytes(content)
    git(history, "add", "-A")
    git(history, "commit", "-qm", "many")
    repository = Repository.of(history)
    house = repository.extract(repository.commit("HEAD"), tmp_path / "out")
    assert all((house / path).read_bytes() == content for path, content in contents.items())


def test_a_file_that_the_repository_has_lost_is_told(history: Path, tmp_path: Path) -> None:
    lost = git(history, "rev-parse", "HEAD:house/conftest.py")
    (history.parent / ".git/objects" / lost[:2] / lost[2:]).unlink()
    repository = Repository.of(history)
    with pytest.raises(
        UsageError, match=f"--compare: house/conftest.py: this repository lacks its content, {lost[:12]}"
    ):
        repository.extract(repository.commit("HEAD"), tmp_path / "out")


def test_an_edit_that_attributes_hide_is_told_as_not_committed(history: Path) -> None:
    (history / "run.sh").write_text("# $Id$\n")
    git(history, "commit", "-qam", "planted")
    (history.parent / ".git/info/attributes").write_text("* ident\n")
    (history / "run.sh").write_text("# $Id: half of it $\n")
    git(history, "add", "-A")
    assert git(history, "status", "--porcelain") == ""
    assert Repository.of(history).dirty


@pytest.mark.parametrize("revision", ["nowhere", "", "--upload-pack=touch x", "HEAD:house", "\x1b[2J"])
def test_a_revision_that_is_none_is_refused(history: Path, revision: str) -> None:
    with pytest.raises(UsageError, match="no such revision and no such file"):
        Repository.of(history).commit(revision)


def test_no_replaced_object_and_no_hook_of_the_configuration_is_between(history: Path, tmp_path: Path) -> None:
    git(history, "config", "core.fsmonitor", f"touch {tmp_path}/ran; false")
    git(history, "replace", "HEAD~1", "HEAD")
    (tmp_path / "ran").unlink(missing_ok=True)
    repository = Repository.of(history)
    assert not repository.dirty and not (tmp_path / "ran").exists()
    house = repository.extract(repository.commit("HEAD~1"), tmp_path / "out")
    assert (house / "conftest.py").read_text() == "# 1\n"


def test_a_shallow_clone_says_what_to_do(history: Path, tmp_path: Path) -> None:
    git(tmp_path, "clone", "-q", "--depth", "1", f"file://{history.parent}", "shallow")
    with pytest.raises(UsageError, match="this clone is shallow: git fetch --unshallow"):
        Repository.of(tmp_path / "shallow/house").commit("HEAD~1")


def test_a_tree_that_is_no_house_and_a_place_without_history_are_refused(history: Path, tmp_path: Path) -> None:
    git(history, "rm", "-q", "conftest.py")
    git(history, "commit", "-qm", "gone")
    repository = Repository.of(history)
    with pytest.raises(UsageError, match="not a Proofmark checkout"):
        repository.extract(repository.commit("HEAD"), tmp_path / "out")
    with pytest.raises(UsageError, match="not a git repository"):
        Repository.of(tmp_path)


def test_submodules_come_from_their_clones_or_are_refused(history: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    git(other, "init", "-q")
    (other / "part.txt").write_text("part\n")
    git(other, "add", "-A")
    git(other, "commit", "-qm", "part")
    git(history, "submodule", "add", "-q", str(other), "part")
    git(history, "commit", "-qm", "with a part")
    repository = Repository.of(history)
    house = repository.extract(repository.commit("HEAD"), tmp_path / "out")
    assert (house / "part/part.txt").read_text() == "part\n"
    git(tmp_path, "clone", "-q", str(history.parent), "without")
    bare = Repository.of(tmp_path / "without/house")
    with pytest.raises(UsageError, match="submodule part at [0-9a-f]{12} is not in this clone: git submodule update"):
        bare.extract(bare.commit("HEAD"), tmp_path / "other-out")
    git(history, "rm", "-q", "part")
    git(history, "commit", "-qm", "without it")
    with pytest.raises(UsageError, match="; one that the head has no more, clone where it was$"):
        repository.extract(repository.commit("HEAD^"), tmp_path / "earlier")
    git(tmp_path, "clone", "-q", str(other), str(history / "part"))
    house = repository.extract(repository.commit("HEAD^"), tmp_path / "again")
    assert (house / "part/part.txt").read_text() == "part\n"


def test_what_no_requirement_names_the_base_has_of_this_session(tmp_path: Path) -> None:
    """Else a vendor's own packages would be missing there, and torch's build another one."""
    base, head = tmp_path / "base", tmp_path / "head"
    for tree in (base, head):
        tree.mkdir()
        (tree / "requirements.txt").write_text(f"# {tree.name}\n")
    python = python_of(base, head, tmp_path / "environment", "")
    assert python == str(tmp_path / "environment/bin/python")
    own = Path(
        subprocess.check_output([python, "-c", "import site; print(*site.getsitepackages())"], text=True).strip()
    )
    (own / "optuna.py").touch()
    asked = "import hypothesis, optuna; print(hypothesis.__file__, optuna.__file__)"
    seen = subprocess.check_output([python, "-P", "-c", asked], text=True).split()
    assert seen == [hypothesis.__file__, str(own / "optuna.py")], "its own come first"


def test_a_base_sees_what_is_installed_editable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """pip leaves a .pth file there, and the package where it is worked at."""
    base, head, installed, own = (tmp_path / name for name in ("base", "head", "it's installed", "own"))
    for folder in (base, head, installed, own):
        folder.mkdir()
    for tree in (base, head):
        (tree / "requirements.txt").write_text(f"# {tree.name}\n")
    (installed / "__editable__.acme.pth").write_text(f"{own}\n")
    (own / "acme_runtime.py").touch()
    monkeypatch.setattr(site, "getsitepackages", lambda: [str(installed)])
    python = python_of(base, head, tmp_path / "environment", "")
    subprocess.run([python, "-P", "-c", "import acme_runtime"], check=True)


@pytest.mark.parametrize(
    "line", ["new-package", "New_package >= 2", "new.package==3; python_version > '3'", "./new.whl", "-e ./new"]
)
def test_a_base_does_not_see_what_only_the_head_requires(tmp_path: Path, line: str) -> None:
    base, head = tmp_path / "base", tmp_path / "head"
    for tree in (base, head):
        tree.mkdir()
        (tree / "requirements.txt").write_text("# new-package\n-c constraints.txt\n")
    (head / "constraints.txt").write_text(f"{line}\n")
    (base / "constraints.txt").write_text("\n")
    python = python_of(base, head, tmp_path / "environment", "")
    assert subprocess.run([python, "-P", "-c", "import hypothesis"], capture_output=True).returncode == 1


def test_an_environment_of_its_own_where_requirements_differ(tmp_path: Path) -> None:
    base, head = tmp_path / "base", tmp_path / "head"
    for tree in (base, head):
        tree.mkdir()
        (tree / "requirements.txt").write_text("# nothing\n")
    assert python_of(base, head, tmp_path / "environment", "") == sys.executable
    (base / "requirements.txt").write_text("./no-such-package\n")
    with pytest.raises(UsageError, match="what the base requires can't be installed: ERROR"):
        python_of(base, head, tmp_path / "environment", "")


BUILDS = """
import contextlib, os, pathlib, time
def build_wheel(*_, **__):
    pathlib.Path("building").touch()
    for _ in range(60_000):
        with contextlib.suppress(OSError):
            os.makedirs({again!r}, exist_ok=True)
        time.sleep(0.001)
"""
"""A package that takes a minute to build, and writes."""

LEADS = """
import sys
from pathlib import Path
from proofmark.gate.base_tree import python_of
from proofmark.gate.keeper import kept_folder
with kept_folder() as kept:
    Path(sys.argv[3]).write_text(f"{kept.folder} {kept.mark}")
    backend = Path(sys.argv[1], "slow/slow.py")
    backend.write_text(backend.read_text().format(again=str(kept.folder / "environment/again")))
    python_of(Path(sys.argv[1]), Path(sys.argv[2]), kept.folder / "environment", kept.mark)
"""


@pytest.mark.parametrize("ending", [signal.SIGKILL, signal.SIGINT])
def test_an_environment_that_is_being_made_goes_with_a_session_that_is_ended(
    tmp_path: Path, ending: signal.Signals
) -> None:
    base, head, temporary = (tmp_path / name for name in ("base", "head", "temporary"))
    for folder in (base / "slow", head, temporary):
        folder.mkdir(parents=True)
    (base / "requirements.txt").write_text("./slow\n")
    (base / "slow/slow.py").write_text(BUILDS)
    project = '[project]\nname = "slow"\nversion = "1"\n'
    backend = '[build-system]\nrequires = []\nbuild-backend = "slow"\nbackend-path = ["."]\n'
    (base / "slow/pyproject.toml").write_text(project + backend)
    command = [sys.executable, "-c", LEADS, str(base), str(head), str(tmp_path / "kept")]
    environment = {**os.environ, "TMPDIR": str(temporary), "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL) as leads:
        assert became(lambda: (base / "slow/building").exists() or leads.poll() is not None) and leads.poll() is None
        leads.send_signal(ending)
    folder, mark = (tmp_path / "kept").read_text().split()
    try:
        assert became(lambda: not list(temporary.iterdir()) and not carrying(mark), within=120)
        assert not Path(folder).exists()
    finally:
        end_marked(mark)


def became(true: Callable[[], bool], within: float = 300.0) -> bool:
    deadline = time.monotonic() + within
    while not true() and time.monotonic() < deadline:
        time.sleep(0.02)
    return true()


def carrying(mark: str) -> list[psutil.Process]:
    """Processes with a mark."""

    def carries(process: psutil.Process) -> bool:
        try:
            return process.environ().get(MARK) == mark
        except psutil.Error:
            return False

    return [*filter(carries, psutil.process_iter())]


def task(**changes: Any) -> Task:
    base: dict[str, Any] = {"vendor": "fake", "profile": "embedded", "precision": "fp32", "config_hash": "0"}
    base |= {"config": {"target": 0.9, "batch_size": 16}, "dataset": {"sha256": "a" * 64}, "verdict": {"kind": "PASS"}}
    return Task.model_validate({**base, **changes})


@pytest.mark.parametrize(
    "changes, expected",
    [
        ({"config": {"target": 0.8, "batch_size": 16}}, "target: 0.9 there, 0.8 here"),
        ({"config": {"target": 0.9, "extra": 1, "batch_size": 16}}, "extra: null there, 1 here"),
        ({"dataset": {"sha256": "b" * 64}}, 'data set: "aaaaaaaaaaaa" there, "bbbbbbbbbbbb" here'),
        ({"profile": "standard"}, 'profile: "embedded" there, "standard" here'),
    ],
)
def test_different_tasks_are_not_compared(changes: dict[str, Any], expected: str) -> None:
    assert other_task(task(), task(**changes), {"batch_size"}) == [expected]


@pytest.mark.parametrize(
    "parameters, free, expected",
    [
        (("target",), {"target", "batch_size", "new"}, ["target: 0.9 there, 0.8 here"]),
        (("target",), (), ["target: 0.9 there, 0.8 here", "new: null there, 1 here"]),
        ((), {"new"}, []),
        (None, {"target", "new"}, ["batch_size: 16 there, 64 here"]),
    ],
)
def test_the_base_says_what_of_it_is_the_task(parameters: Any, free: Any, expected: list[str]) -> None:
    """Whatever the head's files have made of its parameters; a key that is new is what they say."""
    head = task(config={"target": 0.8, "batch_size": 64, "new": 1})
    assert other_task(task(parameters=parameters), head, free) == expected


def test_what_a_vendor_may_change_is_told() -> None:
    faster = task(config={"target": 0.9, "batch_size": 64}, precision="fp16", versions={"torch": "3"})
    assert other_task(task(), faster, {"batch_size"}) == []
    found = other_settings(task(), faster, {"batch_size"})
    assert found == [
        "batch_size: 16 there, 64 here",
        'precision: "fp32" there, "fp16" here',
        'torch: null there, "3" here',
    ]


def test_other_files_of_the_case_are_told_where_the_task_is_the_same() -> None:
    here, there = task(case_hash="a" * 64), task(case_hash="b" * 64)
    assert other_task(there, here, ()) == []
    assert other_settings(there, here, ()) == ["the case's files differ; the task that follows from them is the same"]
    assert other_settings(here, here, ()) == other_settings(task(), here, ()) == other_settings(here, task(), ()) == []
    whole = judged(case_hash="a" * 64)
    assert Task.model_validate(json.loads(whole.text())).case_hash == "a" * 64


@pytest.mark.parametrize("config_hash, expected", [("0" * 64, 1), ("1" * 64, 0)])
def test_other_files_of_a_records_case_are_told_where_its_task_is_the_same(config_hash: str, expected: int) -> None:
    then, now = judged(case_hash="a" * 64, config_hash=config_hash), judged(case_hash="b" * 64, config_hash="0" * 64)
    found = object.__new__(RecordedBaseline)
    vars(found).update(_shown="old", _unlike=True, _records={then.run_name: (then, "0" * 64)})
    compared = found.compare(Subject(then.run_name, now, suite, "case.py", (), lambda line: None), StoppingRule(), 0.0)
    lines = [line for line in compared.differences if line.startswith("the case's files differ")]
    assert len(lines) == expected and ("the task itself" in compared.differences) == (not expected)


def test_a_side_that_fails_otherwise_has_no_speed() -> None:
    assert unsound("base", task()) == []
    assert unsound("base", task(verdict={"kind": "AMBIGUOUS"})) == []
    assert unsound("base", task(verdict=None)) == ["the base was not judged"]
    wrong = task(verdict={"kind": "FAIL_ACCURACY", "reasons": ["too low"]})
    assert unsound("head", wrong) == ["the head has no speed: FAIL_ACCURACY: too low"]
    (told,) = unsound("base", wrong)
    assert told.startswith("the base has no speed: FAIL_ACCURACY: too low; ") and "without --compare" in told
    assert unsound("head", task(verdict={"kind": "SUPERB"})) == ["the head has no speed: SUPERB: "]


def judged(core: float = 1.0, **changes: Any) -> Any:
    """A record whose rounds take so many seconds of compute."""
    timed = measurement(*[{"core_seconds": core, "whole_seconds": core + 0.5}] * 3)
    rate = {"value": 100 / core, "min": 99 / core, "max": 101 / core, "stdev": 0.1 / core}
    whole = {"value": 100 / (core + 0.5), "min": 1.0, "max": 999.0, "stdev": 0.1}
    timed = timed.model_validate({**timed.model_dump(), "core": rate, "whole": whole})
    made = record(engine=timed, **changes)
    return made.model_copy(update={"verdict": judge(made)}).with_figures(figures(made))


def begun() -> Compared:
    return Compared(
        baseline="old.json", identity="0" * 64, way="recorded", width=0.02, error=0.01, metrics_of_session=2
    )


def test_a_record_is_held_against_with_what_sessions_may_differ_by() -> None:
    def core(seconds: float) -> Outcome:
        return against(begun(), judged(), judged(seconds), suite, StoppingRule()).ratios[0].outcome

    assert core(1.2) is Outcome.REGRESSION
    assert core(0.8) is Outcome.IMPROVEMENT
    assert core(1.0) is core(1.05) is core(0.96) is Outcome.AMBIGUOUS


@pytest.mark.parametrize(
    "base, head", [((1e300, 0.1), (1e-30, 0.1)), ((1.0, 900.0), (1.0, 0.1)), ((1e-300, 1e300),) * 2]
)
def test_figures_of_a_damaged_record_are_no_end_of_the_comparison(base: Any, head: Any) -> None:
    def damaged(value: float, spread: float) -> Any:
        whole = judged()
        figures = (figure.model_copy(update={"value": value, "spread": spread}) for figure in whole.figures)
        return whole.with_figures(list(figures))

    found = against(begun(), damaged(*base), damaged(*head), suite, StoppingRule())
    assert len(found.ratios) == 2 and not found.problems


def test_a_metric_that_a_record_lacks_is_an_error() -> None:
    lacking = judged()
    lacking = lacking.with_figures([figure for figure in lacking.figures if figure.key != "whole"])
    found = against(begun(), lacking, judged(), suite, StoppingRule())
    assert found.problems == ("whole is missing on a side",)
    assert judge(judged().model_copy(update={"compared": found})).kind is VerdictKind.ERROR
    failed = judged(dishonest=("it cheats",))
    assert against(begun(), failed, judged(), suite, StoppingRule()).problems == ("the base has no speed",)


def test_a_record_of_a_disturbed_machine_is_no_baseline() -> None:
    """What is as slow as that would pass for an improvement beside it, slower than before as it may be."""
    scattered = judged(1.3, config={"max_noise": 0.0001})
    assert scattered.verdict and scattered.verdict.kind is VerdictKind.AMBIGUOUS
    found = against(begun(), scattered, judged(1.15), suite, StoppingRule())
    assert not found.ratios and "the base is AMBIGUOUS by itself: " in found.problems[0]
    beside = judged().model_copy(update={"compared": against(begun(), judged(), judged(1.05), suite, StoppingRule())})
    unsure = beside.model_copy(update={"verdict": judge(beside)})
    assert unsure.verdict.kind is VerdictKind.AMBIGUOUS, "by its own comparison alone"
    assert against(begun(), unsure, judged(), suite, StoppingRule()).ratios


def test_an_unlike_record_is_told_by_what_differs() -> None:
    here = judged()
    assert unlike(here, judged()) == []
    other = here.model_copy(update={"chip": here.chip.model_copy(update={"name": "another"}), "precision": "fp16"})
    other = other.model_copy(update={"dataset": Identity(name="x", sha256="f" * 64), "config_hash": "1"})
    found = unlike(other, here)
    assert [line.partition(":")[0] for line in found] == ["precision", "chip", "data set", "the task itself"]
    newer = here.model_copy(update={"versions": {**here.versions, "torch": "99", "proofmark": "99"}})
    newer = newer.model_copy(update={"weights": Identity(name="x", sha256="f" * 64)})
    assert [line.partition(":")[0] for line in unlike(newer, here)] == ["weights", "torch"]
    usual, served = (judged(config={**here.config, "scenario": each}) for each in ("throughput", "latency"))
    assert unlike(usual, served) == ['scenario: "throughput" there, "latency" here'], "once, and as it was set"


def test_a_training_on_other_hosts_is_unlike_whichever_of_them_is_another() -> None:
    first = make_training().host
    assert first is not None

    def trained(*others: Host) -> TrainingRecord:
        launched = [Launched(name=host.name, skew=0.0, round_trip=0.0, host=host) for host in (first, *others)]
        return make_training(make_run(launched=launched))

    twin = first.model_copy(update={"name": "twin"})
    newer = first.model_copy(update={"name": "newer", "driver": Known(value="2"), "processor": "q"})
    assert unlike(make_training(), trained(twin)) == []
    assert machine(make_training()) == machine(trained(twin)) != machine(trained(newer))
    found = ["processor: p there, p; q here", "driver: null there, unknown; 2 here"]
    assert [line.replace('"', "") for line in unlike(trained(twin), trained(newer))] == found
    many = [trained(*[twin] * 30, newer, other) for other in (twin, newer)]
    found = ["processor: 31 x p; q; p there, 31 x p; 2 x q here"]
    found += ["driver: 31 x unknown; 2; unknown there, 31 x unknown; 2 x 2 here"]
    assert [line.replace('"', "") for line in unlike(*many)] == found, "not cut short where they begin to differ"


def test_beside_a_record_nobody_knows_how_often_there_is_a_false_alarm() -> None:
    assert begun_comparison("old", None, "recorded", StoppingRule()).error is None
    assert begun_comparison("old", None, "rounds", StoppingRule()).error == 0.01


@pytest.mark.parametrize("short, needed", [(True, StoppingRule().loadings), (False, 1)])
def test_how_many_loadings_are_needed_is_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, short: bool, needed: int
) -> None:
    sides = SimpleNamespace(short_rounds=short, differences=(), loaded=lambda: nullcontext((None, None)))
    monkeypatch.setattr(revision_module, "Sides", lambda **given: sides)
    tree = Tree("base", tmp_path, sys.executable, tmp_path)
    whole = {"_name": "main", "_commit": "0" * 40, "_base": tree, "_head": tree, "_house": tmp_path, "_given": []}
    whole |= {"_host_file": HostFile(), "_of_suites": set()}
    revision = object.__new__(Revision)
    vars(revision).update(whole, _folder=tmp_path, _cache=tmp_path, _vendor="acme", differences=[])
    (tmp_path / "case.py").touch()
    subject = Subject("inference/case", judged(), suite, "case.py", (), lambda line: None)
    found = revision.compare(subject, StoppingRule(), 0.0)
    assert (found.loadings_needed, found.way) == (needed, "rounds" if short else "sessions")


SIDE = f"""
import json, os, sys
hears, tells = map(int, os.environ["{PIPES}"].split())
def say(**answer): os.write(tells, (json.dumps(answer) + chr(10)).encode())
commands = os.fdopen(hears)
"""
READY = "say(ready=dict(vendor='v', profile='p', precision='fp32', config={}, config_hash='0'))\n"


def session(tmp_path: Path, program: str) -> Session:
    tree = Tree("base", tmp_path, sys.executable, tmp_path)
    return Session(tree, [sys.executable, "-c", SIDE + program], tree.environment(tmp_path), "a/run", rounds=True)


def test_a_side_answers_rounds_until_it_is_ended(tmp_path: Path) -> None:
    side = session(tmp_path, READY + "for _ in commands: say(rates={'core': 2.0})")
    assert side.ready().vendor == "v"
    assert [side.rates(), side.rates()] == [{"core": 2.0}] * 2
    side.end()
    side.end()


@pytest.mark.parametrize(
    "program, expected",
    [
        ("print('ERROR: no device'); sys.exit(4)", "the base's session ended: ERROR: no device"),
        (READY + "commands.readline(); os.kill(os.getpid(), 9)", "the base's session ended: without a word"),
        (READY + "commands.readline(); say(lost='its device is gone')", "the base: its device is gone"),
        (READY + "commands.readline(); os.write(tells, b'rubbish' + b'\\n')", "an invalid answer: not JSON"),
        (READY + "commands.readline(); say(rates={'core': -1})", "an invalid answer: rates.core"),
        (READY + "commands.readline(); say(rates={'core': 'fast'})", "an invalid answer: rates.core"),
        ("say(rates={'core': 1})", "answered out of turn"),
        ("say(ready={'vendor': 3})", "an invalid answer: ready.vendor"),
    ],
)
def test_a_side_that_is_lost_or_says_rubbish_is_told_of(tmp_path: Path, program: str, expected: str) -> None:
    side = session(tmp_path, program)
    with pytest.raises(SideLost, match=expected):
        assert side.ready() and side.rates()
    side.end()


def test_a_side_that_hangs_is_lost_when_its_time_is_over(tmp_path: Path) -> None:
    tree = Tree("base", tmp_path, sys.executable, tmp_path)

    def hanging() -> Session:
        command = [
            sys.executable,
            "-c",
            SIDE + "os.write(tells, b'half'); print('loading', flush=True); sys.stdin = commands.read()",
        ]
        return Session(tree, command, tree.environment(tmp_path), "a/run", rounds=True, seconds=0.5)

    for ask in (Session.ready, Session.wait):
        side = hanging()
        with pytest.raises(SideLost, match="the base's session hangs: not over after 0 s"):
            ask(side)
        side.end()


def test_only_the_last_of_what_a_side_printed_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("proofmark.gate.session.LONGEST", 64)
    side = session(tmp_path, "print('ERROR: an early one'); print('x' * 60); print('the end'); sys.exit(4)")
    assert side.wait() == "the end"
    side.end()


def option(path: Path, **more: Any) -> Any:
    given = {"compare": str(path), "compare_unlike": False, "gate_budget": "10m", "gate_width": None} | more
    options = SimpleNamespace(**given)
    return SimpleNamespace(option=options, stash={}, invocation_params=SimpleNamespace(dir=path.parent))


def test_a_folder_with_two_records_of_a_run_is_refused(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / "old" / name).mkdir(parents=True)
        (tmp_path / "old" / name / "record.json").write_text(judged().text())
    config = option(tmp_path / "old")
    config.stash[SUITES] = {"inference": suite}
    with pytest.raises(UsageError, match=r"old: \S*one/record.json and \S*two/record.json are both of inference/"):
        RecordedBaseline(tmp_path / "old", "old", config)


@pytest.mark.parametrize("named", [".", "inference/net", "inference/net/record.json"])
def test_what_a_vendor_leaves_in_a_runs_folder_is_no_baseline(tmp_path: Path, named: str) -> None:
    """A session with a run's record, one of the same run below it, and one of a run that came to none itself."""
    run = judged().run_name
    laid = {run: judged(), f"{run}/engine-1/{run}": judged(9.0), f"{run}-2/engine-1": judged(9.0)}
    for folder, made in laid.items():
        (tmp_path / "old" / folder).mkdir(parents=True)
        (tmp_path / "old" / folder / "record.json").write_text(made.text())
    (tmp_path / "old" / run / "engine-1/record.json").write_text("rubbish")
    (tmp_path / "old/manifest.json").touch()
    config = option(tmp_path / "old")
    config.stash[SUITES] = {"inference": suite}
    found = RecordedBaseline(tmp_path / "old" / named.replace("inference/net", run), "old", config)
    own = (tmp_path / "old" / run / "record.json").read_bytes()
    assert [digest for _, digest in found._records.values()] == [hashlib.sha256(own).hexdigest()]


@pytest.mark.parametrize(
    "given", [{"gate_width": 0.03}, {"gate_budget": "5m"}, {"compare_unlike": True}], ids=lambda given: str(*given)
)
def test_what_bounds_a_comparison_needs_one(given: dict[str, Any], tmp_path: Path) -> None:
    config = option(tmp_path, compare=None, **given)
    with pytest.raises(pytest.UsageError, match=f"--{next(iter(given)).replace('_', '-')} needs --compare"):
        comparing.pytest_configure(config)


def test_a_revision_is_like_the_head_in_all_but_its_files(tmp_path: Path) -> None:
    config = option(tmp_path / "HEAD", compare_unlike=True)
    config.stash[SETTINGS] = SimpleNamespace(here=True, engine_user=None)
    with ExitStack() as stack, pytest.raises(UsageError, match="remove --compare-unlike"):
        found_baseline(config, stack)


def test_a_revision_is_not_compared_with_by_several_workers(tmp_path: Path) -> None:
    with pytest.raises(pytest.UsageError, match="--compare with a revision .* remove -n"):
        comparing.pytest_configure(option(tmp_path / "HEAD", dist="load"))
    comparing.pytest_configure(option(tmp_path, dist="load"))


@pytest.mark.parametrize("asked, own, width", [(None, None, 0.02), (None, 0.05, 0.05), (0.03, 0.05, 0.03)])
def test_a_race_is_run_at_the_width_that_the_verdict_will_ask_for(
    tmp_path: Path, asked: float | None, own: float | None, width: float
) -> None:
    config = option(tmp_path)
    config.option.gate_width = asked
    config.stash[POLICY] = default_policy().model_copy(update={"gate_width": own})
    comparing.pytest_configure(config)
    assert comparing._width(config) == width
    assert asked is None or config.stash[POLICY].gate_width == width, "by which the record is judged"


def test_weights_for_the_base_are_copied_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "weights").mkdir()
    (tmp_path / "weights/a.pt").write_text("a")
    OwnKey(tmp_path)
    revision = Revision.__new__(Revision)
    revision._cache = tmp_path

    def interrupted(source: Path, target: Path) -> None:
        target.mkdir(parents=True)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("fixtures.gate.revision.shutil.copytree", interrupted)
        with pytest.raises(KeyboardInterrupt):
            revision._base_cache()
    assert {path.name for path in tmp_path.iterdir()} == {"weights", KEY}
    assert (revision._base_cache() / "weights/a.pt").read_text() == "a"
    assert {path.name for path in tmp_path.iterdir()} == {"weights", "base", KEY}
    assert (tmp_path / "base" / KEY).read_bytes() == (tmp_path / KEY).read_bytes(), "else they would be trained again"


def test_a_side_that_cannot_be_started_is_told_of(tmp_path: Path) -> None:
    tree = Tree("base", tmp_path, "/no/python", tmp_path)
    with pytest.raises(SideLost, match="the base's session cannot be started: No such file"):
        Session(tree, ["/no/python"], {}, "a/run", rounds=True)


def test_a_side_finds_the_modules_of_its_own_tree_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    house = tmp_path / "house"
    monkeypatch.setenv("PYTHONPATH", f"{house}:{house}/more:/elsewhere")
    monkeypatch.setenv("PYTEST_ADDOPTS", "--compare main")
    environment = Tree("base", tmp_path / "base", sys.executable, tmp_path).environment(house)
    assert environment["PYTHONPATH"] == f"{tmp_path}/base:/elsewhere"
    assert "PYTEST_ADDOPTS" not in environment


def test_both_sides_are_looked_at_before_any_rate_counts(tmp_path: Path) -> None:
    base, head = (Tree(name, tmp_path, sys.executable, tmp_path) for name in ("base", "head"))

    def looked(**changes: Any) -> tuple[str, ...]:
        sides = Sides(
            trees=(base, head),
            house=tmp_path,
            run="a/run",
            module=Path("test_a.py"),
            options=[],
            scale="",
            short_rounds=False,
            configurations={"batch_size"},
            folder=tmp_path,
            base_cache=tmp_path,
            tell=lambda _: None,
            coin=lambda: True,
        )
        sides.look_at(base, task())
        sides.look_at(head, task(**changes))
        return sides.differences

    assert looked(precision="fp16") == ('precision: "fp32" there, "fp16" here',)
    with pytest.raises(SideLost, match="base and head are different tasks: target: 0.9 there, 0.8 here"):
        looked(config={"target": 0.8, "batch_size": 16})
    with pytest.raises(SideLost, match="the head has no speed: FAIL_HONESTY"):
        looked(verdict={"kind": "FAIL_HONESTY"})
    with pytest.raises(SideLost, match="the head has no speed: UNSUPPORTED"):
        looked(verdict={"kind": "UNSUPPORTED"})


def test_of_a_case_that_the_base_does_not_support_nothing_is_compared(
    history: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    says = {"kind": "UNSUPPORTED", "reasons": ["no fp16 here"]}
    ready = READY.replace("config_hash", f"verdict={says}, config_hash")
    program = [sys.executable, "-c", SIDE + ready + "commands.read()"]
    monkeypatch.setattr(Tree, "command", lambda *_: program)
    monkeypatch.setattr(revision_module, "_coin", lambda: True)
    (history / "fixtures/gate").mkdir(parents=True)
    for name in ("fixtures/gate/side.py", "test_a.py"):
        (history / name).touch()
    git(history, "add", "-A")
    git(history, "commit", "-qm", "a case")
    folder = tmp_path / "base"
    revision = Revision.__new__(Revision)
    revision.__dict__ |= {"_name": "HEAD", "_commit": "0" * 40, "_house": history, "_folder": folder, "differences": []}
    revision.__dict__ |= {
        "_base": Tree("base", history, sys.executable, tmp_path),
        "_given": [],
        "_of_suites": set(),
        "_host_file": HostFile(),
        "_cache": tmp_path,
        "_vendor": "acme",
    }
    revision.__dict__ |= {"_head": Tree("head", history, sys.executable, tmp_path)}
    subject = Subject("inference/net", judged(), suite, "test_a.py", (), lambda _: None)
    compared = revision.compare(subject, StoppingRule(), 10.0)
    assert compared.new == "the base does not support it: no fp16 here; its speed is compared with nothing"
    assert not compared.ratios and not compared.problems
    beside = judged().model_copy(update={"compared": compared})
    assert judge(beside).kind is VerdictKind.PASS
    assert compared.new in [figure.value for figure in figures(beside)]


def sides_in(folder: Path, trees: tuple[Tree, Tree], **changes: Any) -> Sides:
    """Of short rounds, of which nothing is started yet."""
    made: dict[str, Any] = {
        "trees": trees,
        "house": folder,
        "run": "a/run",
        "module": Path("test_a.py"),
        "options": [],
        "scale": "",
        "short_rounds": True,
        "configurations": (),
        "folder": folder,
        "base_cache": folder,
        "tell": lambda _: None,
        "coin": lambda: True,
    }
    return Sides(**{**made, **changes})


def test_a_coin_says_which_side_is_loaded_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trees = (Tree("base", tmp_path, "python", tmp_path), Tree("head", tmp_path, "python", tmp_path))
    for base_first in (True, False):
        started: list[str] = []
        sides = sides_in(tmp_path, trees, coin=lambda first=base_first: first)

        def start(tree: Tree, started: list[str] = started) -> tuple[Any, Path]:
            started.append(tree.name)
            return SimpleNamespace(name=tree.name, ready=task, end=lambda: None), tmp_path

        monkeypatch.setattr(sides, "start", start)
        with sides.loaded() as loaded:
            assert [side.name for side in loaded] == ["base", "head"]  # type: ignore[attr-defined]
        assert started == (["base", "head"] if base_first else ["head", "base"])


def test_a_whole_run_that_ends_otherwise_than_its_record_says_has_no_speed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A log that somebody else has written is in the exit code alone."""
    record = tmp_path / "record.json"
    record.write_text(json.dumps({**task().model_dump(), "figures": [{"key": "whole", "value": 2.0}]}))
    trees = (Tree("base", tmp_path, "python", tmp_path), Tree("head", tmp_path, "python", tmp_path))
    sides = sides_in(tmp_path, trees, short_rounds=False)
    ended = SimpleNamespace(wait=lambda: "who has altered it?", end=lambda: None, exit_code=0)
    monkeypatch.setattr(sides, "start", lambda tree: (ended, record))
    with sides.loaded() as (base, head):
        assert base.rates() == head.rates() == {"whole": 2.0}
        ended.exit_code = 17
        with pytest.raises(SideLost, match="ended with exit code 17, but its record says PASS: who has altered it"):
            head.rates()


@pytest.mark.parametrize("blocks, right", [((), 0), (("AMBIGUOUS",), 11)])
def test_a_whole_runs_exit_code_is_that_of_its_policy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, blocks: tuple[str, ...], right: int
) -> None:
    record = tmp_path / "record.json"
    ambiguous = task(verdict={"kind": "AMBIGUOUS", "reasons": ["it scattered"]})
    policy = {"policy": {"blocks": blocks, "of another version": 1}}
    record.write_text(json.dumps({**ambiguous.model_dump(), **policy, "figures": [{"key": "whole", "value": 2.0}]}))
    tree = Tree("head", tmp_path, "python", tmp_path)
    sides = sides_in(tmp_path, (tree, tree), short_rounds=False)
    ended = SimpleNamespace(wait=lambda: "AMBIGUOUS", end=lambda: None, exit_code=right)
    monkeypatch.setattr(sides, "start", lambda tree: (ended, record))
    with sides.loaded() as (_, head):
        assert head.rates() == {"whole": 2.0}
        for wrong in {0, 11, 17} - {right}:
            ended.exit_code = wrong
            with pytest.raises(SideLost, match=f"ended with exit code {wrong}, but its record says AMBIGUOUS"):
                head.rates()


def test_a_scale_that_the_base_lacks_is_no_failure_of_its(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trees = (Tree("base", tmp_path, "python", tmp_path), Tree("head", tmp_path, "python", tmp_path))
    sides = sides_in(tmp_path, trees, short_rounds=False)
    ended = SimpleNamespace(wait=lambda: f"ERROR: a/run: {NO_RUN}", end=lambda: None, exit_code=4)
    monkeypatch.setattr(sides, "start", lambda tree: (ended, tmp_path / "record.json"))
    with sides.loaded() as (base, head):
        with pytest.raises(BaseLacks, match="it has no run a/run"):
            base.rates()
        with pytest.raises(SideLost, match="the head left no record"):
            head.rates()


def compared_by(folder: Path, **attributes: Any) -> Compared:
    """What a revision says of a case, where more of it is there than of a base that can be run."""
    tree = Tree("base", folder / "base", sys.executable, folder)
    (folder / "base/vendors/acme").mkdir(parents=True)
    (folder / "base/case.py").touch()
    (folder / "cache").mkdir(exist_ok=True)
    revision = object.__new__(Revision)
    whole = {"_name": "main", "_commit": "0" * 40, "_base": tree, "_head": tree, "_house": folder, "_given": []}
    whole |= {"_host_file": HostFile(), "_of_suites": set()}
    vars(revision).update(
        {**whole, "_folder": folder, "_cache": folder / "cache", "_vendor": "acme", "differences": []}
    )
    vars(revision).update(attributes)
    subject = Subject("inference/case", judged(), suite, "case.py", (), lambda line: None)
    return revision.compare(subject, StoppingRule(), 0.0)


def sides_of(folder: Path, run: str, host_file: HostFile, **changes: Any) -> Sides:
    """Those of a run of another house, of which nothing is there."""
    tree = Tree("base", folder, "python", folder)
    (folder / "base").mkdir(exist_ok=True)
    revision = object.__new__(Revision)
    vars(revision).update(_base=tree, _head=tree, _house=folder, _folder=folder, _cache=folder, _host_file=host_file)
    revision._given, revision._of_suites = ["--host-config=host.yaml", "--of-another=1"], {"--of-another"}
    whole = judged(suite=run.split("/")[0], case=run.split("/")[1], **changes)
    return revision._sides(Subject(run, whole, suite, "test_a.py", (), print), 600.0)


def test_a_side_is_given_of_a_run_list_what_is_of_its_run(tmp_path: Path) -> None:
    """All else in it would be a case that is not in the one module which a side has."""
    cases = {"a:pytorch": "/a", "b:pytorch": "./b \u00e9", "b:pytorch:A100:1:8:2": "/b", "b:pytorch:A100:2:8:2": "/c"}
    host_file = HostFile(VENDOR="acme", FLAGPERF_LOG_LEVEL="DEBUG", SSH_PORT="22", CASES=cases)
    for run, entry in (("inference/b", "b:pytorch"), ("training/b/A100x1x8", "b:pytorch:A100:1:8:2")):
        given, own = sides_of(tmp_path, run, host_file).options
        assert given == "--host-config=host.yaml", "the last one counts"
        read = load_host_file(Path(own.removeprefix("--host-config=")))
        assert read == host_file.model_copy(update={"CASES": {entry: cases[entry]}})
    assert sides_of(tmp_path, "inference/b", HostFile(VENDOR="acme")).options == ["--host-config=host.yaml"]


def test_a_training_that_is_longer_than_its_share_is_no_side_that_hangs(tmp_path: Path) -> None:
    assert sides_of(tmp_path, "training/a", HostFile(), seconds=5 * 3600.0).seconds == 50 * 3600
    assert sides_of(tmp_path, "training/a", HostFile(), seconds=1.0).seconds == 600
    assert sides_of(tmp_path, "training/a", HostFile(), seconds=None).seconds == 600


def test_a_vendor_that_the_base_lacks_is_nothing_to_be_slower_than(tmp_path: Path) -> None:
    (tmp_path / "vendors/newer").mkdir(parents=True)
    found = compared_by(tmp_path, _vendor="newer")
    assert found.lacking == "it has no vendor newer" and not found.problems


def test_what_there_is_no_room_for_is_a_problem_in_a_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "cache/weights").mkdir(parents=True)

    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("fixtures.gate.revision.shutil.copytree", full)
    (problem,) = compared_by(tmp_path).problems
    assert problem == "it cannot be compared with: [Errno 28] No space left on device"
    assert [path.name for path in (tmp_path / "cache").iterdir()] == ["weights"]


@pytest.mark.parametrize("raised, key", [(BaseLacks("it has no run a"), "lacking"), (OSError(28, "full"), "problems")])
def test_how_a_comparison_may_end_before_it_began(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, raised: Exception, key: str
) -> None:
    def lost() -> Any:
        raise raised

    sides = SimpleNamespace(short_rounds=False, differences=(), loaded=lost)
    monkeypatch.setattr(revision_module, "Sides", lambda **given: sides)
    found = compared_by(tmp_path)
    assert getattr(found, key) and not found.ratios


def test_no_monitor_of_a_side_computes_in_the_others_turns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[list[str]] = []
    monkeypatch.setattr(sides_module, "Session", lambda tree, command, *_, **__: begun.append(command))
    tree = Tree("head", tmp_path, "python", tmp_path)
    for short in (True, False):
        sides_in(tmp_path, (tree, tree), short_rounds=short, options=["--monitor-interval=1.0"]).start(tree)
    in_turns, one_after_another = begun
    last = [option for option in in_turns if option.startswith("--monitor-interval")][-1]
    assert last == "--monitor-interval=0" and last not in one_after_another


def test_each_option_of_the_house_is_both_sides_or_the_sessions_alone() -> None:
    """One that is forgotten would have both sides run otherwise than asked."""
    session = {"annotations", "changed-since", "cluster", "compare", "compare-unlike", "container"}
    session |= {
        "container-engine",
        "device-wait",
        "engine-user",
        "explain",
        "flops-convention",
        "gate-budget",
        "gate-width",
    }
    session |= {"launcher", "preflight-only", "results-dir", "sign", "summary"}
    options = (option for option in _ADDED.values() if option.whose == "Proofmark")
    assert {option.name.removeprefix("--") for option in options} == session | {
        name.removeprefix("--") for name in PASSED_ON
    }


def test_what_a_baseline_lacks_is_told_before_anything_runs(history: Path, tmp_path: Path) -> None:
    then, revision = judged(), object.__new__(Revision)
    found = object.__new__(RecordedBaseline)
    vars(found).update(description="comparing with old", _records={then.run_name: (then, "0" * 64)}, _unlike=True)
    gate = comparing.Gate(found, 0.02, 600.0)
    gate.look_for({then.run_name: "a.py", "inference/new": "b.py"})
    assert gate.description == [
        "comparing with old",
        "inference/new will be INSUFFICIENT: nothing to compare with: it has no record of inference/new, "
        f"but of {then.run_name}",
    ]
    with pytest.raises(UsageError, match=f"it has no record of inference/new, but of {then.run_name}"):
        comparing.Gate(found, 0.02, 600.0).look_for({"inference/new": "b.py"})

    (history / "suites").mkdir()
    for name in ("test_a.py", "test_b.py"):
        (history / "suites" / name).touch()
    vars(revision).update(description="comparing with main", _base=Tree("base", history, sys.executable, tmp_path))
    vars(revision).update(_house=history, _vendor="acme")
    gate = comparing.Gate(revision, 0.02, 600.0)
    gate.look_for({"suite/a": "suites/test_a.py", "suite/new": "suites/test_new.py", "none/new": "none/test_new.py"})
    assert [line.partition("with: ")[2] for line in gate.description[1:]] == [
        "it has no suites/test_new.py, but test_a.py; test_b.py there",
        "it has no none/test_new.py, but no cases there",
    ]


def item(scale: str) -> Any:
    """A test of a training at a scale."""
    marks: list[Any] = []
    mark = SimpleNamespace(get_closest_marker=lambda name: next((each for each in marks if each.name == name), None))
    mark.add_marker = lambda made: marks.append(made.mark)
    mark.cls, mark.callspec = Glm, SimpleNamespace(params={"scale": scale})
    return mark


def test_what_will_not_be_compared_leaves_its_share_to_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """What can't be run here, what the baseline lacks, and what is over without having been compared."""
    config: Any = SimpleNamespace(option=SimpleNamespace(collectonly=False, compare="main"), stash={SETTINGS: None})
    config.stash |= {SUITES: {"training": training}, runs.OPTIONS: SimpleNamespace(resume=None)}
    monkeypatch.setattr(runs, "_lacking", lambda config, settings, scale: "too few" if scale.nnodes > 1 else None)
    monkeypatch.setattr(runs, "_asked_by_name", lambda config, settings, case, scale: str(scale) == "3x1")
    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)
    items = [item(scale) for scale in ("1x1", "1x2", "1x3", "2x1", "3x1")]
    for each in items:
        each.config = config
    runs.pytest_collection_modifyitems(config, items)
    lacks = {"training/glm/1x3": "it has no such scale"}
    given: list[tuple[int, float]] = []
    base: Any = SimpleNamespace(description="", refuses=False, lacks=lambda run, module: lacks.get(run))
    base.compare = lambda subject, rule, seconds: given.append((rule.metrics, seconds))
    gate = config.stash[comparing.GATE] = comparing.Gate(base, 0.02, 600.0)
    comparing.pytest_collection_finish(SimpleNamespace(config=config, items=items))  # type: ignore[arg-type]
    assert gate._runs == ["training/glm/1x1", "training/glm/1x2", "training/glm/3x1"]
    for one, other in zip(items, [items[0], *items[2:], None], strict=True):
        comparing.pytest_runtest_teardown(one, other)
    assert gate._runs == ["training/glm/1x1"], "of which another test is to come"
    gate.compare(SimpleNamespace(run="training/glm/1x1"))  # type: ignore[arg-type]
    assert given == [(4, pytest.approx(600.0))]
