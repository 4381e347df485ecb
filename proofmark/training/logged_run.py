"""A run that trains, once or by a search: the session's log from `run_begin` to `run_end`, and the record."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from proofmark.record.envelope import RECORD_FILE
from proofmark.record.events.log import LOG_FILE, Event
from proofmark.record.integrity.chain import ChainedLog
from proofmark.record.parts import Kept
from proofmark.record.policy import Policy
from proofmark.rules.config import Resolution
from proofmark.suite import R, Run
from proofmark.vendor.contract import lacks_torch
from proofmark.vendor.hardware.provenance import run_facts
from proofmark.vendor.registry import FoundVendor


class LoggedRun(Run[R]):
    """A run that trains. It trains nothing with an illegal configuration, on a processor in a chip's place, or at a
    precision that the vendor does not declare."""

    def __init__(
        self,
        run_dir: Path,
        found: FoundVendor,
        resolution: Resolution,
        packages: Sequence[str],
        policy: Policy,
    ) -> None:
        self.run_dir, self.config, self.problems = run_dir, resolution.config, resolution.problems
        self.record: R | None = None
        self._found, self._packages, self._policy = found, packages, policy
        self._unsupported = _unsupported(self.config.precision, found)
        self._refused = bool(self.problems or self._unsupported)
        self._log = ChainedLog(run_dir / LOG_FILE)
        self._begun: Event | None = None
        self._done = False

    @abstractmethod
    def _facts(self) -> Mapping[str, Any]:
        """Fields that the suite adds to `run_begin`."""

    @abstractmethod
    def _collect(self, begun: Event | None, going_on: bool) -> R:
        """The record that the logs give; `begun` is the first event, and `going_on` says whether the run still
        writes."""

    @abstractmethod
    def _kept(self, record: R) -> tuple[Kept, ...]:
        """Files that a failed run has left."""

    def begin(self) -> None:
        """Write down what is to be run."""
        if self._begun is None:
            shared = run_facts(self._found, self.config, self.config.precision, None, self._packages)
            case = f"{self.config.suite}/{self.config.case}"
            problems = [vars(problem) for problem in self.problems]
            shared["policy"] = self._policy.model_dump(mode="json")
            vendor_facts = {
                "adapted": self._found.adapted_in(case),
                "problems": problems,
                "unsupported": self._unsupported,
            }
            self._begun = self._log.write("run_begin", **shared, **vendor_facts, **self._facts())

    def _is_to_be_done(self) -> bool:
        """Whether to train: if that is allowed, and on the first call only."""
        self.begin()
        again, self._done = self._done, True
        return not (again or self._refused)

    def so_far(self) -> R:
        """The record that the logs give at this moment, without ending anything."""
        self.begin()
        return self._collect(self._begun, going_on=True)

    def finish(self) -> R:
        """Collect the logs, judge, and save the record.

        Raises:
            OSError: the record can't be written.
        """
        if self.record is None:
            self.begin()
            if not self._done and not self._refused:
                if self.interrupted:
                    self._log.write("interrupted", step="its beginning")
                else:
                    self._log.write("stopped" if self.stopped else "partial")
            self._log.write("run_end")
            record = self._collect(self._begun, going_on=False)
            self.record = record.model_copy(update={"kept": self._kept(record)})
            self.record.save(self.run_dir / RECORD_FILE)
            self._log.close()
        return self.record


def _unsupported(precision: str, found: FoundVendor) -> str | None:
    """Why the vendor does not train, or not at a precision; None if it does."""
    why = lacks_torch(found.vendor, found.vendor.torch_device())
    if why and found.vendor.devices():  # where there are none, those of other hosts may be torch's
        return f"vendor {found.name} does not train: {why}"
    declared = found.vendor.training_precisions
    if precision in declared:
        return None
    return f"vendor {found.name} does not train at {precision}: it declares {', '.join(sorted(declared))}"
