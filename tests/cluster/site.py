"""A house and a cluster file: what runs of the tiny case elsewhere begin from."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from proofmark.training.outcome.record import TrainingRecord
from tests.e2e.conftest import House, Ran
from tests.waiting import until

MIDWAY = "tiny.pause=0.05, tiny.rank1.step20="

Ask = Callable[..., tuple[int, str]]


class Site:
    """How a house's runs get somewhere: the options and the cluster file."""

    def __init__(
        self,
        house: House,
        folder: Path,
        options: tuple[str, ...],
        content: dict[str, Any],
        work: Path | None = None,
    ) -> None:
        self.house, self.options, self._content = house, options, content
        self.work = work or folder / "work"
        self.work.mkdir(exist_ok=True)
        self.file = folder / "cluster.yaml"
        self.write()

    def write(self, **changes: Any) -> None:
        """Write the cluster file."""
        variables = {"HOUSE": str(self.house.root), "OMP_NUM_THREADS": "1"}
        common = {"work_dir": str(self.work), "python": sys.executable, "environment": variables}
        self.file.write_text(yaml.safe_dump(common | self._content | changes))

    def start_inference(
        self, *options: str, trouble: str = "", vendor: str = "fake", **changes: Any
    ) -> subprocess.Popen[str]:
        """Begin a session over the house's inference cases."""
        variables = {"HOUSE": str(self.house.root), "OMP_NUM_THREADS": "1", "TROUBLE": trouble}
        self.write(environment={**variables, "TROUBLE_MARK": str(self.house.mark)}, **changes)
        return self.house.start("--vendor", vendor, *self.options, "--cluster", str(self.file), *options)

    def infer(self, *options: str, trouble: str = "", vendor: str = "fake", **changes: Any) -> Ran:
        """A whole session over them."""
        return self.house.end(self.start_inference(*options, trouble=trouble, vendor=vendor, **changes))

    def start(self, *options: str, trouble: str = "", scale: str = "2x1", **changes: Any) -> subprocess.Popen[str]:
        """Begin a training of the tiny case, with trouble there."""
        variables = {"HOUSE": str(self.house.root), "OMP_NUM_THREADS": "1", "TROUBLE": trouble}
        self.write(environment={**variables, "TROUBLE_MARK": str(self.house.mark)}, **changes)
        launched = [*self.options, "--cluster", str(self.file), "--scale", scale, "-k", scale]
        launched += ["--isolation", "process"] if trouble else []  # its mark lies outside
        return self.house.start("--vendor", "cpu", *launched, *options, suite="training")

    def run(self, *options: str, trouble: str = "", scale: str = "2x1", **changes: Any) -> Ran:
        """A whole session."""
        return self.house.end(self.start(*options, trouble=trouble, scale=scale, **changes))


def come_home(house: House, file: str, said: bytes, scale: str = "2x1") -> None:
    """Wait until a host's log has come home as far as that: what is under way when the host goes is lost."""
    log = house.root / f"results/latest/training/tiny/{scale}/round1" / file
    until(lambda: log.exists() and said in log.read_bytes(), f"{file} to come home")


def steps_come_home(house: House, file: str = "noderank0/rank0.jsonl", scale: str = "2x1") -> None:
    """Wait until the first losses are here."""
    come_home(house, file, b'"steps"', scale)


def model_comes_home(house: House) -> None:
    """Wait until what `known_as_lost` looks for in the logs is here."""
    come_home(house, "noderank1/rank1.log", b"rank 1 makes its model\n")


def recorded(ran: Ran, scale: str = "2x1") -> TrainingRecord:
    """The tiny case's record."""
    return ran.training(scale)


def failure(ran: Ran, scale: str = "2x1") -> str:
    """Why the only run broke off."""
    (run,) = recorded(ran, scale).runs
    assert run.failure is not None, ran.output
    assert "INTERNALERROR" not in ran.output
    return run.failure.cause


def known_as_lost(job: str, launcher: str, hosts: list[str], ask_jobs: Ask) -> None:
    """What others are told, by its id, of a job on hosts whose session was killed."""
    assert job not in ask_jobs("list")[1] and f"{job}  lost " in ask_jobs("list", "--all")[1]
    code, output = ask_jobs("status", job)
    assert code == 1 and f" {launcher} " in output and ", ".join(hosts) in output, output
    code, output = ask_jobs("logs", job)
    assert code == 0 and "==> noderank1/rank1.log <==\nrank 1 makes its model\n" in output, output
    assert ask_jobs("stop", job) == (0, f"{job}  lost\n")
