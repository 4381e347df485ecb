"""A case of primes as fixtures: the run of a class, and its judged record."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from suites.made_up.agent import Spec
from suites.made_up.record import PrimesRecord, Share

from fixtures.cases.case_files import resolved
from fixtures.cases.suites import case_path, suite_of
from fixtures.live.progress import TELL
from fixtures.options.policy import POLICY
from fixtures.options.settings import SETTINGS
from fixtures.outputs.reporting import recorded
from fixtures.sessions.session import make_case_dir
from proofmark.launch.job import Job, LocalLauncher
from proofmark.record.policy import Policy
from proofmark.rules.config import Resolution
from proofmark.suite import Run, Suite
from proofmark.vendor.hardware.chips import describe_chip
from proofmark.vendor.hardware.machine import describe_host, installed_versions
from proofmark.vendor.registry import FoundVendor
from proofmark.verdict.engine import judge


class PrimesRun(Run[PrimesRecord]):
    """A job of two processes."""

    def __init__(
        self, suite: Suite, resolution: Resolution, found: FoundVendor, run_dir: Path, overlook: int, policy: Policy
    ) -> None:
        self.record: PrimesRecord | None = None
        self.run_dir, self._suite, self._found, self._resolution = run_dir, suite, found, resolution
        self._overlook, self._policy, self._begun = overlook, policy, time.time()
        self._failure: str | None = None
        self._shares: list[Share] = []
        self._counted = False

    def count(self) -> None:
        """Submit the job and wait for it."""
        if self._resolution.problems:
            return
        self._counted = True
        spec = Spec(str(self.run_dir), self._resolution.config.bound, self._overlook)
        job = Job(
            name=f"{self._suite.name}/{self._resolution.config.case}",
            module="suites.made_up.agent",
            spec=spec,
            directory=self.run_dir,
            leaves=["share*.json"],
            sys_path=tuple(sys.path),
        )
        handle = LocalLauncher().submit(job)
        try:
            while (status := handle.status()) == "running":
                time.sleep(0.02)
        finally:
            handle.stop()
        if status != "succeeded":
            self._failure = f"the job {status}"
            return
        files = sorted((self.run_dir / "noderank0").glob("share*.json"))
        self._shares = [Share.model_validate(json.loads(file.read_text(encoding="utf-8"))) for file in files]

    def finish(self) -> PrimesRecord:
        """Judge and save it."""
        if self.record is None:
            record = PrimesRecord.model_validate(self._facts())
            record = record.with_figures(self._suite.figures(record))
            verdict = judge(record, self._suite.stages(record))
            self.record = record.model_copy(update={"verdict": verdict})
            self.record.save(self.run_dir / "record.json")
        return self.record

    def _facts(self) -> dict[str, Any]:
        config, vendor = self._resolution.config, self._found.vendor
        chip = describe_chip(vendor.chip(), vendor.chip_units(), config.precision, self._found.chips_file)
        plain = config.as_dict()
        return {
            **{name: getattr(config, name) for name in ("suite", "case", "profile", "vendor", "item", "seed")},
            "precision": config.precision,
            "started": self._begun,
            "seconds": time.time() - self._begun,
            "config_hash": config.hash,
            "config": {**plain["parameters"], **plain["configurations"]},
            "overrides": plain["overrides"],
            "problems": [vars(problem) for problem in self._resolution.problems],
            "versions": installed_versions(self._suite.case_type.packages),
            "host": describe_host().model_dump(),
            "chip": chip.model_dump(),
            "dataset": {"name": "numbers", "sha256": "0" * 64, "items": config.bound},
            "flops": None,
            "policy": self._policy,
            "policy_hash": self._policy.sha256,
            "partial": not self._counted and not self._resolution.problems,
            "expected": config.primes,
            "failure": self._failure,
            "shares": tuple(self._shares),
        }


@pytest.fixture(scope="class")
def primes_run(request: pytest.FixtureRequest) -> Iterator[PrimesRun]:
    """The run of the class's case."""
    cls, config = request.cls, request.config
    case = case_path(cls).stem
    run_dir = make_case_dir(config, cls.suite, case)
    found, suite = config.stash[SETTINGS].found, suite_of(config, cls)
    run = PrimesRun(suite, resolved(config, cls), found, run_dir, config.option.overlook, config.stash[POLICY])
    config.stash[TELL](case, {"note": "two processes count"})
    with recorded(config, case, run):
        yield run


@pytest.fixture(scope="class")
def primes_record(primes_run: PrimesRun) -> PrimesRecord:
    """Counted and judged."""
    primes_run.count()
    return primes_run.finish()
