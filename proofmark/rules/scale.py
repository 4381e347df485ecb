"""Scales: on which hardware, on how many nodes, with how many processes each. `A100x2x8`, or `2x8` of any chip."""

from __future__ import annotations

import re
from dataclasses import dataclass

from proofmark.errors import UsageError

_PATTERN = re.compile(r"(?:(?P<chip>[A-Za-z0-9_.+-]*?[A-Za-z0-9])x)?(?P<nnodes>[1-9]\d{0,4})x(?P<nproc>[1-9]\d{0,3})")


@dataclass(frozen=True)
class Scale:
    """`nnodes` hosts with `nproc` processes each; `chip` is None where any will do."""

    nnodes: int
    nproc: int
    chip: str | None = None

    def __str__(self) -> str:
        size = f"{self.nnodes}x{self.nproc}"
        return f"{self.chip}x{size}" if self.chip else size

    @property
    def world(self) -> int:
        """All processes."""
        return self.nnodes * self.nproc

    def is_for(self, chip: str) -> bool:
        """Whether a detected chip is the one that this scale names: `A100` is in 'A100-SXM4-40GB'."""
        if self.chip is None:
            return True
        return re.search(rf"(?<![A-Za-z0-9]){re.escape(self.chip)}(?![A-Za-z0-9])", chip, re.IGNORECASE) is not None

    @staticmethod
    def is_named(text: str) -> bool:
        """Whether `parse` can read it."""
        return _PATTERN.fullmatch(text) is not None

    @classmethod
    def parse(cls, text: str) -> Scale:
        """Read `<chip>x<nnodes>x<nproc>` or `<nnodes>x<nproc>`.

        Raises:
            UsageError: it is neither.
        """
        match = _PATTERN.fullmatch(text)
        if match is None:
            raise UsageError(f"'{text}' is no scale: expected <nnodes>x<nproc> or <chip>x<nnodes>x<nproc>, as A100x2x8")
        return cls(int(match["nnodes"]), int(match["nproc"]), match["chip"])
