"""What a case's processes need to know. Plain values, handed over as a file where they are on another host."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from proofmark.launch.job import HostLayout
from proofmark.process.silence import Patience


@dataclass(frozen=True)
class CaseSpec:
    """One run of one inference case.

    Attributes:
        case: module and class of the case.
        vendor: whose devices, found under `vendors_dir` or as an installed package.
        config: an EffectiveConfig as `as_dict` gives it.
        directory: where the run leaves its files; on a host they are in its node's folder there.
        step_timeout: seconds that a step may take, None for as long as it likes.
        hang_timeout: seconds of silence in a loop that are a hang; `setup_timeout` elsewhere.
        monitor_interval: seconds between two readings of the monitor, None for no monitor.
        imports: large modules that it will import, torch aside.
    """

    case: tuple[str, str]
    vendor: str
    vendors_dir: str
    compiler: str | None
    config: dict[str, Any]
    directory: str
    sys_path: tuple[str, ...]
    step_timeout: float | None
    hang_timeout: float
    setup_timeout: float
    monitor_interval: float | None
    imports: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Of what it is a run."""
        return f"{self.config['suite']}/{self.config['case']}"

    @property
    def patience(self) -> Patience:
        """What silence of the case's process is a hang."""
        return Patience(self.hang_timeout, self.setup_timeout)

    def node_directory(self, node: int) -> Path:
        """Where a host's agent leaves its files."""
        return Path(self.directory) / f"noderank{node}"

    def save(self, path: Path) -> None:
        """Write it down.

        Raises:
            OSError: no space, no permission.
        """
        path.write_text(self.text(), encoding="utf-8")

    def text(self) -> str:
        """What `save` writes."""
        return json.dumps(asdict(self))

    def moved(self, layout: HostLayout) -> CaseSpec:
        """The same run where things lie elsewhere; data and weights are the user's, at the same place on all hosts."""
        host = {**self.config["host"], "cache_dir": layout.cache_dir}
        return replace(
            self,
            vendors_dir=f"{layout.code}/vendors",
            config={**self.config, "host": host},
            directory=layout.directory,
            sys_path=(layout.code,),
        )

    @classmethod
    def load(cls, path: Path) -> CaseSpec:
        """Read what `save` wrote."""
        values = json.loads(path.read_text(encoding="utf-8"))
        return cls(**{**values, **{key: tuple(values[key]) for key in ("case", "sys_path", "imports")}})
