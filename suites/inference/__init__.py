"""Inference: whether a vendor's compiler keeps a model's accuracy, and at what speed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from proofmark.errors import Problem
from proofmark.inference.case import InferenceCase
from proofmark.inference.outcome.figures import figures
from proofmark.inference.outcome.record import RunRecord, variant_of
from proofmark.inference.outcome.verdict import stages
from proofmark.inference.run import IMPORTED
from proofmark.record.events.log import LOG_FILE
from proofmark.record.figures import Figure
from proofmark.rules.config import EffectiveConfig
from proofmark.rules.host_problems import host_problems
from proofmark.suite import Suite
from proofmark.verdict.stages import Stage


class InferenceSuite(Suite):
    """Seven steps of one case, on one device."""

    name = "inference"
    case_type = InferenceCase
    record_type = RunRecord
    record_fixture = "run_record"
    plugins = ("suites.inference.steps",)
    imports = IMPORTED
    compiles = True
    attended = True
    engines_alone = True
    compared = ("core", "whole")
    short_rounds = True
    options = {
        "--scenario": {
            "choices": ("throughput", "latency"),
            "sets": "scenario",
            "help": "latency: one sample at a time, with percentiles",
        },
        "--min-seconds": {
            "type": float,
            "metavar": "SECONDS",
            "sets": "min_seconds",
            "help": "least seconds of compute in a timed round; may only be raised (the profile's own)",
        },
        "--accuracy-gate": {
            "type": float,
            "metavar": "SHARE",
            "help": "share of the fp32 framework's accuracy that the engine must keep: more than the policy's (0.99)",
        },
        "--validated": {
            "action": "append",
            "default": [],
            "metavar": "RECORD",
            "help": "with no_validation: record.json of an earlier PASS of the case that exported the ONNX file in "
            "exist_onnx_path, whose framework's accuracy then counts; may be repeated",
        },
        "--keep-artifacts": {
            "action": "store_true",
            "help": "keep exported ONNX files and compiled engines (model.onnx, engine-*/) in the results",
        },
    }

    def precision(self, config: EffectiveConfig) -> str:
        """What `precision` or `fp16` says."""
        return config.effective_precision

    def variant(self, config: EffectiveConfig, scale: str) -> Mapping[str, str]:
        """By compiler and scenario."""
        return {**variant_of(config.compiler, config), "precision": self.precision(config)}

    def host_problems(self, config: EffectiveConfig, here: bool) -> Sequence[Problem]:
        """Of data and weights."""
        return host_problems(config, here)

    def stages(self, record: RunRecord) -> Iterable[Stage]:
        """Accuracy, honesty, noise."""
        return stages(record)

    def figures(self, record: RunRecord) -> Sequence[Figure]:
        """Throughputs, latencies, scores, energy."""
        return figures(record)

    def collect(self, run_dir: Path, record: RunRecord) -> RunRecord:
        """From the session's log."""
        from proofmark.inference.outcome.collect import collect

        return collect(run_dir / LOG_FILE, seal=record.log)

    def charts(self, record: RunRecord) -> Mapping[str, str]:
        """Accuracy, rounds, time, and the chip's limits."""
        from suites.inference.report.section import charts

        return charts(record)

    def section(self, record: RunRecord) -> str:
        """Steps and checks."""
        from suites.inference.report.section import section

        return section(record)

    def write_files(self, record: RunRecord, run_dir: Path) -> None:
        """Its monitor's readings, as other tools read them."""
        from proofmark.monitoring.table import write_tables

        write_tables(run_dir)


suite = InferenceSuite()
