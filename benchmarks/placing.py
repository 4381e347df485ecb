"""`make sessions`: what it takes Ray to place a trial: from the driver's word that it begins to the trial's own first.

Trials of the embedded search on a Ray of this machine alone, whose clock is one for driver and trials.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

from benchmarks.by_hand import ROOT
from proofmark.automl.search.journal import FILE, read_journal
from proofmark.automl.search.state import State
from proofmark.automl.trial.spec import LOG
from proofmark.record.events.log import read_events

TRIALS = 8
SHORT = ("--set", "warmup_1=1", "--set", "warmup_2=1", "--set", "warmup_3=1", "--set", "epochs=1")


def main() -> None:
    """Print the seconds; one line where there is no Ray, or the search fails."""
    if find_spec("ray") is None:
        sys.exit("placing by Ray: not measured: Ray is not installed")
    with tempfile.TemporaryDirectory() as folder:
        options = ("--launcher", "ray", "--max-trials", str(TRIALS), *SHORT, "--results-dir", folder)
        command = [sys.executable, "-m", "pytest", "suites/automl", "-q", *options]
        code = subprocess.run(command, cwd=ROOT, stdout=subprocess.DEVNULL, check=False).returncode
        searches = [*Path(folder).resolve().glob("latest/automl/*/search")]
        took = [seconds for search in searches for seconds in placing(search)]
    if not took:
        sys.exit(f"placing by Ray: no trial began: pytest ended with {code}")
    median = statistics.median(took)
    print(f"{'placed by Ray':18} {'s':6} {median:8.2f}   (most {max(took):.2f}, {len(took)} trials)")


def placing(search: Path) -> list[float]:
    """Seconds of each trial of a search."""
    took = []
    for trial in State.of(read_journal(search / FILE)).trials.values():
        own = read_events(trial.left(search) / LOG)
        first = next((event for event in own if event["event"] == "trial_begin"), None)
        took += [(first["clock"] - trial.begun["clock"]) / 1e9] if first else []
    return took


if __name__ == "__main__":
    main()
