"""What every case of primes is held to."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import pytest
from suites.made_up.case import PrimesCase
from suites.made_up.record import PrimesRecord

from fixtures.outputs.benchmark import hand_over, replayed_clock
from reports.content.withholding import withheld


class PrimesContract(PrimesCase):
    """One module and one YAML per bound."""

    suite: ClassVar[str] = "made_up"
    common_file: ClassVar[Path] = Path(__file__).with_suffix(".yaml")

    @pytest.mark.benchmark(group="sieved", timer=replayed_clock)
    def test_speed(self, primes_record: PrimesRecord, benchmark: Any, request: pytest.FixtureRequest) -> None:
        """Numbers per second."""
        if reason := withheld(primes_record.verdict):
            pytest.skip(reason)
        shares = primes_record.shares
        items, seconds = [share.numbers for share in shares], [share.seconds for share in shares]
        hand_over(benchmark, request.node, primes_record, "sieved", items, seconds)

    def test_verdict(self, primes_record: PrimesRecord) -> None:
        """All of them were found."""
        verdict = primes_record.verdict
        assert verdict is not None
        if verdict.kind != "PASS":
            pytest.fail("\n".join([verdict.kind, *verdict.reasons]), pytrace=False)
