"""Training to a target accuracy."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from proofmark.errors import Problem
from proofmark.record.comparison import Comparison
from proofmark.record.figures import Figure
from proofmark.rules.case_file import Parameters
from proofmark.rules.config import EffectiveConfig, Resolution
from proofmark.rules.host_problems import host_problems, problems_without_engines
from proofmark.rules.scale import Scale
from proofmark.suite import RESUME, Suite
from proofmark.training.case import TrainingCase
from proofmark.training.node.agent_forks import IMPORTED
from proofmark.training.outcome.figures import figures
from proofmark.training.outcome.record import TrainingRecord
from proofmark.training.outcome.verdict import stages
from proofmark.training.run import at_scale
from proofmark.verdict.stages import Stage


class TrainingSuite(Suite):
    """A case at a scale, from one seed or several."""

    name = "training"
    case_type = TrainingCase
    record_type = TrainingRecord
    record_fixture = "training_record"
    plugins = ("suites.training.runs",)
    imports = IMPORTED
    scaled = True
    closed = True
    compared = ("raw",)  # the others are parts of the time as ranks tell of them
    options = {
        "--scale": {
            "action": "append",
            "default": [],
            "metavar": "NxM",
            "dest": "scales",
            "help": "also train on N nodes with M processes each; may be repeated (the scales that the vendor offers)",
        },
        **RESUME,
    }

    def settle(self, resolution: Resolution, scale: str, path: str) -> Resolution:
        """The batch of a process, or of all together."""
        return at_scale(resolution, Scale.parse(scale), path)

    def variant(self, config: EffectiveConfig, scale: str) -> Mapping[str, str]:
        """By scale."""
        return {"scale": scale, "precision": self.precision(config)}

    def takes_weights(self, parameters: Parameters) -> bool:
        """A training starts from fresh ones, where its profile does not let the user give others."""
        return bool(getattr(parameters, "initial_weights", False))

    def host_problems(self, config: EffectiveConfig, here: bool) -> Sequence[Problem]:
        """Of data; and of weights, where the task can't be reached from fresh ones."""
        problems = [*problems_without_engines(config), *host_problems(config, here)]
        if config.get("initial_weights") == "required" and not config.host.weights:
            what = f"case {config.case}, profile {config.profile}, begins with pre-trained weights: --weights DIR"
            problems.append(Problem("--weights", "", f"{what} (which ones: docs/cases/training/{config.case}.md)"))
        return problems

    def stages(self, record: TrainingRecord) -> Iterable[Stage]:
        """Honesty, the target, disturbances."""
        return stages(record)

    def figures(self, record: TrainingRecord) -> Sequence[Figure]:
        """Time to the target, rates, how each run ended."""
        return figures(record)

    def collect(self, run_dir: Path, record: TrainingRecord) -> TrainingRecord:
        """From the session's log and all ranks'."""
        from proofmark.training.logs.collect import collect

        return collect(run_dir, seal=record.log)

    def charts(self, record: TrainingRecord) -> Mapping[str, str]:
        """Curves, where the time went, and what was when."""
        from suites.training.report.section import charts

        return charts(record)

    def section(self, record: TrainingRecord) -> str:
        """Checks and ranks."""
        from suites.training.report.section import section

        return section(record)

    def comparisons(self, records: Sequence[TrainingRecord]) -> Sequence[Comparison]:
        """How cases scale."""
        from suites.training.report.section import comparisons

        return comparisons(records)

    def write_files(self, record: TrainingRecord, run_dir: Path) -> None:
        """Each run as other tools read it, beside what its ranks left, and its monitors' readings."""
        from proofmark.monitoring.table import write_tables
        from suites.training.report.section import write_logs

        write_logs(record, run_dir)
        write_tables(run_dir)


suite = TrainingSuite()
