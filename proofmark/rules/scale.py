"""Scales: on which hardware, on how many nodes, with how many processes each. `A100x2x8`, or `2x8` of any chip."""

from __future__ import annotations

import re
from dataclasses import dataclass

from proofmark.errors import UsageError

_TWO_CHIPS = re.compile(
    r"\d[A-Za-z]*(?:(?:[x+&,]|[_.+-]?and[_.+-]?)[A-Za-z]+-?\d|[_.-](?:[A-Za-z]+-)?[A-Za-z]\d\d)"
    r"|(?<![A-Za-z])([A-Za-z]+-?)\d+[A-Za-z]*[x+&,_.-]\1\d"
)
"""One model's number, and then another's: A100xB100, A100_H100; or of the same line, HX-9_HX-8. What is a chip's own is
shorter or has more letters, as in A100-SXM4 and A100-PG509, begins with a digit, as in A100_40_SXM, or follows no
number, as in BI-V100."""

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
        return Scale.wrong_with(text) is None

    @staticmethod
    def names_two_chips(text: str) -> bool:
        """Whether it would be a scale, if it were one chip's."""
        match = _PATTERN.fullmatch(text)
        return match is not None and _TWO_CHIPS.search(match["chip"] or "") is not None

    @staticmethod
    def wrong_with(text: str) -> str | None:
        """Why `parse` can't read it; None if it can."""
        match = _PATTERN.fullmatch(text)
        if match is None:
            return (
                "is not a scale: expected <nodes>x<processes>, each at least 1, such as 1x2, or "
                "<chip>x<nodes>x<processes>, such as A100x2x8"
            )
        if Scale.names_two_chips(text):
            return "names two chips: expected one chip, as A100x2x8; a run is of one"
        return None

    @classmethod
    def parse(cls, text: str) -> Scale:
        """Read `<chip>x<nnodes>x<nproc>` or `<nnodes>x<nproc>`.

        Raises:
            UsageError: it is neither, or names two chips.
        """
        match = _PATTERN.fullmatch(text)
        wrong = Scale.wrong_with(text)
        if match is None or wrong:
            raise UsageError(f"'{text}' {wrong}")
        return cls(int(match["nnodes"]), int(match["nproc"]), match["chip"])
