"""Automated machine learning: a network is searched for, and the search is scored by what it computes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from proofmark.automl.case import AutoMLCase
from proofmark.automl.network.init_model import read_init_models
from proofmark.automl.outcome.figures import figures
from proofmark.automl.outcome.record import AutoMLRecord
from proofmark.automl.outcome.verdict import stages
from proofmark.automl.search.running import IMPORTED
from proofmark.errors import ConfigurationError, Problem
from proofmark.record.events.log import LOG_FILE
from proofmark.record.figures import Figure
from proofmark.rules.case_file import Parameters
from proofmark.rules.config import EffectiveConfig
from proofmark.rules.host_problems import host_problems, problems_without_engines
from proofmark.suite import RESUME, Suite
from proofmark.verdict.stages import Stage
from suites.automl.layout import layout_problems


class AutoMLSuite(Suite):
    """A search, on all devices of a machine."""

    name = "automl"
    case_type = AutoMLCase
    record_type = AutoMLRecord
    record_fixture = "search_record"
    plugins = ("suites.automl.searching",)
    closed = True
    compared = ("score",)
    imports = IMPORTED
    task_launchers = frozenset({"ray"})
    options = {
        **RESUME,
        "--max-trials": {
            "type": int,
            "metavar": "N",
            "sets": "max_trials",
            "help": "most trials that a search may start (the profile's own)",
        },
        "--init-model": {
            "metavar": "PATH",
            "sets": "init_model",
            "help": "a network as JSON, or a folder of them, that a search begins with (the profile's seed network)",
        },
        "--max-duration": {
            "type": float,
            "metavar": "SECONDS",
            "sets": "max_seconds",
            "help": "seconds after which a search starts no further trial or epoch (the profile's own)",
        },
    }

    def takes_weights(self, parameters: Parameters) -> bool:
        """A search begins from fresh ones."""
        return False

    def host_problems(self, config: EffectiveConfig, here: bool) -> Sequence[Problem]:
        """Of data and init models; and a search is on no hosts of a cluster file."""
        problems = problems_without_engines(config)
        if not here:
            what = f"case {config.case} is searched for on this machine's devices, or by --launcher ray"
            problems.append(Problem("--launcher", "", f"{what}: remove any other, --container and --cluster"))
        of_data = host_problems(config, here) or (layout_problems(config) if here else [])
        return [*problems, *of_data, *_with_init_models(config)]

    def stages(self, record: AutoMLRecord) -> Iterable[Stage]:
        """All rules of validity."""
        return stages(record)

    def figures(self, record: AutoMLRecord) -> Sequence[Figure]:
        """Scores, how good the best network is, and what it took."""
        return figures(record)

    def collect(self, run_dir: Path, record: AutoMLRecord) -> AutoMLRecord:
        """From the journal and the trials' logs."""
        from proofmark.automl.outcome.collect import collect

        return collect(run_dir, seal=record.log)

    def held_logs(self, run_dir: Path) -> Iterable[Path]:
        """The session's own. The journal is read line by line, as are the trials beside the record."""
        return run_dir.glob(LOG_FILE)

    def charts(self, record: AutoMLRecord) -> Mapping[str, str]:
        """Error and scores over time, and the tree of networks."""
        from suites.automl.report.section import charts

        return charts(record)

    def section(self, record: AutoMLRecord) -> str:
        """Rules of validity and all trials."""
        from suites.automl.report.section import section

        return section(record)

    def write_files(self, record: AutoMLRecord, run_dir: Path) -> None:
        """The page of this search alone, called by how it ended, as the original's is."""
        from suites.automl.report.section import write_page

        write_page(record, run_dir, self)


def _with_init_models(config: EffectiveConfig) -> Sequence[Problem]:
    try:
        read_init_models(config)
    except ConfigurationError as error:
        return error.problems
    return ()


suite = AutoMLSuite()
