"""Training to a target accuracy."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from proofmark.errors import Problem
from proofmark.record.figures import Figure
from proofmark.rules.config import EffectiveConfig, Resolution
from proofmark.rules.host_problems import host_problems
from proofmark.rules.scale import Scale
from proofmark.suite import Suite
from proofmark.training.case import TrainingCase
from proofmark.training.record import TrainingRecord
from proofmark.training.run import at_scale
from proofmark.training.verdict import stages
from proofmark.verdict.stages import Stage


class TrainingSuite(Suite):
    """A case at a scale, from one seed or several."""

    name = "training"
    case_type = TrainingCase
    record_type = TrainingRecord
    record_fixture = "training_record"
    plugins = ("suites.training.runs",)
    scaled = True
    closed = True
    options = {
        "--scale": {
            "action": "append",
            "default": [],
            "metavar": "NxM",
            "dest": "scales",
            "help": "also train on N nodes with M processes each; may be repeated (what the vendor offers)",
        },
        "--resume": {
            "metavar": "DIR",
            "help": "go on from the checkpoints of an earlier session: its folder under results",
        },
    }

    def settle(self, resolution: Resolution, scale: str, path: str) -> Resolution:
        """The batch of a process, or of all together."""
        return at_scale(resolution, Scale.parse(scale), path)

    def told_apart(self, config: EffectiveConfig, scale: str) -> Mapping[str, str]:
        """By scale."""
        return {"scale": scale, "precision": self.precision(config)}

    def host_problems(self, config: EffectiveConfig, here: bool) -> Sequence[Problem]:
        """Of data; and a training starts from fresh weights, where its profile does not let the user give others."""
        if config.host.weights and not config.initial_weights:
            what = f"case {config.case}, profile {config.profile}, is trained from fresh weights: leave it out"
            return [Problem("--weights", "", what)]
        return host_problems(config, here)

    def stages(self, record: TrainingRecord) -> Iterable[Stage]:
        """Honesty, the target, disturbances."""
        return stages(record)

    def figures(self, record: TrainingRecord) -> Sequence[Figure]:
        """Not yet."""
        return ()

    def write_files(self, record: TrainingRecord, run_dir: Path) -> None:
        """Each run as other tools read it, beside what its ranks left."""
        from reports.mllog import mllog
        from reports.perflog import perflog

        for number, run in enumerate(record.runs, 1):
            folder = run_dir / f"round{number}"
            (folder / "perflog.txt").write_text(perflog(record, run), encoding="utf-8")
            (folder / "mllog.txt").write_text(mllog(record, run), encoding="utf-8")


suite = TrainingSuite()
