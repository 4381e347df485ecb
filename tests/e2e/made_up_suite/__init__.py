"""A suite that nobody but its own folder knows of: two processes count the primes below a bound."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from suites.made_up.case import PrimesCase
from suites.made_up.record import PrimesRecord

from proofmark.record.figures import Figure, FigureKind
from proofmark.record.parts import VerdictKind
from proofmark.suite import Suite
from proofmark.verdict.stages import Stage, parts_left_out


class MadeUpSuite(Suite):
    """Primes."""

    name = "made_up"
    case_type = PrimesCase
    record_type = PrimesRecord
    record_fixture = "primes_record"
    plugins = ("suites.made_up.counting",)
    options = {"--overlook": {"type": int, "metavar": "N", "default": 0, "help": "primes that are overlooked (0)"}}

    def stages(self, record: PrimesRecord) -> Iterable[Stage]:
        """Both processes counted, and all was counted."""
        yield VerdictKind.ERROR, [record.failure] if record.failure else []
        yield VerdictKind.INSUFFICIENT, parts_left_out(record)
        missed = record.expected - sum(share.primes for share in record.shares)
        yield VerdictKind.FAIL_ACCURACY, [f"{missed} primes were overlooked"] if missed else []

    def figures(self, record: PrimesRecord) -> Sequence[Figure]:
        """How many there are, and how fast they were found."""
        reason: dict[str, Any] = {"reason": "nothing was counted"}
        counted: dict[str, Any] = {"value": sum(share.primes for share in record.shares)} if record.shares else reason
        speed: dict[str, Any] = {"value": record.rate} if record.rate is not None else reason
        return (
            Figure(key="sieved", label="sieved", unit="numbers/s", kind=FigureKind.SPEED, headline=True, **speed),
            Figure(key="primes", label="primes found", unit="1", kind=FigureKind.QUALITY, **counted),
        )

    def charts(self, record: PrimesRecord) -> dict[str, str]:
        """What each process found."""
        bars = "".join(
            f'<rect x="{40 * number}" y="0" width="30" height="{share.primes}"/>'
            for number, share in enumerate(record.shares)
        )
        label = 'role="img" aria-label="Primes of each process"'
        drawing = f'<svg xmlns="http://www.w3.org/2000/svg" {label} viewBox="0 0 80 40">{bars}</svg>'
        return {"primes of each process": drawing}

    def section(self, record: PrimesRecord) -> str:
        """Who counted what."""
        rows = "".join(f"<li>process {share.process}: {share.primes} primes</li>" for share in record.shares)
        return f'<div class="block"><h4>Sieves</h4><ul>{rows}</ul></div>'


suite = MadeUpSuite()
