"""`make sessions`: what a session costs its user beside measuring, exporting and compiling: all from the command to the
prompt but for those steps, and of that what the last case takes, from its beginning to its verdict. Weights are trained
before; what is left are imports, data, models, processes and reports.
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
        sessions, last = zip(*(_fixed(cases) for _ in range(SESSIONS)), strict=True)
        print(f"{name:18} {'s':6} {quartiles(list(sessions))}", flush=True)
        print(f"{'  its last case':18} {'s':6} {quartiles(list(last))}", flush=True)


def _fixed(cases: str) -> tuple[float, float]:
    """Seconds of a session over `cases`, and of the last of them, without their work."""
    with tempfile.TemporaryDirectory() as folder:
        options = ["-q", "-k", cases, "--results-dir", folder, "-p", "no:hypothesispytest"]
        begun = time.perf_counter()
        command = [sys.executable, "-m", "pytest", "suites/inference", *options]
        # its verdict does not matter
        subprocess.run(command, cwd=ROOT, stdout=subprocess.DEVNULL, check=False)
        seconds = time.perf_counter() - begun
        records = [RunRecord.load(path) for path in Path(folder).resolve().glob("latest/inference/*/record.json")]
    last = max(records, key=lambda record: record.started)
    assert last.seconds is not None
    return seconds - sum(map(_work, records)), last.seconds - _work(last)


def _work(record: RunRecord) -> float:
    return sum(step.seconds or 0.0 for step in record.steps if step.name in WORK)


if __name__ == "__main__":
    main()
