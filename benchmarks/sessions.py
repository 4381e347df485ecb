"""`make sessions`: what a session costs its user beside measuring, exporting and compiling: all from the command to the
prompt but for those steps. Weights are trained before; what is left are imports, data, models, processes and reports.
Without the plugin of a library that only these tests have: at a session's end it takes a second to import that.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.by_hand import ROOT
from benchmarks.overhead import quartiles
from proofmark.inference.outcome.record import RunRecord

SESSIONS = 3
WORK = ("framework_validation", "export", "compile", "engine_inference")
"""Steps that are no fixed cost."""


def main() -> None:
    """Print a line for sessions of one case, and one for those of two."""
    for name, cases in {"one case": "resnet50", "two cases": "resnet50 or bert"}.items():
        _fixed(cases)
        print(f"{name:18} {'s':6} {quartiles([_fixed(cases) for _ in range(SESSIONS)])}", flush=True)


def _fixed(cases: str) -> float:
    """Seconds of a session over `cases`, without their work."""
    with tempfile.TemporaryDirectory() as folder:
        options = ["-q", "-k", cases, "--results-dir", folder, "-p", "no:hypothesispytest"]
        begun = time.perf_counter()
        command = [sys.executable, "-m", "pytest", "suites/inference", *options]
        # its verdict does not matter
        subprocess.run(command, cwd=ROOT, stdout=subprocess.DEVNULL, check=False)
        seconds = time.perf_counter() - begun
        records = [RunRecord.load(path) for path in Path(folder).resolve().glob("latest/inference/*/record.json")]
    assert records
    return seconds - sum(step.seconds or 0.0 for record in records for step in record.steps if step.name in WORK)


if __name__ == "__main__":
    main()
