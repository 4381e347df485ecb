"""The suite seam: everything by which one suite differs from another, found by name as a vendor is.

A suite is a package `suites/<name>`, or an installed one behind the entry point `proofmark.suites: <name>`, with an
attribute `suite`: an instance of a subclass of `Suite`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

from proofmark.case import Case
from proofmark.record.envelope import CaseRecord
from proofmark.record.figures import Figure
from proofmark.verdict.stages import Stage

GROUP = "proofmark.suites"


class Suite(ABC):
    """What is measured, and how that is told."""

    name: ClassVar[str]
    case_type: ClassVar[type[Case]]
    record_type: ClassVar[type[CaseRecord]]

    options: ClassVar[Mapping[str, Mapping[str, Any]]] = {}
    """Command-line options of its own: a name such as `--scale`, and argparse's attributes of it."""

    plugins: ClassVar[Sequence[str]] = ()
    """Modules with pytest fixtures and hooks of its own."""

    @abstractmethod
    def stages(self, record: Any) -> Iterable[Stage]:
        """Its verdict's stages in order: those that every suite has, from `proofmark.verdict`, and its own."""

    @abstractmethod
    def figures(self, record: Any) -> Sequence[Figure]:
        """All figures of a record, in the order in which they are read. The first ones rank."""

    def section(self, record: Any) -> str:
        """What the page shows of a record beside its envelope and figures, as safe HTML: charts, tables."""
        return ""
