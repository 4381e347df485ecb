"""What a case's processes need to know."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

from proofmark.launch.engine_container import EngineContainer
from proofmark.launch.job import HostLayout
from proofmark.launch.spec import RunSpec
from proofmark.process.answering.silence import Patience


@dataclass(frozen=True, kw_only=True)
class CaseSpec(RunSpec):
    """One run of one inference case.

    Attributes:
        step_timeout: seconds that a step may take, None for as long as it likes.
        hang_timeout: seconds of silence in a loop that are a hang; `setup_timeout` elsewhere.
        monitor_interval: seconds between two readings of the monitor, None for no monitor.
        imports: large modules that it will import, torch aside.
        engine_container: what its engines are put into, they alone; None for processes beside it.
    """

    compiler: str | None
    step_timeout: float | None
    hang_timeout: float
    setup_timeout: float
    monitor_interval: float | None
    imports: tuple[str, ...] = ()
    engine_container: EngineContainer | None = None

    def moved(self, layout: HostLayout) -> Self:
        """The same run on a host, with what engines are put into there."""
        return replace(super().moved(layout), engine_container=layout.engine_container)

    @property
    def name(self) -> str:
        """The case that it is a run of."""
        return f"{self.config['suite']}/{self.config['case']}"

    @property
    def patience(self) -> Patience:
        """What silence of the case's process is a hang."""
        return Patience(self.hang_timeout, self.setup_timeout)
