"""The record of a case of primes."""

from __future__ import annotations

from proofmark.record.envelope import CaseRecord
from proofmark.record.parts import Part


class Share(Part):
    """What one process counted."""

    process: int
    numbers: int
    primes: int
    seconds: float


class PrimesRecord(CaseRecord):
    """The envelope, and who counted what."""

    expected: int
    failure: str | None = None
    shares: tuple[Share, ...] = ()

    @property
    def rate(self) -> float | None:
        """Numbers per second over both processes, by the slower one."""
        if not self.shares:
            return None
        return sum(share.numbers for share in self.shares) / max(share.seconds for share in self.shares)
