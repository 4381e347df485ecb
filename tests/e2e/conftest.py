"""A small house of its own for each test: the real referee, a tiny case, and a vendor that misbehaves."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import psutil
import pytest
import yaml

from proofmark import jobs
from proofmark.inference.outcome.record import RunRecord
from proofmark.process.environment import PASSES
from proofmark.training.outcome.record import TrainingRecord
from tests.e2e.forked_session import SETTLED, fork_session
from tests.waiting import PATIENCE, name_of

ROOT = Path(__file__).parents[2]
TEMPLATE = Path(__file__).parent / "house"
BORROWED = ("proofmark", "fixtures", "reports")
COPIED = (
    "conftest.py pytest.ini suites/__init__.py suites/inference/__init__.py suites/inference/contract.py "
    "suites/inference/contract.yaml suites/inference/relied_on.py suites/inference/steps.py suites/inference/report "
    "suites/training/__init__.py suites/training/contract.py suites/training/contract.yaml suites/training/runs.py "
    "suites/training/report vendors/__init__.py vendors/cpu"
).split()

collect_ignore = ["house", "made_up_suite"]


@dataclass(frozen=True)
class Ran:
    """A session that has ended."""

    code: int
    output: str
    run_dir: Path
    """The session's own folder; does not exist where nothing was run."""

    @property
    def results(self) -> Path:
        """The folder of all sessions."""
        return self.run_dir.parent

    def case_dir(self, case: str = "tiny") -> Path:
        """A case's folder."""
        return self.run_dir / "inference" / case

    def record(self, case: str = "tiny") -> RunRecord:
        """A case's record."""
        return RunRecord.load(self.case_dir(case) / "record.json")

    def training(self, scale: str, case: str = "tiny") -> TrainingRecord:
        """The record of a case's training."""
        return TrainingRecord.load(self.run_dir / "training" / case / scale / "record.json")

    def steps(self, case: str = "tiny") -> dict[str, str]:
        """How each step ended."""
        return {step.name: step.status for step in self.record(case).steps}

    def verdict(self, case: str = "tiny") -> tuple[str, str]:
        """The kind, and all reasons in one text."""
        verdict = self.record(case).verdict
        assert verdict is not None
        return str(verdict.kind), "\n".join(verdict.reasons)


