"""--validated: records of earlier runs, on which those rely that validate nothing themselves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from proofmark.errors import UsageError
from proofmark.inference.outcome.record import RunRecord, Validated
from proofmark.inference.outcome.validated import validated_by
from proofmark.record.policy import Policy
from proofmark.suite import Suite
from proofmark.verification.relied_on import passed


def read(path: Path, suites: Mapping[str, Suite], policy: Policy) -> Validated:
    """What may be relied on of the record in a file.

    Raises:
        UsageError: it is not there, does not verify, is no PASS, or says nothing of a framework; one line.
    """
    found = passed(path, suites, policy)
    if not isinstance(found.record, RunRecord):
        raise UsageError(f"{path}: is of suite {found.record.suite}; expected a record of an inference case")
    try:
        return validated_by(found.record, found.session, found.sha256)
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from None


def of_case(given: Sequence[Validated], case: str, profile: str) -> Validated | None:
    """That of a case, if there is one; else any, by which the verdict says what is wrong."""
    same = (each for each in given if (each.case, each.profile) == (case, profile))
    return next(same, next(iter(given), None))
