"""`make sessions`: how much of its time a search trains, one trial at a time: the embedded one, as it is."""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path

from benchmarks.by_hand import ROOT
from proofmark.automl.outcome.record import AutoMLRecord, TrialRecord
from proofmark.errors import UsageError, harmless


def main() -> None:
    """Print the share, and where the rest of the time went; one line of what is missing, where a search fails."""
    with tempfile.TemporaryDirectory() as folder:
        begun = time.perf_counter()
        command = [sys.executable, "-m", "pytest", "suites/automl", "-q", "--results-dir", folder]
        # its verdict does not matter
        code = subprocess.run(command, cwd=ROOT, stdout=subprocess.DEVNULL, check=False).returncode
        took = time.perf_counter() - begun
        found = sorted(Path(folder).resolve().glob("latest/automl/*/record.json"))
        if len(found) != 1:
            sys.exit(f"the session left {len(found)} records of searches, expected 1: pytest ended with {code}")
        try:
            record = AutoMLRecord.load(found[0])
        except UsageError as error:
            sys.exit(str(error))
    print("\n".join(figures(record, took)))


def figures(record: AutoMLRecord, took: float) -> list[str]:
    """What there is to print of a search whose whole session took so many seconds; exits where it has failed."""
    seconds, share = record.search_seconds, record.training_share
    trained = sorted(_span(trial) for trial in record.trials if trial.epochs)
    if seconds is None or share is None or len(trained) < 2:
        lacks = {"its seconds": seconds is None, "the share": share is None, "two trained trials": len(trained) < 2}
        reasons = record.verdict.reasons if record.verdict else ()
        why = record.failure or "; ".join(reasons) or record.end_reason or "nothing says why"
        sys.exit(harmless(f"the search's record lacks {', '.join(what for what, so in lacks.items() if so)}: {why}"))
    gaps = [after - before for (_, before), (after, _) in pairwise(trained)]
    epochs = sum(len(trial.epochs) - 1 for trial in record.trials if trial.epochs)
    return [
        f"{'a search':18} {'share':6} {share:8.4f}   ({len(trained)} trials, {epochs} epochs in {seconds:.1f} s)",
        f"{'a search':18} {'s':6} {took:8.2f}   (the whole session)",
        f"{'its start':18} {'s':6} {trained[0][0]:8.2f}   (until the first network is evaluated)",
        f"{'between trials':18} {'s':6} {statistics.median(gaps):8.2f}   (most {max(gaps):.2f})",
        f"{'its end':18} {'s':6} {seconds - max(end for _, end in trained):8.2f}",
    ]


def _span(trial: TrialRecord) -> tuple[float, float]:
    """When a trial's first evaluation began, and its last one ended, in seconds since the search began."""
    first, last = trial.epochs[0], trial.epochs[-1]
    return first.ended - first.seconds, last.ended


if __name__ == "__main__":
    main()