class House:
    """A project directory with the tiny case."""

    def __init__(self, root: Path, cache: Path | None = None) -> None:
        self.root = root
        self.started_as_users_do = False
        self.home_is_new = False
        """Whether sessions have another HOME than these tests, and it does not matter what imports leave there."""
        self.cache = cache or root / ".cache"
        shutil.copytree(TEMPLATE, root)
        for name in BORROWED:
            (root / name).symlink_to(ROOT / name)
        for name in COPIED:
            copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
            copy(ROOT / name, root / name)
        shutil.copy(root / "trouble.py", root / "vendors/fake")  # a vendor's code sees its own folder alone
        self._never_mind_the_machine()

    def _never_mind_the_machine(self) -> None:
        """Rounds of milliseconds, on a machine that is busy with other tests: no session is AMBIGUOUS for that."""
        for suite in ("inference", "training"):
            path = self.root / "suites" / suite / "contract.yaml"
            common = yaml.safe_load(path.read_text())
            common["parameters"]["max_noise"] = 1e6
            if suite == "inference":
                common["configurations"]["min_seconds"]["value"] = 0.0
            path.write_text(yaml.safe_dump(common, sort_keys=False))

    @property
    def case_yaml(self) -> Path:
        """The tiny case's numbers."""
        return self.root / "suites/inference/tiny.yaml"

    def vendor_yaml(self, case: str = "tiny", vendor: str = "fake") -> Path:
        """A vendor's overrides of a case."""
        path = self.root / "vendors" / vendor / "configs/inference" / f"{case}.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def has_a_device_apart(self) -> None:
        """The fake vendor's is no longer this machine's processor, as far as it says."""
        with (self.root / "vendors/fake/__init__.py").open("a") as stream:
            stream.write("\n\nFake.runs_on_processor = False\n")

    def add_case(
        self,
        case: str,
        overrides: Mapping[str, Any] | None = None,
        vendor: str = "fake",
        configurations: Mapping[str, Any] | None = None,
        of: str = "test_tiny.TestTiny",
        **parameters: Any,
    ) -> None:
        """A second case like the tiny one, or as another class has it, with a vendor's overrides, and other
        configurations and parameters."""
        module, imported = self.case_yaml.with_name(f"test_{case}.py"), of.partition(".")[0]
        module.write_text(f"from suites.inference import {imported}\n\nclass Test{case.title()}({of}):\n    pass\n")
        content = yaml.safe_load(self.case_yaml.read_text())
        content["parameters"] |= parameters
        content["configurations"] |= configurations or {}
        self.case_yaml.with_name(f"{case}.yaml").write_text(yaml.safe_dump(content))
        if overrides:
            self.vendor_yaml(case, vendor).write_text(yaml.safe_dump(dict(overrides)))

    def start(
        self, *options: str, trouble: str = "", suite: str = "inference", before: tuple[str, ...] = (), **popen: Any
    ) -> subprocess.Popen[str]:
        """Begin a session over all cases, in a process group of its own; `before` is what starts it, as nohup would."""
        arguments = [f"suites/{suite}", "--cache-dir", str(self.cache), *options]
        arguments += ["--isolation", "process"] if trouble else []  # its mark lies outside
        environment = {
            key: value for key, value in os.environ.items() if not key.startswith(("PYTEST_", "COV_", "COVERAGE_"))
        }
        environment |= {"HOUSE": str(self.root), "TROUBLE": trouble, "TROUBLE_MARK": str(self.mark)}
        environment |= {**SETTLED, "COLUMNS": "200", PASSES: "HOUSE,TROUBLE,TROUBLE_MARK,FAKE_*"}
        environment["PYTEST_ADDOPTS"] = "-p no:hypothesispytest"  # users do not have it; to import it takes a second
        if not (before or popen or self.started_as_users_do):
            forked = fork_session(self.root, arguments, environment, self.home_is_new)
            if forked is not None:
                return cast(subprocess.Popen[str], forked)
        return subprocess.Popen(
            [*before, sys.executable, "-m", "pytest", *arguments],
            cwd=self.root,
            env=environment,
            text=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            **{"preexec_fn": _hear_a_lost_terminal, **popen},
        )

    def end(self, session: subprocess.Popen[str], timeout: float = 15 * PATIENCE, results: str = "results") -> Ran:
        """Wait for a session."""
        output, _ = session.communicate(timeout=timeout)
        return Ran(session.returncode, output, (self.root / results / "latest").resolve())

    def run(self, *options: str, vendor: str = "fake", trouble: str = "", suite: str = "inference") -> Ran:
        """A whole session."""
        return self.end(self.start("--vendor", vendor, *options, trouble=trouble, suite=suite))

    @property
    def mark(self) -> Path:
        """Appears when trouble begins."""
        return self.root / "trouble.mark"

    def release(self) -> None:
        """Have all that is `held` go on."""
        self.mark.with_name("released").touch()

    def wait_for_trouble(self, session: subprocess.Popen[str], timeout: float = 5 * PATIENCE) -> None:
        """Return when ordered trouble has begun."""
        deadline = time.monotonic() + timeout
        while not self.mark.exists():
            assert session.poll() is None, session.communicate()[0]
            assert time.monotonic() < deadline, "no trouble in time"
            time.sleep(0.02)

    def processes(self) -> list[psutil.Process]:
        """Whatever still runs of this house's sessions."""
        return [process for process in psutil.process_iter() if self._is_ours(process)]

    def job(self, run: str) -> str:
        """The id of a run's job: `inference/tiny`, `training/tiny/1x1/round1`."""
        return str(json.loads((self.root / "results/latest" / run / "job.json").read_text())["id"])

    def agent(self) -> psutil.Process:
        """That of the training under way: torchrun gives it this name."""
        (found,) = [process for process in self.processes() if name_of(process) == "pt_elastic"]
        return found

    def _is_ours(self, process: psutil.Process) -> bool:
        try:
            ours = process.environ().get("HOUSE") == str(self.root) or process.cwd() == str(self.root)
            return ours and process.status() != psutil.STATUS_ZOMBIE
        except psutil.Error:
            return False

    def becomes_empty(self) -> bool:
        """Whether all of the house's processes end, however busy the machine is. It is looked twice: one that becomes
        another program has no environment meanwhile."""
        deadline = time.monotonic() + PATIENCE
        while self.processes() or self.processes():
            if time.monotonic() > deadline:
                return False
            time.sleep(0.1)
        return True


@pytest.fixture
def ask_jobs(house: House, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str]]:
    """`python -m proofmark.jobs ...` of the house, from this process, which led none of its sessions."""

    def ask(*arguments: str) -> tuple[int, str]:
        code = jobs.main(["--cache-dir", str(house.cache), *arguments])
        printed = capsys.readouterr()
        return code, printed.out + printed.err

    return ask


def one_line_answer(ran: Ran, *expected: str) -> None:
    """Exit code 4, an ERROR that says all of `expected`, no traceback, nothing run."""
    assert ran.code == 4, ran.output
    clean(ran)
    (line,) = [line for line in ran.output.splitlines() if line.startswith("ERROR:")]
    for words in expected:
        assert words in line, ran.output


def clean(ran: Ran) -> None:
    """No traceback of ours anywhere in the output."""
    for sign in ("Traceback (most recent", "INTERNALERROR", "site-packages"):
        assert sign not in ran.output, ran.output


def _hear_a_lost_terminal() -> None:
    """Also where these tests themselves run under nohup."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache that houses share, so that the tiny case is trained once."""
    return tmp_path_factory.mktemp("trained")


@pytest.fixture
def house(tmp_path: Path, trained: Path) -> Iterator[House]:
    """A house that is empty of processes afterwards."""
    built = House(tmp_path / "house", trained)
    yield built
    left = [] if built.becomes_empty() else built.processes()
    for process in left:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    assert not left, f"processes were left: {left}"
