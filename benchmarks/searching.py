"""`make overhead`: how much of its time a search trains, one trial at a time: the embedded one, as it is."""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path

from benchmarks.overhead import ROOT
from proofmark.automl.outcome.record import AutoMLRecord, TrialRecord


def main() -> None:
    """Print the share, and where the rest of the time went."""
    with tempfile.TemporaryDirectory() as folder:
        begun = time.perf_counter()
        command = [sys.executable, "-m", "pytest", "suites/automl", "-q", "--results-dir", folder]
        # its verdict does not matter
        subprocess.run(command, cwd=ROOT, stdout=subprocess.DEVNULL, check=False)
        took = time.perf_counter() - begun
        (path,) = Path(folder).resolve().glob("latest/automl/*/record.json")
        record = AutoMLRecord.load(path)
    seconds, share = record.search_seconds, record.training_share
    assert seconds is not None and share is not None
    trained = [_span(trial) for trial in record.trials if trial.epochs]
    gaps = [after - before for (_, before), (after, _) in pairwise(trained)]
    epochs = sum(len(trial.epochs) - 1 for trial in record.trials)
    print(f"{'a search':18} {'share':6} {share:8.4f}   ({len(trained)} trials, {epochs} epochs in {seconds:.1f} s)")
    print(f"{'a search':18} {'s':6} {took:8.2f}   (the whole session)")
    print(f"{'its start':18} {'s':6} {trained[0][0]:8.2f}   (until the first network is evaluated)")
    print(f"{'between trials':18} {'s':6} {statistics.median(gaps):8.2f}   (most {max(gaps):.2f})")
    print(f"{'its end':18} {'s':6} {seconds - trained[-1][1]:8.2f}")


def _span(trial: TrialRecord) -> tuple[float, float]:
    """When a trial's first evaluation began, and its last one ended, in seconds since the search began."""
    first, last = trial.epochs[0], trial.epochs[-1]
    return first.ended - first.seconds, last.ended


if __name__ == "__main__":
    main()
